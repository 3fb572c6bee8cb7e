"""OPSD: the student learns, on its own samples, from its first self having seen the solution."""

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
from cl_bench.methods.training.distillation import (
    SelfTeacherSettings,
    TeacherKind,
    self_taught,
    train_on_own_samples,
)
from cl_bench.methods.training.divergences import Divergence, divergence_of
from cl_bench.methods.training.losses import Reduction
from cl_bench.methods.training.mixin import TrainingSession
from cl_bench.methods.training.on_policy import OnPolicyObjective

_CODE = "OPSD reference code"
SOLUTION_TEMPLATE = (
    "{question}\n\nA worked solution to this problem:\n\n{demonstration}\n\n"
    "You have understood this solution. Now derive the answer yourself, step by step."
)
"""Default wording for instruction-tuned models; profiles may replace it."""


class OPSDSettings(SelfTeacherSettings):
    """Settings of OPSD."""

    teacher_template: str = setting(
        SOLUTION_TEMPLATE,
        "The teacher's user turn, with {question} and {demonstration}.",
        unit="text",
        source="OPSD (2601.18734); wording ours",
        inferred=True,
    )
    teacher: TeacherKind = setting(
        "task_start",
        "Teacher weights: the model at the start of the stage (the paper's initial policy), of the run, or an average.",
        unit="choice",
        source=_CODE,
    )
    ema_rate: float = setting(
        0.001, "Share of the student in each update of an averaged teacher.", unit="fraction per step", source=_CODE,
        gt=0, le=1,
    )  # fmt: skip
    alpha: float = setting(
        0.5, "0: forward KL(teacher || student), 1: reverse KL, between: JSD.", unit="1", source=_CODE, ge=0, le=1
    )
    top_k: int | None = setting(
        None,
        "Compare on the teacher's likeliest tokens alone, renormalised; none: the whole vocabulary.",
        unit="tokens",
        source=_CODE,
        ge=1,
    )
    reduction: Reduction = setting("token_mean", "How token losses are averaged.", unit="choice", source=_CODE)
    skip_tokens: int = setting(
        0,
        "First completion tokens left out of the loss; always fewer than 20 % of the step's median completion.",
        unit="tokens",
        source="SDFT reference code; off here",
        inferred=True,
        ge=0,
    )
    temperature: float = setting(
        1.1, "Sampling temperature; divides both models' logits in the loss too.", unit="1", source=_CODE, gt=0
    )


class OPSD(Method):
    """On-policy self-distillation (2601.18734).

    The student samples from the plain prompt; a frozen copy of it, shown the worked solution, scores every token;
    generalised JSD, token mean. The reference code samples with top-p .95 and top-k 20 and pads on the right inside the
    context; here sampling is untruncated and nothing stands between prompt and answer.
    """

    name: ClassVar[str] = "opsd"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.DEMONSTRATIONS})
    fidelity: ClassVar[Fidelity] = Fidelity.REFERENCE_EXECUTED
    checked: ClassVar[str] = "vectors of the authors' code; gradients by hand"
    paper: ClassVar[str] = "2601.18734"
    family: ClassVar[str] = "on-policy"
    Settings: ClassVar[type[MethodSettings]] = OPSDSettings

    def adapt(self, student: Student, stage: Stage, context: Context) -> Adaptation:
        """Train on the student's own samples. Raises ``NothingAcceptedError`` where no prompt is left."""
        settings = cast(OPSDSettings, cast(OPSDSettings, self.settings).for_stage(stage))

        def objective(session: TrainingSession) -> OnPolicyObjective:
            return self_taught(settings, student, context, solution_divergence(settings))

        return train_on_own_samples(self, student, stage, context, settings, objective)


def solution_divergence(settings: OPSDSettings) -> Divergence:
    """Over the whole vocabulary, or on the teacher's likeliest tokens alone."""
    return divergence_of(settings.alpha, settings.top_k, support="teacher", rest="renormalise")
