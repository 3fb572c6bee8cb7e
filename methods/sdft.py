"""SDFT: the student learns, on its own samples, from itself having seen the demonstration."""

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
from cl_bench.methods.training.distillation import SelfTeacherSettings, self_taught, train_on_own_samples
from cl_bench.methods.training.divergences import jensen_shannon
from cl_bench.methods.training.mixin import TrainingSession
from cl_bench.methods.training.on_policy import OnPolicyObjective

_CODE = "SDFT reference code (Self-Distillation)"


class SDFTSettings(SelfTeacherSettings):
    """Settings of SDFT."""

    alpha: float = setting(
        0.0, "0: forward KL(teacher || student), 1: reverse KL, between: JSD.", unit="1", source=_CODE, ge=0, le=1
    )


class SDFT(Method):
    """Self-distillation fine-tuning (2601.19897).

    One sample per prompt from the current student; the teacher (EMA of the student, in memory, fp32, restarted from the
    student at every stage) sees question and demonstration and scores that sample; full-vocabulary forward KL. The
    paper's text says reverse KL; its code and results use forward KL, and so does the default here.
    """

    name: ClassVar[str] = "sdft"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.DEMONSTRATIONS})
    fidelity: ClassVar[Fidelity] = Fidelity.REFERENCE_EXECUTED
    checked: ClassVar[str] = "vectors of the authors' code; gradients by hand"
    paper: ClassVar[str] = "2601.19897"
    family: ClassVar[str] = "on-policy"
    Settings: ClassVar[type[MethodSettings]] = SDFTSettings

    def adapt(self, student: Student, stage: Stage, context: Context) -> Adaptation:
        """Train on the student's own samples. Raises ``NothingAcceptedError`` where no prompt is left."""
        settings = cast(SDFTSettings, cast(SDFTSettings, self.settings).for_stage(stage))

        def objective(session: TrainingSession) -> OnPolicyObjective:
            return self_taught(settings, student, context, jensen_shannon(settings.alpha))

        return train_on_own_samples(self, student, stage, context, settings, objective)
