"""ASFT: DFT with a KL anchor to a frozen model."""

from __future__ import annotations

from typing import ClassVar, Literal, cast

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
from cl_bench.methods.training.demonstrations import train_on_demonstrations
from cl_bench.methods.training.divergences import forward_kl, reverse_kl
from cl_bench.methods.training.losses import cross_entropy, dft_loss
from cl_bench.methods.training.settings import TrainingSettings

_CODE = "ASFT reference code (train_v2)"


class ASFTSettings(TrainingSettings):
    """Settings of ASFT."""

    anchor_weight: float = setting(
        0.05, "Weight of the KL to the anchor; the code's script uses 0.1.", unit="1", source="ASFT code, README", ge=0
    )
    anchor_direction: Literal["forward", "reverse"] = setting(
        "forward",
        "forward: KL(anchor || student), as in the code; reverse: KL(student || anchor), as in the paper.",
        unit="choice",
        source=_CODE,
    )
    anchor: Literal["task_start", "original"] = setting(
        "task_start",
        "Frozen model that the student is held near; in a single stage the two are the same.",
        unit="choice",
        source=_CODE,
        inferred=True,
    )
    weighting: Literal["probability", "none"] = setting(
        "probability", "Token weights: DFT's, or none (SFT with a KL anchor).", unit="choice", source=_CODE
    )


class ASFT(Method):
    """Anchored SFT (2509.23753): DFT's loss plus a full-vocabulary KL to a frozen model, token mean over the labels.

    Paper and code disagree on the direction of the KL: the code, and so the default here, uses KL(anchor || student),
    section 5.3 of the paper KL(student || anchor).
    """

    name: ClassVar[str] = "asft"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.DEMONSTRATIONS})
    fidelity: ClassVar[Fidelity] = Fidelity.REFERENCE_EXECUTED
    checked: ClassVar[str] = "vectors of the authors' code; gradients by hand"
    paper: ClassVar[str] = "2509.23753"
    family: ClassVar[str] = "supervised"
    Settings: ClassVar[type[MethodSettings]] = ASFTSettings

    def adapt(self, student: Student, stage: Stage, context: Context) -> Adaptation:
        """Train on the demonstrations. Raises ``NothingAcceptedError`` where no row is left."""
        settings = cast(ASFTSettings, cast(ASFTSettings, self.settings).for_stage(stage))
        frozen = context.original() if settings.anchor == "original" else context.task_start()
        divergence = forward_kl if settings.anchor_direction == "forward" else reverse_kl
        token_loss = dft_loss if settings.weighting == "probability" else cross_entropy
        anchor = Anchor(frozen.model, divergence, settings.anchor_weight)
        return train_on_demonstrations(self, student, stage, context, settings, token_loss, anchor)
