"""Parameter drift: how far the weights moved from an anchor, and what the change of one matrix looks like."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor


def weight_drift(pairs: Iterable[tuple[Tensor, Tensor]]) -> dict[str, float]:
    """Distance between two models, all weights taken as one vector.

    Args:
        pairs: (anchor, current) of each weight, tied weights once; any shape, same shape within a pair. Storing weights
            in bf16 makes small drift read as zero: pass the fp32 master weights.

    Returns:
        ``l2``; ``relative_l2`` = l2 / norm of the anchor; ``cosine`` of the angle between anchor and current.
    """
    squared, anchor_norm, current_norm, inner = (torch.zeros((), dtype=torch.float64) for _ in range(4))
    for anchor, current in pairs:
        before, after = anchor.double().flatten(), current.double().flatten()
        squared += (after - before).square().sum()
        anchor_norm += before.square().sum()
        current_norm += after.square().sum()
        inner += before @ after
    return {
        "l2": float(squared.sqrt()),
        "relative_l2": float((squared / anchor_norm).sqrt()),
        "cosine": float(inner / (anchor_norm * current_norm).sqrt()),
    }


def matrix_change(anchor: Tensor, current: Tensor, tolerance: float = 1e-3) -> dict[str, float]:
    """The change of one weight matrix [m, n].

    Args:
        anchor: Matrix before.
        current: Matrix after.
        tolerance: A weight counts as changed when it moved by more than this times its own size before.

    Returns:
        ``spectral_norm``; ``stable_rank`` = squared Frobenius norm / squared spectral norm; ``effective_rank`` =
        exp(entropy of the normalised singular values, Roy and Vetterli 2007); ``effective_rank_energy``, the same of
        the squared ones; ``changed_share``. The ranks of no change at all are 0.
    """
    before, after = anchor.double(), current.double()
    change = after - before
    singular = torch.linalg.svdvals(change)
    largest = float(singular.max())
    moved = change.abs() > tolerance * before.abs()
    return {
        "spectral_norm": largest,
        "stable_rank": float(singular.square().sum()) / largest**2 if largest > 0 else 0.0,
        "effective_rank": _entropy_rank(singular),
        "effective_rank_energy": _entropy_rank(singular.square()),
        "changed_share": float(moved.double().mean()),
    }


def state_drift(anchor: Mapping[str, Tensor], current: Mapping[str, Tensor]) -> dict[str, float]:
    """``weight_drift`` of two state dicts, over the names that both have; tied weights (one storage) once."""
    seen: set[int] = set()
    pairs = []
    for name, before in anchor.items():
        if name in current and before.is_floating_point() and before.data_ptr() not in seen:
            seen.add(before.data_ptr())
            pairs.append((before, current[name]))
    return weight_drift(pairs)


def _entropy_rank(weights: Tensor) -> float:
    total = weights.sum()
    if float(total) == 0:
        return 0.0
    shares = weights / total
    return float(torch.special.entr(shares).sum().exp())
