"""On-policy distillation: the student learns, on its own samples, from the aligner."""

from __future__ import annotations

from typing import ClassVar, cast

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
from cl_bench.methods.training.distillation import train_on_own_samples
from cl_bench.methods.training.divergences import jensen_shannon
from cl_bench.methods.training.losses import Reduction
from cl_bench.methods.training.mixin import TrainingSession
from cl_bench.methods.training.on_policy import OnPolicyObjective
from cl_bench.methods.training.settings import TrainingSettings, rollouts
from cl_bench.methods.training.teachers import FrozenTeacher

_TRL = "trl.DistillationTrainer"


class OnPolicyDistillationSettings(TrainingSettings):
    """Settings of on-policy distillation."""

    alpha: float = setting(
        1.0,
        "0: forward KL(teacher || student), 1: reverse KL, between: JSD (trl calls it beta).",
        unit="1",
        source=_TRL,
        ge=0,
        le=1,
    )
    reduction: Reduction = setting("token_mean", "How token losses are averaged.", unit="choice", source=_TRL)
    temperature: float = setting(
        1.0, "Sampling temperature; divides both models' logits in the loss too.", unit="1", source=_TRL, gt=0
    )
    max_completion_length: int = setting(
        1024, "Longest rollout.", unit="tokens", source="SDFT code", inferred=True, ge=1
    )


class OnPolicyDistillation(Method):
    """The student samples from the plain prompt; the aligner, given the same prompt, scores every token (2306.13649).

    Full-vocabulary divergence, token mean over the optimizer step, no demonstration and no reward. Equal to trl's
    ``DistillationTrainer``, which counts its tokens after generation (its ``GKDTrainer`` counts before).
    """

    name: ClassVar[str] = "on-policy-distillation"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.ALIGNER})
    fidelity: ClassVar[Fidelity] = Fidelity.REFERENCE_EXECUTED
    checked: ClassVar[str] = "vectors and training steps of trl; gradients by hand"
    paper: ClassVar[str] = "2306.13649"
    family: ClassVar[str] = "on-policy"
    Settings: ClassVar[type[MethodSettings]] = OnPolicyDistillationSettings

    def adapt(self, student: Student, stage: Stage, context: Context) -> Adaptation:
        """Train on the student's own samples. Raises ``NothingAcceptedError`` where no prompt is left."""
        settings = cast(
            OnPolicyDistillationSettings, cast(OnPolicyDistillationSettings, self.settings).for_stage(stage)
        )

        def objective(session: TrainingSession) -> OnPolicyObjective:
            return OnPolicyObjective(
                teacher=FrozenTeacher(context.aligner()),
                teacher_messages=lambda example: example.messages,
                divergence=jensen_shannon(settings.alpha),
                reduction=settings.reduction,
                generation=rollouts(settings.max_completion_length, settings.temperature, context),
            )

        return train_on_own_samples(self, student, stage, context, settings, objective)
