"""SFT with a bounded loss: a whole method in one file of a package."""

from __future__ import annotations

from typing import ClassVar, cast

from torch import Tensor

from cl_bench.methods.base import Adaptation, Context, Fidelity, Method, MethodSettings, Need, Stage, Student, setting
from cl_bench.methods.training.demonstrations import train_on_demonstrations
from cl_bench.methods.training.losses import cross_entropy
from cl_bench.methods.training.settings import TrainingSettings


class CalmSFTSettings(TrainingSettings):
    """The shared settings and one of its own."""

    power: float = setting(
        0.7, "Of the probability; near 0 the loss is the likelihood's.", unit="1", source="1805.07836", gt=0, le=1
    )


class CalmSFT(Method):
    """Generalised cross-entropy (1 - probability^power) / power: labels found impossible pull less than under SFT."""

    name: ClassVar[str] = "calm-sft"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.DEMONSTRATIONS})
    fidelity: ClassVar[Fidelity] = Fidelity.PAPER_FORMULA
    paper: ClassVar[str] = "1805.07836"
    family: ClassVar[str] = "supervised"
    Settings: ClassVar[type[MethodSettings]] = CalmSFTSettings

    def adapt(self, student: Student, stage: Stage, context: Context) -> Adaptation:
        """Train on the demonstrations. Raises ``NothingAcceptedError`` where no row is left."""
        settings = cast(CalmSFTSettings, cast(CalmSFTSettings, self.settings).for_stage(stage))

        def token_loss(logits: Tensor, labels: Tensor) -> Tensor:
            power = settings.power
            return (1 - (-power * cross_entropy(logits, labels)).exp()) / power

        return train_on_demonstrations(self, student, stage, context, settings, token_loss)
