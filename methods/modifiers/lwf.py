"""LwF: the loss of any method plus a divergence from a frozen model on the same tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, cast

from torch import Tensor

from cl_bench.methods.base import Context, Fidelity, MethodSettings, Modifier, Stage, Student, setting
from cl_bench.methods.training.anchors import Anchor, anchor_loss
from cl_bench.methods.training.divergences import forward_kl, tempered
from cl_bench.methods.training.forward import hidden_at, shifted

_PAPER = "LwF (1606.09282)"


class LwFSettings(MethodSettings):
    """Settings of LwF."""

    strength: float = setting(1.0, "Weight of the divergence a token.", unit="1", source=_PAPER, ge=0)
    temperature: float = setting(
        1.0,
        "Divides both models' logits; the paper uses 2. No rescaling.",
        unit="1",
        source=_PAPER,
        inferred=True,
        gt=0,
    )
    anchor: Literal["task_start", "original"] = setting(
        "task_start", "Frozen model: that of the stage's start, as in the paper, or the untouched one.", unit="choice",
        source=_PAPER,
    )  # fmt: skip


class LwF(Modifier):
    """Adds strength x KL(anchor || student) on the tokens under the loss, token mean over the step (1606.09282).

    The inputs are the new task's own; no earlier data is needed. One forward pass of each model more per micro-batch.
    """

    name: ClassVar[str] = "lwf"
    paper: ClassVar[str] = "1606.09282"
    fidelity: ClassVar[Fidelity] = Fidelity.PAPER_FORMULA
    checked: ClassVar[str] = "values and gradients by hand"
    Settings: ClassVar[type[MethodSettings]] = LwFSettings

    def __init__(self, settings: MethodSettings | None = None) -> None:
        """Build with settings (defaults where None)."""
        super().__init__(settings)
        self._frozen: Any = None

    def before_stage(self, student: Student, stage: Stage, context: Context) -> None:
        """Take the anchor."""
        original = cast(LwFSettings, self.settings).anchor == "original"
        self._frozen = (context.original() if original else context.task_start()).model

    def token_penalty(self, student: Student, batch: Mapping[str, Tensor]) -> tuple[Tensor, Tensor] | None:
        """Sum over the micro-batch's loss tokens, and their number."""
        settings = cast(LwFSettings, self.settings)
        under_loss = batch["loss_weights"] > 0
        keep = shifted(under_loss)
        anchor = Anchor(self._frozen, tempered(forward_kl, settings.temperature), settings.strength)
        hidden = hidden_at(student.model, batch, keep)
        return anchor_loss(anchor, student.model, hidden, batch, keep).sum(), under_loss.sum()

    def after_stage(self, student: Student, stage: Stage, context: Context) -> None:
        """Let the anchor go."""
        self._frozen = None
