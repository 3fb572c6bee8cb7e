"""Does shift go together with forgetting? Correlations over points, with bootstrap intervals.

A point is one checkpoint: x a shift, y a change of retention. Pearson is the claim (linear), Spearman the check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Correlation:
    """A correlation with its line and intervals.

    Attributes:
        n: Points.
        pearson: Pearson's r.
        pearson_p: Two-sided p value of r.
        spearman: Spearman's rho, average ranks on ties.
        slope: Least-squares slope.
        intercept: Least-squares intercept.
        pearson_interval: Percentile bootstrap interval.
        spearman_interval: Percentile bootstrap interval.
        resamples: Bootstrap resamples that had a value (those without variance have none).
    """

    n: int
    pearson: float
    pearson_p: float
    spearman: float
    slope: float
    intercept: float
    pearson_interval: tuple[float, float]
    spearman_interval: tuple[float, float]
    resamples: int


def correlate(
    x: Sequence[float], y: Sequence[float], indices: Iterable[NDArray[np.int64]], level: float = 0.95
) -> Correlation:
    """Correlate pairs.

    Args:
        x: Shift of each point.
        y: Change of retention of each point.
        indices: Bootstrap resamples (``resamples`` or ``cluster_resamples``).
        level: Coverage of the intervals.

    Raises:
        ValueError: Fewer than two points, different lengths, or no variance.
    """
    from scipy import stats

    first, second = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if first.shape != second.shape or first.size < 2:
        raise ValueError(
            f"two equally long lists of at least two points are needed, not {first.size} and {second.size}"
        )
    if _constant(first) or _constant(second):
        raise ValueError("a correlation needs variance in both lists")
    pearson, line = stats.pearsonr(first, second), stats.linregress(first, second)
    drawn = [(first[row], second[row]) for row in indices]
    usable = [(one, two) for one, two in drawn if not (_constant(one) or _constant(two))]
    return Correlation(
        n=first.size,
        pearson=float(pearson.statistic),
        pearson_p=float(pearson.pvalue),
        spearman=_spearman(first, second),
        slope=float(line.slope),
        intercept=float(line.intercept),
        pearson_interval=_interval(usable, _pearson, level),
        spearman_interval=_interval(usable, _spearman, level),
        resamples=len(usable),
    )


def resamples(n: int, count: int = 2000, seed: int = 0) -> NDArray[np.int64]:
    """Indices of ``count`` bootstrap resamples of n points, [count, n]."""
    return np.random.default_rng(seed).integers(0, n, (count, n))


def cluster_resamples(clusters: Sequence[str], count: int = 2000, seed: int = 0) -> list[NDArray[np.int64]]:
    """Indices of resamples that draw whole clusters: points that share a base model are not independent."""
    names = sorted(set(clusters))
    members = {name: np.flatnonzero(np.asarray(clusters) == name) for name in names}
    generator = np.random.default_rng(seed)
    draws = generator.integers(0, len(names), (count, len(names)))
    return [np.concatenate([members[names[index]] for index in row]) for row in draws]


def partial_pearson(x: Sequence[float], y: Sequence[float], control: Sequence[Sequence[float]]) -> float:
    """Pearson's r of what is left of x and y after least squares on the controls (each a list over the points)."""
    design = np.column_stack([np.ones(len(x)), *(np.asarray(column, dtype=np.float64) for column in control)])

    def rest(values: Sequence[float]) -> Values:
        target = np.asarray(values, dtype=np.float64)
        left: Values = target - design @ np.linalg.lstsq(design, target, rcond=None)[0]
        return left

    return _pearson(rest(x), rest(y))


def _constant(values: Values) -> bool:
    return bool(np.ptp(values) == 0)


def _pearson(x: Values, y: Values) -> float:
    return float(np.corrcoef(x, y)[0, 1])


def _spearman(x: Values, y: Values) -> float:
    from scipy.stats import rankdata

    return _pearson(rankdata(x), rankdata(y))


def _interval(
    drawn: Sequence[tuple[Values, Values]], statistic: Callable[[Values, Values], float], level: float
) -> tuple[float, float]:
    values = [statistic(x, y) for x, y in drawn]
    if not values:
        return (float("nan"), float("nan"))
    low, high = np.percentile(values, [50 * (1 - level), 50 * (1 + level)])
    return float(low), float(high)
