"""Self-distillation by the Jeffreys divergence: a whole on-policy method in one file."""

from __future__ import annotations

from typing import ClassVar, cast

from torch import Tensor

from cl_bench.methods.base import Adaptation, Context, Fidelity, Method, MethodSettings, Need, Stage, Student, setting
from cl_bench.methods.training.distillation import SelfTeacherSettings, self_taught, train_on_own_samples
from cl_bench.methods.training.divergences import forward_kl, reverse_kl
from cl_bench.methods.training.mixin import TrainingSession
from cl_bench.methods.training.on_policy import OnPolicyObjective


class JeffreysSDFTSettings(SelfTeacherSettings):
    """Those of SDFT (the teacher, its template, the rollouts) and one of its own."""

    reverse_share: float = setting(0.5, "Weight of the reverse KL.", unit="1", source="this example", ge=0, le=1)


class JeffreysSDFT(Method):
    """The student samples; its own average, which sees the demonstration, scores; both KLs are weighed and summed."""

    name: ClassVar[str] = "jeffreys-sdft"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.DEMONSTRATIONS})
    fidelity: ClassVar[Fidelity] = Fidelity.RECONSTRUCTED
    family: ClassVar[str] = "on-policy"
    Settings: ClassVar[type[MethodSettings]] = JeffreysSDFTSettings

    def adapt(self, student: Student, stage: Stage, context: Context) -> Adaptation:
        """Train the student in place on one stage."""
        settings = cast(JeffreysSDFTSettings, cast(JeffreysSDFTSettings, self.settings).for_stage(stage))
        share = settings.reverse_share

        def jeffreys(student_logits: Tensor, teacher_logits: Tensor, tokens: Tensor | None = None) -> Tensor:
            """Logits [N, V] of both to a value per position, [N]."""
            forward, reverse = forward_kl(student_logits, teacher_logits), reverse_kl(student_logits, teacher_logits)
            return (1 - share) * forward + share * reverse

        def objective(session: TrainingSession) -> OnPolicyObjective:
            return self_taught(settings, student, context, jeffreys)

        return train_on_own_samples(self, student, stage, context, settings, objective)
