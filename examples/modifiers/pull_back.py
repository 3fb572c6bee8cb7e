"""A penalty that pulls the weights towards where the stage began (L2-SP): a whole modifier in one file."""

from __future__ import annotations

from typing import ClassVar, cast

import torch
from torch import Tensor

from cl_bench.methods.base import Context, Fidelity, MethodSettings, Modifier, Stage, Student, setting


class PullBackSettings(MethodSettings):
    """One setting."""

    strength: float = setting(
        0.1, "Weight of half the squared distance to the anchor.", unit="1", source="Li et al. 2018", gt=0
    )


class PullBack(Modifier):
    """Adds ``strength / 2 * |theta - theta_start|^2`` once per optimizer step, before clipping.

    The anchor comes from the stage's verified starting checkpoint, so that it is the same after a resume.
    """

    name: ClassVar[str] = "pull-back"
    paper: ClassVar[str] = "L2-SP, 1802.01483"
    fidelity: ClassVar[Fidelity] = Fidelity.PAPER_FORMULA
    Settings: ClassVar[type[MethodSettings]] = PullBackSettings

    def __init__(self, settings: MethodSettings | None = None) -> None:
        """Build with settings (defaults where None)."""
        super().__init__(settings)
        self._anchor: dict[str, Tensor] = {}

    def before_stage(self, student: Student, stage: Stage, context: Context) -> None:
        """Take the anchor."""
        start = context.task_start().model
        self._anchor = {name: parameter.detach().clone() for name, parameter in start.named_parameters()}

    def parameter_penalty(self, student: Student) -> Tensor | None:
        """The penalty, a scalar."""
        strength = cast(PullBackSettings, self.settings).strength
        distances = [
            (parameter - self._anchor[name]).square().sum()
            for name, parameter in student.model.named_parameters()
            if parameter.requires_grad
        ]
        return 0.5 * strength * torch.stack(distances).sum()
