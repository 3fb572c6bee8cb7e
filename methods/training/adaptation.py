"""What a training session reports: an ``Adaptation`` from its counters, ledger and logs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from cl_bench.harness.measure.cost import forward_flops, training_flops
from cl_bench.methods.base import Adaptation
from cl_bench.methods.training.mixin import TrainingSession
from cl_bench.methods.training.rows import TrainingRow


def adaptation_of(session: TrainingSession, trainer: Any, rejected: dict[str, int], data_hash: str) -> Adaptation:
    """Steps, tokens and operations of a finished session."""
    counters, parameters = session.counters, session.student.parameter_count()
    flops = {"train": training_flops(parameters, counters.forward_tokens)}
    generated = {}
    if counters.teacher_tokens:
        teachers = max(teacher.chat.parameter_count() for teacher in session.teachers.values())
        flops["teacher"] = forward_flops(teachers, counters.teacher_tokens)
    if counters.anchor_flops:
        flops["anchor"] = counters.anchor_flops
    if counters.generated_tokens:
        generated["student"] = counters.generated_tokens
        flops["generate"] = forward_flops(parameters, counters.generation_prompt_tokens + counters.generated_tokens)
    rejected = dict(rejected)
    if counters.unfit_samples:
        rejected["teacher_prompt_too_long"] = rejected.get("teacher_prompt_too_long", 0) + counters.unfit_samples
    for reason, count in counters.left_out.items():
        rejected[reason] = rejected.get(reason, 0) + count
    data_generation = {}
    if counters.usable_samples < counters.samples:
        data_generation["usable_samples_share"] = counters.usable_samples / counters.samples
    warnings = []
    if counters.skipped_steps:
        warnings.append(
            f"{counters.skipped_steps} of {counters.steps} steps had nothing to learn from and were skipped"
        )
    warnings += [f"{count} x {what}" for what, count in counters.remarks.items()]
    return Adaptation(
        steps=counters.steps,
        trained_tokens=counters.trained_tokens,
        generated_tokens=generated,
        flops=flops,
        data_generation=data_generation,
        rejected=rejected,
        data_hash=data_hash,
        warnings=warnings,
        logs=trainer.logs(),
    )


def rows_hash(rows: Sequence[TrainingRow]) -> str:
    """SHA-256 over the ids and tokens of the rows trained on."""
    content = [(row.example_id, row.prompt_ids, row.completion_ids) for row in rows]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()
