"""O-LoRA: each stage trains a new adapter, held orthogonal to those of earlier stages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, cast

import torch
from torch import Tensor

from cl_bench.methods.base import Context, Fidelity, MethodSettings, Modifier, Stage, Student, setting
from cl_bench.methods.training.adapters import AdapterSettings, attach, merge, subspaces


class OLoRASettings(AdapterSettings):
    """Settings of O-LoRA."""

    strength: float = setting(
        0.5, "Weight of the overlap with earlier adapters.", unit="1", source="O-LoRA (2310.14152) and its code", ge=0
    )


class OLoRA(Modifier):
    """Adds strength x the sum over layers and earlier stages i of |A_i A^T| once per optimizer step (2310.14152).

    The rows of A span what an adapter reads. Earlier adapters stay active and frozen: they are merged into the weights,
    which computes the same. The sum of absolute values is the reference code's; the paper's formula squares them.
    """

    name: ClassVar[str] = "o-lora"
    paper: ClassVar[str] = "2310.14152"
    fidelity: ClassVar[Fidelity] = Fidelity.PAPER_FORMULA
    checked: ClassVar[str] = "penalty by hand"
    reparametrises: ClassVar[bool] = True
    Settings: ClassVar[type[MethodSettings]] = OLoRASettings

    def __init__(self, settings: MethodSettings | None = None) -> None:
        """Build with settings (defaults where None)."""
        super().__init__(settings)
        self._earlier: dict[str, Tensor] = {}

    def before_stage(self, student: Student, stage: Stage, context: Context) -> None:
        """Attach the stage's adapter."""
        attach(student.model, cast(OLoRASettings, self.settings), context.row_seed("adapter", stage.name))

    def parameter_penalty(self, student: Student) -> Tensor | None:
        """The overlap, a scalar; None in the first stage."""
        if not self._earlier:
            return None
        parts = [(self._earlier[name].to(rows) @ rows.T).abs().sum() for name, rows in subspaces(student.model).items()]
        return cast(OLoRASettings, self.settings).strength * torch.stack(parts).sum()

    def after_stage(self, student: Student, stage: Stage, context: Context) -> None:
        """Remember what the adapter reads, and merge it."""
        for name, rows in subspaces(student.model).items():
            before = [self._earlier[name]] if name in self._earlier else []
            self._earlier[name] = torch.cat([*before, rows.detach().clone()])
        merge(student.model)

    def state_dict(self) -> dict[str, Any]:
        """A of all earlier adapters, [stages x rank, inputs] by layer."""
        return {"earlier": self._earlier}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Inverse of ``state_dict``."""
        self._earlier = dict(state["earlier"])
