"""The information-proximal target of iSDFT: between student and teacher, as near the student as a budget allows.

q(lambda) is proportional to student^(1 - lambda) x teacher^lambda. Everything here is a constant for the gradient.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

Constraint = Literal["information", "kl", "fixed"]


@dataclass(frozen=True, slots=True)
class Tilt:
    """Targets at N positions.

    Attributes:
        log_target: log q, [N, V].
        strength: lambda, [N].
        budget: What the constraint asks for, in nats, [N].
        reached: What the target gives of it, in nats, [N].
    """

    log_target: Tensor
    strength: Tensor
    budget: Tensor
    reached: Tensor


@torch.no_grad()
def tilted_target(student: Tensor, teacher: Tensor, rho: float, constraint: Constraint, iterations: int) -> Tilt:
    """Solve for lambda at each position by bisection on [0, 1].

    ``information`` is iSDFT: the smallest KL(q || student) with E_q[log teacher - log student] at least
    rho x KL(teacher || student). ``kl`` takes KL(q || student) = rho x KL(teacher || student) instead, and ``fixed``
    lambda = rho; both are ablations and not iSDFT.

    Args:
        student: Log-probabilities, [N, V].
        teacher: Log-probabilities, [N, V].
        rho: Budget, from 0 to 1. In ``information`` 0 is not the student: E_q[...] >= 0 already asks for about a half.
        constraint: Which.
        iterations: Halvings; 40 reach fp32, 60 fp64.
    """
    delta = teacher - student
    distance = (teacher.exp() * delta).sum(-1)
    budget = rho * distance
    if constraint == "fixed":
        strength = torch.full_like(distance, rho)
    else:
        low, high = torch.zeros_like(distance), torch.ones_like(distance)
        for _ in range(iterations):
            middle = (low + high) / 2
            short = _reached(_at(student, delta, middle), student, delta, constraint) < budget
            low, high = torch.where(short, middle, low), torch.where(short, high, middle)
        strength = high
    target = _at(student, delta, strength)
    return Tilt(target, strength, budget, _reached(target, student, delta, constraint))


def _at(student: Tensor, delta: Tensor, strength: Tensor) -> Tensor:
    return (student + strength[:, None] * delta).log_softmax(-1)


def _reached(target: Tensor, student: Tensor, delta: Tensor, constraint: Constraint) -> Tensor:
    gained = delta if constraint != "kl" else target - student
    return (target.exp() * gained).sum(-1)


def ramp(step: int, start: float, end: float, steps: int) -> float:
    """Linear from ``start`` at step 0 to ``end`` at ``steps``, constant afterwards."""
    return end if step >= steps else start + (end - start) * step / steps
