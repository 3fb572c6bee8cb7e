"""DFT: cross-entropy on the gold demonstrations, each token weighted by its own probability."""

from __future__ import annotations

from typing import ClassVar, cast

from cl_bench.methods.base import Adaptation, Context, Fidelity, Method, MethodSettings, Need, Stage, Student
from cl_bench.methods.training.demonstrations import train_on_demonstrations
from cl_bench.methods.training.losses import dft_loss
from cl_bench.methods.training.settings import TrainingSettings


class DFTSettings(TrainingSettings):
    """Settings of DFT: those of every trained method."""


class DFT(Method):
    """Dynamic fine-tuning (2508.05629): token-mean of the detached probability times the negative log-likelihood.

    The gradient vanishes where the probability is near zero: what the model finds impossible is hardly learned. Not the
    ``--method dft`` of the SDFT code, which distils from a teacher that sees the demonstration. Settings: SynthSelf
    (2610.13113) table 5.
    """

    name: ClassVar[str] = "dft"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.DEMONSTRATIONS})
    fidelity: ClassVar[Fidelity] = Fidelity.REFERENCE_EXECUTED
    checked: ClassVar[str] = "vectors of the authors' code, training steps of trl; gradients by hand"
    paper: ClassVar[str] = "2508.05629"
    family: ClassVar[str] = "supervised"
    Settings: ClassVar[type[MethodSettings]] = DFTSettings

    def adapt(self, student: Student, stage: Stage, context: Context) -> Adaptation:
        """Train on the demonstrations. Raises ``NothingAcceptedError`` where no row is left."""
        settings = cast(DFTSettings, self.settings).for_stage(stage)
        return train_on_demonstrations(self, student, stage, context, settings, dft_loss)
