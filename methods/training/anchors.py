"""A frozen model that a student is held near: divergence on the loss tokens, from the same inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from cl_bench.harness.measure.cost import forward_flops
from cl_bench.methods.training.divergences import Divergence, chunked
from cl_bench.methods.training.forward import computed_tokens, head_of, hidden_at


@dataclass(frozen=True, slots=True)
class Anchor:
    """What a student is held near.

    Attributes:
        model: A causal language model; gets no gradient.
        divergence: Of the student's logits from the model's.
        weight: Times the divergence of each loss token.
    """

    model: Any
    divergence: Divergence
    weight: float

    def flops(self, batch: Mapping[str, Tensor]) -> float:
        """Operations of the model's forward pass over a batch; tied weights count once."""
        parameters = sum(parameter.numel() for parameter in self.model.parameters())
        return forward_flops(parameters, computed_tokens(self.model, batch))


def anchor_loss(anchor: Anchor, student: Any, hidden: Tensor, batch: Mapping[str, Tensor], keep: Tensor) -> Tensor:
    """Weight x divergence at each loss token, [N].

    Args:
        anchor: What the student is held near.
        student: The student's model.
        hidden: The student's hidden states at the kept positions, [N, D].
        batch: ``input_ids`` and ``attention_mask``, [B, T]: what the student saw, and the anchor sees.
        keep: Boolean [B, T], the kept positions.
    """
    with torch.no_grad():
        anchored = hidden_at(anchor.model, batch, keep)
    vocabulary = int(student.config.vocab_size)
    values = chunked(anchor.divergence, hidden, anchored, head_of(student), head_of(anchor.model), vocabulary)
    return anchor.weight * values
