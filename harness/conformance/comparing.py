"""Whether two trainings came out the same: first steps within a tolerance, stages bit for bit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from cl_bench.harness.conformance.tiny import same_weights
from cl_bench.harness.conformance.trial import Outcome
from cl_bench.harness.conformance.watching import Weights

GRADIENT_TOLERANCE = 1e-4
"""Largest difference of a gradient's entries, relative to the tensor's largest."""
CHANGE_TOLERANCE = 2e-2
"""Norm of the difference of two changes of the weights, relative to the change: an optimizer may blow up rounding."""


def first_step_difference(one: Outcome, other: Outcome, why: str) -> str:
    """What is wrong where another way to make the first optimizer step gives something else, or nothing.

    Gradients are compared where both have them, else the changes of the weights.
    """
    if bool(one.gradients) != bool(other.gradients):
        return f"{why}: only one of the two made a step"
    if one.gradients:
        largest, name = _largest_difference(one.gradients, other.gradients)
        return f"{why}: gradients differ by {largest:.1e} ({name})" if largest > GRADIENT_TOLERANCE else ""
    changes = [{name: run.after[name] - run.before[name] for name in run.before} for run in (one, other)]
    size = _norm(changes[0])
    off = _norm({name: changes[0][name] - changes[1][name] for name in changes[0]})
    return (
        f"{why}: the weights' change differs by {off / max(size, 1e-30):.1e} of itself"
        if off > CHANGE_TOLERANCE * size
        else ""
    )


def _largest_difference(one: Weights, other: Weights) -> tuple[float, str]:
    """Largest difference relative to a tensor's largest entry; gradients that are rounding alone do not count."""
    overall = max(float(gradient.abs().max()) for gradient in one.values())
    found = [
        (float((one[name] - other[name]).abs().max()) / max(float(one[name].abs().max()), 1e-3 * overall, 1e-30), name)
        for name in one
    ]
    return max(found)


def _norm(tensors: Weights) -> float:
    return math.sqrt(sum(float(value.double().square().sum()) for value in tensors.values()))


def unequal(one: Outcome, other: Outcome) -> str:
    """What differs between two trainings that must be equal bit for bit, in words; nothing where they are."""
    differing = [
        ("weights", not same_weights(one.after, other.after)),
        ("generated rows", one.ledger != other.ledger),
        ("counts of the adaptation", one.adaptation != other.adaptation),
        ("states", not same_state([p.state_dict() for p in one.parts], [p.state_dict() for p in other.parts])),
    ]
    return " and ".join(name for name, differs in differing if differs)


def same_state(one: Any, other: Any) -> bool:
    """Whether two nested states are equal, tensors bit for bit."""
    if isinstance(one, Tensor) or isinstance(other, Tensor):
        return isinstance(one, Tensor) and isinstance(other, Tensor) and torch.equal(one, other)
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same_state(value, other[key]) for key, value in one.items())
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(same_state(a, b) for a, b in zip(one, other, strict=True))
    return bool(one == other)
