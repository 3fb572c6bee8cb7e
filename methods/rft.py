"""RFT: the student samples, the task's scorer keeps what is right, the student is trained on that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar, cast

from cl_bench.harness.errors import NothingAcceptedError
from cl_bench.harness.measure.cost import forward_flops
from cl_bench.methods.base import (
    Adaptation,
    Context,
    Fidelity,
    Method,
    MethodSettings,
    Need,
    Stage,
    Student,
    setting,
)
from cl_bench.methods.training.adaptation import adaptation_of, rows_hash
from cl_bench.methods.training.losses import cross_entropy
from cl_bench.methods.training.mixin import TrainingSession, restore_ledger
from cl_bench.methods.training.rows import training_rows
from cl_bench.methods.training.self_training import SelfTrainingSettings, generate_own
from cl_bench.methods.training.settings import TrainingSettings, rollouts
from cl_bench.methods.training.supervised import supervised_trainer

_PAPER = "STaR (2203.14465), ReST-EM (2312.06585)"
HINT_TEMPLATE = "{question}\n\n(The final answer is {demonstration}. Explain how to get there, and end with it.)"
"""Default wording of the hint; the gold answer is put in for ``{demonstration}``."""


class RFTSettings(TrainingSettings):
    """Settings of RFT."""

    samples: int = setting(4, "Samples of each prompt.", unit="samples", source=_PAPER, inferred=True, ge=1)
    keep: int = setting(
        1, "Distinct right samples kept of each prompt at most.", unit="samples", source=_PAPER, inferred=True, ge=1
    )
    temperature: float = setting(1.0, "Sampling temperature.", unit="1", source=_PAPER, inferred=True, gt=0)
    max_completion_length: int = setting(
        1024, "Longest sample; longer ones are rejected.", unit="tokens", source="SDFT code", inferred=True, ge=1
    )
    hint: bool = setting(
        False,
        "Where no sample is right: sample again with the gold answer in view, train without it (STaR).",
        unit="switch",
        source="STaR (2203.14465)",
    )
    hint_template: str = setting(
        HINT_TEMPLATE, "The hinted user turn, with {question} and {demonstration} for the answer.", unit="text",
        source="STaR (2203.14465); wording ours", inferred=True,
    )  # fmt: skip


class RFT(Method):
    """Rejection-sampling self-training: one round of sampling from the model at the start of the stage, then SFT.

    Truncated, wrong and repeated samples are rejected and counted; prompts without a right sample are dropped, which
    keeps the easy ones. SynthSelf with the student as its own aligner and no demonstration in view.
    """

    name: ClassVar[str] = "rft"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.REWARD})
    fidelity: ClassVar[Fidelity] = Fidelity.PAPER_FORMULA
    checked: ClassVar[str] = "sft on the kept text, bit for bit"
    paper: ClassVar[str] = "2203.14465, 2312.06585"
    family: ClassVar[str] = "supervised"
    Settings: ClassVar[type[MethodSettings]] = RFTSettings

    def adapt(self, student: Student, stage: Stage, context: Context) -> Adaptation:
        """Sample, filter, train. Raises ``NothingAcceptedError`` where no sample is right."""
        settings = cast(RFTSettings, cast(RFTSettings, self.settings).for_stage(stage))
        _fill_ledger(student, stage, context, settings)
        generated = list(context.ledger)
        rejected = dict(Counter(reason for row in generated for reason in row["reasons"]))
        pairs = [
            (example, text) for example, row in zip(stage.examples, generated, strict=True) for text in row["texts"]
        ]
        if dropped := sum(not row["texts"] for row in generated):
            rejected["dropped_rows"] = dropped
        rows = training_rows(student, pairs, settings.max_length, rejected)
        if not rows:
            raise NothingAcceptedError(
                f"the model got no sample accepted in stage {stage.name}",
                why=", ".join(f"{reason}: {count}" for reason, count in sorted(rejected.items())) or "no rows",
                hint="raise method.samples, or set method.hint=true",
            )
        session = TrainingSession(self, student, stage, context, settings)
        trainer = supervised_trainer(session, rows, cross_entropy)
        trainer.run()
        adaptation = adaptation_of(session, trainer, rejected, rows_hash(rows))
        _report(adaptation, generated, student)
        return adaptation


def _fill_ledger(student: Student, stage: Stage, context: Context, settings: RFTSettings) -> None:
    checkpoint = context.checkpoints.latest()
    if checkpoint is not None:
        restore_ledger(context.ledger, checkpoint)
        return
    drawing = SelfTrainingSettings(
        samples=settings.samples,
        keep=settings.keep,
        generation=rollouts(settings.max_completion_length, settings.temperature, context),
        hint_template=settings.hint_template if settings.hint else None,
    )
    context.ledger.replace(generate_own(stage, context, student, drawing))


def _report(adaptation: Adaptation, rows: Sequence[dict[str, Any]], student: Student) -> None:
    tokens = sum(row["generated_tokens"] for row in rows)
    passes = tokens + sum(row["prompt_tokens"] for row in rows)
    adaptation.generated_tokens["student"] = tokens
    adaptation.flops["data_generation"] = forward_flops(student.parameter_count(), passes)
    sampled = [row for row in rows if row["sampled"]]
    values: dict[str, list[float]] = {
        "sample_accuracy": [row["right"] / row["sampled"] for row in sampled],
        "accepted_share": [bool(row["texts"]) for row in rows],
        "hinted_share": [row["hinted"] for row in rows],
        "mean_kept": [len(row["texts"]) for row in rows],
    }
    adaptation.data_generation = {name: sum(found) / len(found) for name, found in values.items() if found}
