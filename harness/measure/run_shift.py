"""How far a stage moved the model: KL on the base's own answers, on the model's own and on those of the row before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cl_bench.harness.context import sampler_for
from cl_bench.harness.generation.base import GenerationSettings, Prompt
from cl_bench.harness.measure.evaluation import no_trace, with_system_prompt
from cl_bench.harness.measure.run_evaluation import TaskColumn
from cl_bench.harness.measure.shift import TokenRow, measure_kl
from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.harness.seeds import row_seed
from cl_bench.harness.spec import RunSpec

SHIFT_VERSION = 1
_ROWS = 64
"""Prompts of each task that shift is measured on: the first of the column's fixed rows."""


def sampled_rows(model: ChatModel, spec: RunSpec, column: TaskColumn) -> list[TokenRow]:
    """The model's answers at temperature 1 to the column's first prompts; seeds do not depend on the run's."""
    sampler = sampler_for(model, spec.precision)
    settings = GenerationSettings(column.task.max_new_tokens, 1.0, spec.evaluation_batch_size)
    prompts = []
    for example in column.examples[:_ROWS]:
        ids = model.prompt_ids(with_system_prompt(example.messages, spec.evaluation.system_prompt))
        if sampler.fits(len(ids), settings):
            prompts.append(Prompt(ids, row_seed(0, column.column.name, "shift", example.id, 0, 0)))
    with no_trace(model):
        completions = sampler.generate(prompts, settings)
    return [(prompt.ids, completion.ids) for prompt, completion in zip(prompts, completions, strict=True)]


def measure_shift(
    base: ChatModel,
    previous: ChatModel,
    current: ChatModel,
    spec: RunSpec,
    columns: Sequence[TaskColumn],
    base_rows: Mapping[str, Sequence[TokenRow]],
    trained: Sequence[str],
) -> dict[str, Any]:
    """Content of ``shift.json``.

    Args:
        base: The untouched model.
        previous: The model before the stage.
        current: The model after the stage.
        spec: The run.
        columns: The sequence's columns.
        base_rows: The base's own samples by column (``sampled_rows``).
        trained: Columns that the stage trained on: forward KL on their prompts is the primary number (RL's Razor).

    Returns:
        ``forward_kl`` (KL(base || current) on the base's samples) and ``reverse_kl`` (KL(current || base) on the
        current model's samples), in nats a token, by column; ``forward_kl_trained``: the mean over trained columns;
        ``previous_forward_kl``: KL(previous || current) on the previous model's samples, for the trained columns.
    """
    forward, reverse = {}, {}
    for item in columns:
        name = item.column.name
        forward[name] = dict(measure_kl(base, current, base_rows[name]))
        reverse[name] = dict(measure_kl(current, base, sampled_rows(current, spec, item)))
    since_previous = {
        item.column.name: dict(measure_kl(previous, current, sampled_rows(previous, spec, item)))
        for item in columns
        if item.column.name in trained
    }
    values = [forward[name]["token_mean"] for name in trained if name in forward]
    known = [float(value) for value in values if value is not None]
    return {
        "schema_version": SHIFT_VERSION,
        "unit": "nats per token",
        "rows": _ROWS,
        "forward_kl": forward,
        "reverse_kl": reverse,
        "previous_forward_kl": since_previous,
        "forward_kl_trained": sum(known) / len(known) if known else None,
    }
