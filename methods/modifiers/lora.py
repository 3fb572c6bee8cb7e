"""LoRA: any method trains low-rank updates instead of the weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, cast

import torch
from torch import Tensor

from cl_bench.harness.errors import UsageError
from cl_bench.methods.base import Context, Fidelity, MethodSettings, Modifier, Stage, Student, setting
from cl_bench.methods.training.adapters import (
    AdapterSettings,
    adapter_weights,
    attach,
    effective_weights,
    load_weights,
    merge,
)


class LoRASettings(AdapterSettings):
    """Settings of LoRA."""

    between_stages: Literal["merge", "continue", "fresh"] = setting(
        "merge",
        "merge: into the weights, a new adapter each stage; continue: one adapter goes on; fresh: each stage starts a "
        "new one on the untouched model, and what earlier stages learnt is not in it.",
        unit="choice",
        source="cl-bench",
        inferred=True,
    )


class LoRA(Modifier):
    """Trains alpha / rank x B A beside every linear layer, weights frozen (2106.09685).

    Checkpoints hold merged fp32 weights, so a stage's result is a plain model everywhere. Learning rates are about ten
    times those of full training.
    """

    name: ClassVar[str] = "lora"
    paper: ClassVar[str] = "2106.09685"
    fidelity: ClassVar[Fidelity] = Fidelity.PAPER_FORMULA
    checked: ClassVar[str] = "ranks and merged outputs"
    reparametrises: ClassVar[bool] = True
    Settings: ClassVar[type[MethodSettings]] = LoRASettings

    def __init__(self, settings: MethodSettings | None = None) -> None:
        """Build with settings (defaults where None)."""
        super().__init__(settings)
        self._adapter: dict[str, Tensor] = {}

    def before_stage(self, student: Student, stage: Stage, context: Context) -> None:
        """Attach the adapter that this stage trains.

        Raises:
            UsageError: The adapter is to be continued, but the weights are not the untouched ones plus the adapter,
                because another modifier changed them.
        """
        settings = cast(LoRASettings, self.settings)
        merged = {name: weight.detach().clone() for name, weight in student.model.named_parameters()}
        if stage.index > 1 and settings.between_stages != "merge":
            load_weights(student.model, dict(context.original().model.named_parameters()))
        attach(student.model, settings, context.row_seed("adapter", stage.name))
        if self._adapter:
            load_weights(student.model, self._adapter)
            self._refuse_others(merged, effective_weights(student.model))

    def after_stage(self, student: Student, stage: Stage, context: Context) -> None:
        """Merge; keep the adapter where it goes on."""
        if cast(LoRASettings, self.settings).between_stages == "continue":
            self._adapter = adapter_weights(student.model)
        merge(student.model)

    def state_dict(self) -> dict[str, Any]:
        """The adapter that goes on."""
        return {"adapter": self._adapter}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Inverse of ``state_dict``."""
        self._adapter = dict(state["adapter"])

    def _refuse_others(self, merged: Mapping[str, Tensor], again: Mapping[str, Tensor]) -> None:
        changed = [name for name, weight in again.items() if not torch.allclose(weight, merged[name], atol=1e-6)]
        if changed:
            raise UsageError(
                "the adapter of the stage before cannot be continued",
                why=f"another modifier changed the weights after it ({changed[0]})",
                hint="--set modifier.lora.between_stages=merge",
            )
