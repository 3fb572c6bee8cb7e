"""A penalty on the size of the logits at the tokens under the loss: a whole modifier in one file of a package."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, cast

import torch
from torch import Tensor

from cl_bench.methods.base import Fidelity, MethodSettings, Modifier, Student, setting
from cl_bench.methods.training.forward import head_of, hidden_at, shifted


class CalmOutputSettings(MethodSettings):
    """One setting."""

    strength: float = setting(1e-4, "Weight of the squared log-partition.", unit="1", source="2204.02311", ge=0)


class CalmOutput(Modifier):
    """Adds strength x (log of the sum of the exponentiated logits)^2, token mean over the optimizer step (z-loss)."""

    name: ClassVar[str] = "calm-output"
    paper: ClassVar[str] = "2204.02311"
    fidelity: ClassVar[Fidelity] = Fidelity.PAPER_FORMULA
    Settings: ClassVar[type[MethodSettings]] = CalmOutputSettings

    def token_penalty(self, student: Student, batch: Mapping[str, Tensor]) -> tuple[Tensor, Tensor] | None:
        """Sum over the micro-batch's loss tokens, and their number."""
        under_loss = batch["loss_weights"] > 0
        logits = head_of(student.model)(hidden_at(student.model, batch, shifted(under_loss)))
        partition = torch.logsumexp(logits.float(), dim=-1)
        return cast(CalmOutputSettings, self.settings).strength * partition.square().sum(), under_loss.sum()
