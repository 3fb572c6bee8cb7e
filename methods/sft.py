"""SFT: cross-entropy on the gold demonstrations."""

from __future__ import annotations

from typing import ClassVar, cast

from cl_bench.methods.base import Adaptation, Context, Fidelity, Method, MethodSettings, Need, Stage, Student
from cl_bench.methods.training.demonstrations import train_on_demonstrations
from cl_bench.methods.training.losses import cross_entropy
from cl_bench.methods.training.settings import TrainingSettings


class SFTSettings(TrainingSettings):
    """Settings of SFT: those of every trained method."""


class SFT(Method):
    """Supervised fine-tuning: token-mean negative log-likelihood of the demonstration, prompt excluded, end included.

    Source: SynthSelf (2610.13113) table 5 for the settings; trl's ``SFTTrainer`` with ``loss_type="nll"`` for the loss.
    """

    name: ClassVar[str] = "sft"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.DEMONSTRATIONS})
    fidelity: ClassVar[Fidelity] = Fidelity.REFERENCE_EXECUTED
    checked: ClassVar[str] = "vectors and training steps of trl; gradients by hand"
    paper: ClassVar[str] = "standard; settings of SynthSelf (2610.13113) table 5"
    family: ClassVar[str] = "supervised"
    Settings: ClassVar[type[MethodSettings]] = SFTSettings

    def adapt(self, student: Student, stage: Stage, context: Context) -> Adaptation:
        """Train on the demonstrations. Raises ``NothingAcceptedError`` where no row is left."""
        settings = cast(SFTSettings, self.settings).for_stage(stage)
        return train_on_demonstrations(self, student, stage, context, settings, cross_entropy)
