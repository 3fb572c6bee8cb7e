"""The files that ``cl-bench new modifier`` writes; see ``method_template``."""

from __future__ import annotations

MODIFIER = '''"""@NAME@: say in one line what it does."""

from __future__ import annotations

from typing import ClassVar, cast

import torch
from torch import Tensor

from cl_bench.methods.base import Context, Fidelity, MethodSettings, Modifier, Stage, Student, setting


class @CLASS@Settings(MethodSettings):
    """Settings of @NAME@."""

    strength: float = setting(
        0.1, "Weight of half the squared distance to the anchor.", unit="1", source="cl-bench", ge=0
    )


class @CLASS@(Modifier):
    """Pulls the weights towards the start of the stage; put your own penalty in place of ``half_square``."""

    name: ClassVar[str] = "@NAME@"
    fidelity: ClassVar[Fidelity] = Fidelity.RECONSTRUCTED
    paper: ClassVar[str] = ""
    Settings: ClassVar[type[MethodSettings]] = @CLASS@Settings

    def __init__(self, settings: MethodSettings | None = None) -> None:
        """Build with settings (defaults where None)."""
        super().__init__(settings)
        self._anchor: dict[str, Tensor] = {}

    def before_stage(self, student: Student, stage: Stage, context: Context) -> None:
        """Take the anchor from a verified checkpoint, so that it is the same after a resume."""
        start = context.task_start().model.named_parameters()
        self._anchor = {name: weight.detach().clone() for name, weight in start}

    def parameter_penalty(self, student: Student) -> Tensor | None:
        """A scalar, once per optimizer step."""
        strength = cast(@CLASS@Settings, self.settings).strength
        # A name that the anchor lacks is an adapter's; frozen weights have not moved.
        weights = [(n, w) for n, w in student.model.named_parameters() if w.requires_grad and n in self._anchor]
        parts = [half_square(weight, self._anchor[name]) for name, weight in weights]
        return strength * torch.stack(parts).sum() if parts else None


def half_square(weight: Tensor, anchor: Tensor) -> Tensor:
    """Half the squared distance of two tensors of one shape, a scalar."""
    return 0.5 * (weight - anchor.to(weight)).square().sum()
'''

TEST = '''"""Tests of @NAME@: its penalty on numbers worked out by hand, and the checks of cl-bench."""

from __future__ import annotations

from pathlib import Path

import torch

from cl_bench.harness.cli import exit_code_of
from cl_bench.harness.plugins import import_file

FILE = @FILE@


def test_the_penalty_is_half_the_squared_distance() -> None:
    half_square = import_file(FILE).half_square
    assert half_square(torch.tensor([3.0, 1.0]), torch.tensor([1.0, 1.0])).item() == 2.0
    assert half_square(torch.ones(4), torch.ones(4)).item() == 0.0


def test_cl_bench_accepts_it() -> None:
    assert exit_code_of(["validate", "modifier", str(FILE)]) == 0
'''
