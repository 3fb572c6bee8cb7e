"""Off-policy distillation: the student learns the aligner's own answers."""

from __future__ import annotations

from typing import ClassVar, Literal, cast

import torch
from torch import Tensor

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
from cl_bench.methods.training.anchors import Anchor
from cl_bench.methods.training.divergences import jensen_shannon
from cl_bench.methods.training.generated import train_on_generated
from cl_bench.methods.training.losses import cross_entropy
from cl_bench.methods.training.rewriting import RewriteSettings
from cl_bench.methods.training.settings import TrainingSettings, rollouts

_PAPER = "SynthSelf (2610.13113), baselines"


class OffPolicyDistillationSettings(TrainingSettings):
    """Settings of off-policy distillation."""

    objective: Literal["cross_entropy", "divergence"] = setting(
        "cross_entropy",
        "Likelihood of the aligner's text, or divergence from its distribution on that text.",
        unit="choice",
        source=_PAPER,
        inferred=True,
    )
    alpha: float = setting(
        0.0,
        "Of the divergence; 0: forward KL(teacher || student), 1: reverse KL, between: JSD.",
        unit="1",
        source="GKD (2306.13649)",
        ge=0,
        le=1,
    )
    reject_wrong: bool = setting(
        False, "Drop answers that the task's scorer finds wrong.", unit="switch", source=_PAPER, inferred=True
    )
    candidates: int = setting(
        1, "Answers per prompt at most; the first accepted is kept.", unit="samples", source=_PAPER, inferred=True, ge=1
    )
    temperature: float = setting(
        1.0, "Sampling temperature of the aligner.", unit="1", source=_PAPER, inferred=True, ge=0
    )
    max_completion_length: int = setting(
        1024, "Longest answer; longer ones are dropped.", unit="tokens", source="SDFT code", inferred=True, ge=1
    )


class OffPolicyDistillation(Method):
    """The aligner answers the plain prompt, without the demonstration; the student is trained on what it wrote.

    No rejection by default, so that its difference to SynthSelf is the demonstration in view and the scorer. The
    aligner's accuracy is reported. That one answer per prompt and the likelihood are meant is inferred.
    """

    name: ClassVar[str] = "off-policy-distillation"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.ALIGNER})
    fidelity: ClassVar[Fidelity] = Fidelity.RECONSTRUCTED
    checked: ClassVar[str] = "vectors of trl for the divergence; gradients by hand"
    paper: ClassVar[str] = "2610.13113, baselines"
    family: ClassVar[str] = "supervised"
    Settings: ClassVar[type[MethodSettings]] = OffPolicyDistillationSettings

    def adapt(self, student: Student, stage: Stage, context: Context) -> Adaptation:
        """Generate and train. Raises ``NothingAcceptedError`` where the aligner gets nothing accepted."""
        settings = cast(
            OffPolicyDistillationSettings, cast(OffPolicyDistillationSettings, self.settings).for_stage(stage)
        )
        writing = RewriteSettings(
            template=None,
            candidates=settings.candidates,
            generation=rollouts(settings.max_completion_length, settings.temperature, context),
            reject_wrong=settings.reject_wrong,
        )
        if settings.objective == "cross_entropy":
            return train_on_generated(self, student, stage, context, settings, writing, cross_entropy)
        teacher = Anchor(context.aligner().model, jensen_shannon(settings.alpha), 1.0)
        return train_on_generated(self, student, stage, context, settings, writing, _nothing, teacher)


def _nothing(logits: Tensor, labels: Tensor) -> Tensor:
    """No likelihood: the divergence from the aligner is the whole loss."""
    return torch.zeros_like(labels, dtype=logits.dtype)
