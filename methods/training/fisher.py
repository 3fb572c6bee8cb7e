"""Diagonal Fisher information and the quadratic penalty of EWC (1612.00796)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import Tensor

from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.methods.training.adapters import effective_weights

Weights = Mapping[str, Tensor]


def squared_gradients(parameters: Weights, examples: Iterable[Sequence[tuple[float, Tensor]]]) -> dict[str, Tensor]:
    """Mean over examples of the squared gradient of each one's log-likelihood: the diagonal Fisher, at least fp32.

    Squaring the gradient of a batch's mean instead gives another, smaller quantity.

    Args:
        parameters: Weights by name, with gradient.
        examples: For each example its outcomes as (probability, log-likelihood). One outcome of probability 1, the gold
            answer or a sample of the model, gives the empirical or the sampled Fisher; all outcomes the exact one.
    """
    names, weights = list(parameters), list(parameters.values())
    total = {name: torch.zeros_like(weight, dtype=_wide(weight)) for name, weight in parameters.items()}
    count = 0
    for outcomes in examples:
        count += 1
        for probability, log_likelihood in outcomes:
            gradients = torch.autograd.grad(log_likelihood, weights, retain_graph=len(outcomes) > 1, allow_unused=True)
            for name, gradient in zip(names, gradients, strict=True):
                if gradient is not None:
                    total[name] += probability * gradient.detach().to(total[name].dtype).square()
    return {name: value / max(count, 1) for name, value in total.items()}


def trained_weights(student: ChatModel) -> dict[str, Tensor]:
    """The student's weights that training moves, by name, tied ones once; with adapters, what the weights amount to."""
    return {name: weight for name, weight in effective_weights(student.model).items() if weight.requires_grad}


def quadratic_penalty(parameters: Weights, anchor: Weights, importance: Weights | None, strength: float) -> Tensor:
    """Half of strength x the sum of importance x (weight - anchor)^2, a scalar: the paper's form.

    avalanche and mammoth leave the half out: their lambda is half of this one. ``importance`` None counts all alike.
    """
    parts = []
    for name, weight in parameters.items():
        squared = (weight.to(_wide(weight)) - anchor[name]).square()
        parts.append((squared if importance is None else importance[name] * squared).sum())
    return strength / 2 * torch.stack(parts).sum()


def _wide(weight: Tensor) -> torch.dtype:
    return torch.float64 if weight.dtype == torch.float64 else torch.float32
