"""Task vectors: what each stage changed is added up on the untouched model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, cast

import torch
from torch import Tensor

from cl_bench.methods.base import Context, Fidelity, MethodSettings, Modifier, Stage, Student, setting
from cl_bench.methods.training.adapters import load_weights

_PAPER = "task arithmetic (2212.04089)"


class TaskVectorsSettings(MethodSettings):
    """Settings of task vectors."""

    scale: float = setting(
        0.5, "Weight of the sum of task vectors; the paper finds 0.3 to 0.5 for many.", unit="1", source=_PAPER,
        inferred=True, ge=0,
    )  # fmt: skip
    start: Literal["parallel", "sequential"] = setting(
        "parallel",
        "Where a stage's training starts: parallel, from the untouched model; sequential, from the merged one before.",
        unit="choice",
        source=_PAPER,
        inferred=True,
    )


class TaskVectors(Modifier):
    """After each stage the weights are those of the untouched model + scale x the sum of task vectors (2212.04089).

    A task vector is what training changed in its stage, in fp32. Sequential with scale 1 is training without this
    modifier.
    """

    name: ClassVar[str] = "task-vectors"
    paper: ClassVar[str] = "2212.04089"
    fidelity: ClassVar[Fidelity] = Fidelity.PAPER_FORMULA
    checked: ClassVar[str] = "sums by hand"
    Settings: ClassVar[type[MethodSettings]] = TaskVectorsSettings

    def __init__(self, settings: MethodSettings | None = None) -> None:
        """Build with settings (defaults where None)."""
        super().__init__(settings)
        self._sum: dict[str, Tensor] = {}
        self._start: dict[str, Tensor] = {}

    def before_stage(self, student: Student, stage: Stage, context: Context) -> None:
        """Go to the weights that this stage's training starts from, and remember them."""
        parallel = cast(TaskVectorsSettings, self.settings).start == "parallel"
        source = context.original() if parallel else context.task_start()
        self._start = {name: weight.detach().clone() for name, weight in source.model.named_parameters()}
        load_weights(student.model, self._start)

    @torch.no_grad()
    def after_stage(self, student: Student, stage: Stage, context: Context) -> None:
        """Add the stage's task vector, and put the sum on the untouched model."""
        original = dict(context.original().model.named_parameters())
        for name, weight in student.model.named_parameters():
            vector = weight - self._start[name]
            self._sum[name] = self._sum[name].to(vector) + vector if name in self._sum else vector
            weight.copy_(original[name] + cast(TaskVectorsSettings, self.settings).scale * self._sum[name])
        self._start = {}

    def state_dict(self) -> dict[str, Any]:
        """The sum of the task vectors so far."""
        return {"sum": self._sum}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Inverse of ``state_dict``."""
        self._sum = dict(state["sum"])
