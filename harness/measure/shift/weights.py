"""Parameter drift: how far the weights moved from an anchor, layer by layer, and what the changes look like."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from cl_bench.harness.measure.shift.records import Against, Record

RANKS_UP_TO = 20_000_000
"""Weights of a model up to which all singular values of its changes are computed: on one CPU core some ten seconds."""
TOLERANCE = 1e-3
"""A weight counts as changed when it moved by more than this times its own size before."""
_PIECE = 2**24
"""Weights looked at at once, in fp64."""
_LAYER = re.compile(r"(?:^|\.)(?:layers?|h|blocks?)\.(\d+)\.")
_UNITS = {
    "relative_l2": ("norm of the change / norm of the anchor", "1"),
    "cosine": ("all weights as one vector", "1"),
    "changed_share": (f"share of weights that moved by more than {TOLERANCE:g} of their size", "fraction"),
    "spectral_norm": ("largest over the changes of weight matrices", "weight"),
    "effective_rank": ("mean over the changes of weight matrices", "dimensions"),
    "stable_rank": ("mean over the changes of weight matrices", "dimensions"),
}
"""Reduction and unit of each measure."""
_OF_MATRICES = ("spectral_norm", "effective_rank", "stable_rank")


def weight_drift(pairs: Iterable[tuple[Tensor, Tensor]]) -> dict[str, float]:
    """Distance between two models, all weights taken as one vector.

    Args:
        pairs: (anchor, current) of each weight, tied weights once; any shape, same shape within a pair. Storing weights
            in bf16 makes small drift read as zero: pass the fp32 master weights.

    Returns:
        ``l2``; ``relative_l2`` = l2 / norm of the anchor; ``cosine`` of the angle between anchor and current.
    """
    moved = _Moved()
    for anchor, current in pairs:
        moved.add(anchor, current)
    return {"l2": moved.squared**0.5, "relative_l2": moved.relative_l2, "cosine": moved.cosine}


def matrix_change(anchor: Tensor, current: Tensor, tolerance: float = TOLERANCE) -> dict[str, float]:
    """The change of one weight matrix [m, n].

    Args:
        anchor: Matrix before.
        current: Matrix after.
        tolerance: A weight counts as changed when it moved by more than this times its own size before.

    Returns:
        ``spectral_norm``; ``stable_rank`` = squared Frobenius norm / squared spectral norm; ``effective_rank`` =
        exp(entropy of the normalised singular values, Roy and Vetterli 2007); ``effective_rank_energy``, the same of
        the squared ones; ``changed_share``. The ranks of no change at all are 0, all are NaN where the change is not
        finite.
    """
    before, after = anchor.double(), current.double()
    change = after - before
    finite = bool(change.isfinite().all())  # the decomposition of anything else is an error
    singular = torch.linalg.svdvals(change) if finite else torch.full((min(change.shape),), torch.nan).double()
    largest = float(singular.max())
    return {
        "spectral_norm": largest,
        "stable_rank": float(singular.square().sum()) / largest**2 if largest != 0 else 0.0,
        "effective_rank": _entropy_rank(singular),
        "effective_rank_energy": _entropy_rank(singular.square()),
        "changed_share": _changed(before, change, tolerance) / change.numel(),
    }


def weight_records(anchor: torch.nn.Module, current: torch.nn.Module, against: Against) -> list[Record]:
    """Relative L2, cosine, share changed, spectral norm and ranks of the change, over all weights and by layer.

    A piece of one weight is looked at at a time. Above ``RANKS_UP_TO`` weights the singular values, whose cost grows
    with the cube of a matrix's side, are left out with a reason. Weights that the other model lacks, or has in another
    shape, are counted in a remark.

    Args:
        anchor: The model before; parameters of the same names and shapes.
        current: The model after.
        against: Which model the anchor is.
    """
    before = dict(anchor.named_parameters())
    ranked = sum(weight.numel() for weight in before.values()) <= RANKS_UP_TO
    after = dict(current.named_parameters())
    alike = [name for name in after if name in before and before[name].shape == after[name].shape]
    apart = len(before.keys() | after.keys()) - len(alike)
    total, layers = _Moved(), dict[str, _Moved]()
    with torch.no_grad():
        for name, weight in after.items():
            if name in alike:
                moved = _Moved()
                moved.add(before[name], weight)
                if ranked and weight.dim() == 2:
                    moved.matrices.append(matrix_change(before[name], weight))
                total.merge(moved)
                layers.setdefault(layer_of(name), _Moved()).merge(moved)
    remark = f"{apart} weights left out that are not in both models in one shape" if apart else ""
    return [_record(name, total, layers, against, ranked, remark) for name in _UNITS]


def layer_of(name: str) -> str:
    """Layer that a parameter belongs to: its number, ``embeddings``, ``head`` or ``other`` (norms outside layers)."""
    number = _LAYER.search(name)
    if number:
        return f"layer {int(number[1])}"
    if "lm_head" in name:
        return "head"
    return "embeddings" if "embed" in name or re.search(r"\bw[tp]e\b", name) else "other"


@dataclass(slots=True)
class _Moved:
    """Sums over weights from which every measure follows."""

    squared: float = 0.0
    anchor: float = 0.0
    current: float = 0.0
    inner: float = 0.0
    changed: int = 0
    weights: int = 0
    matrices: list[dict[str, float]] = field(default_factory=list)

    def add(self, anchor: Tensor, current: Tensor) -> None:
        for one, other in zip(anchor.flatten().split(_PIECE), current.flatten().split(_PIECE), strict=True):
            before, after = one.double(), other.double()
            change = after - before
            self.squared += float(change.square().sum())
            self.anchor += float(before.square().sum())
            self.current += float(after.square().sum())
            self.inner += float((before * after).sum())
            self.changed += _changed(before, change, TOLERANCE)
            self.weights += change.numel()

    def merge(self, other: _Moved) -> None:
        for name in ("squared", "anchor", "current", "inner", "changed", "weights"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.matrices += other.matrices

    @property
    def relative_l2(self) -> float:
        return (self.squared / self.anchor) ** 0.5 if self.anchor else float("nan")

    @property
    def cosine(self) -> float:
        norms = (self.anchor * self.current) ** 0.5
        return self.inner / norms if norms else float("nan")

    def value(self, measure: str) -> float | None:
        """A measure; None for one of matrices where there is none."""
        if measure in _OF_MATRICES:
            found = [matrix[measure] for matrix in self.matrices]
            if not found:
                return None
            # torch's maximum, unlike Python's, is NaN where one of them is.
            return (
                float(torch.tensor(found, dtype=torch.float64).max())
                if measure == "spectral_norm"
                else sum(found) / len(found)
            )
        if measure == "changed_share":
            return self.changed / self.weights if self.weights else None
        return self.relative_l2 if measure == "relative_l2" else self.cosine


def _record(
    measure: str, total: _Moved, layers: Mapping[str, _Moved], against: Against, ranked: bool, remark: str
) -> Record:
    of_matrices = measure in _OF_MATRICES
    too_many = of_matrices and not ranked
    reduction, unit = _UNITS[measure]
    return Record(
        measure=f"parameter_{measure}",
        against=against,
        prompts="weights",
        contexts="none: weights against weights",
        reduction=reduction,
        unit=unit,
        n=len(total.matrices) if of_matrices else total.weights,
        value=None if too_many else total.value(measure),
        reason=f"not computed for models of more than {RANKS_UP_TO:,} weights" if too_many else remark,
        by={} if too_many else {name: moved.value(measure) for name, moved in layers.items()},
    )


def _changed(before: Tensor, change: Tensor, tolerance: float) -> int:
    return int((~(change.abs() <= tolerance * before.abs())).sum())  # a weight that became NaN has changed


def _entropy_rank(weights: Tensor) -> float:
    total = weights.sum()
    if float(total) == 0:
        return 0.0
    shares = weights / total
    return float(torch.special.entr(shares).sum().exp())
