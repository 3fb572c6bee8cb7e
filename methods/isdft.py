"""iSDFT: SDFT towards a target between student and teacher, as near the student as an information budget allows."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Literal, cast

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
from cl_bench.methods.training.distillation import SelfTeacherSettings, self_taught, train_on_own_samples
from cl_bench.methods.training.divergences import Divergence, forward_kl, log_probs
from cl_bench.methods.training.mixin import TrainingSession
from cl_bench.methods.training.on_policy import OnPolicyObjective
from cl_bench.methods.training.tilt import Constraint, ramp, tilted_target

_CODE = "iSDFT reference code"
_ITERATIONS = 40
"""Halvings of the bisection; what the reference code does in fp32."""


class ISDFTSettings(SelfTeacherSettings):
    """Settings of iSDFT: those of SDFT, the budget and the anchor."""

    constraint: Constraint = setting(
        "information",
        "What the budget bounds: information is iSDFT; kl (to the student) and fixed (the tilt) are ablations.",
        unit="choice",
        source=_CODE,
    )
    budget_start: float = setting(
        0.25,
        "Budget at the first step, as a share of KL(teacher || student).",
        unit="fraction",
        source=_CODE,
        ge=0,
        le=1,
    )
    budget_end: float = setting(
        1.0, "Budget after the ramp; 1 is SDFT's own target.", unit="fraction", source=_CODE, ge=0, le=1
    )
    ramp_steps: int = setting(150, "Steps of the linear ramp at most.", unit="steps", source=_CODE, ge=1)
    ramp_share: float = setting(
        0.3,
        "The ramp takes no more than this share of the stage's steps, so that short stages reach its end too.",
        unit="fraction",
        source=_CODE,
        inferred=True,
        gt=0,
        le=1,
    )
    anchor_weight: float = setting(2e-3, "Weight of KL(anchor || student).", unit="1", source=_CODE, ge=0)
    anchor: Literal["original", "task_start"] = setting(
        "original", "Frozen model that the student is held near on its own samples.", unit="choice", source=_CODE
    )


class ISDFT(Method):
    """Information-proximal SDFT: samples, teacher and reduction as in SDFT, another target.

    At each token q is proportional to student^(1 - lambda) x teacher^lambda, with the smallest lambda for which
    E_q[log teacher - log student] reaches the budget; loss KL(q || student), q a constant, plus the anchor's KL.
    """

    name: ClassVar[str] = "isdft"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.DEMONSTRATIONS})
    fidelity: ClassVar[Fidelity] = Fidelity.REFERENCE_EXECUTED
    checked: ClassVar[str] = "the formula solved to 1e-15, vectors of the authors' code; gradients by hand"
    paper: ClassVar[str] = "reference code of iSDFT"
    family: ClassVar[str] = "on-policy"
    Settings: ClassVar[type[MethodSettings]] = ISDFTSettings

    def adapt(self, student: Student, stage: Stage, context: Context) -> Adaptation:
        """Train on the student's own samples. Raises ``NothingAcceptedError`` where no prompt is left."""
        settings = cast(ISDFTSettings, cast(ISDFTSettings, self.settings).for_stage(stage))

        def objective(session: TrainingSession) -> OnPolicyObjective:
            towards = self_taught(settings, student, context, tilted(settings, session))
            return replace(towards, anchor=_anchor(settings, context))

        return train_on_own_samples(self, student, stage, context, settings, objective)


def tilted(settings: ISDFTSettings, session: TrainingSession) -> Divergence:
    """KL(q || student) with the budget of the session's current step."""

    def divergence(student_logits: Tensor, teacher_logits: Tensor, tokens: Tensor | None = None) -> Tensor:
        student, teacher = log_probs(student_logits, teacher_logits)
        target = tilted_target(student.detach(), teacher, budget(settings, session), settings.constraint, _ITERATIONS)
        return forward_kl(student_logits, target.log_target)

    return divergence


def budget(settings: ISDFTSettings, session: TrainingSession) -> float:
    """The budget of the step that is about to be made."""
    steps = max(1, min(settings.ramp_steps, int(settings.ramp_share * session.total_steps)))
    return ramp(session.counters.steps, settings.budget_start, settings.budget_end, steps)


def _anchor(settings: ISDFTSettings, context: Context) -> Anchor | None:
    if settings.anchor_weight == 0:
        return None
    frozen = context.original() if settings.anchor == "original" else context.task_start()
    return Anchor(frozen.model, forward_kl, settings.anchor_weight)
