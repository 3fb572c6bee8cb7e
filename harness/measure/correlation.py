"""Does shift go together with forgetting? Correlations over points, with bootstrap intervals.

A point is one checkpoint: x a shift, y a change of retention. Pearson is the claim (linear), Spearman the check. Points
of one run, or of one model and task, are not independent: ``clustered`` draws them together. All functions raise
``UndefinedMetricError`` with the reason where there is no value.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cl_bench.harness.measure.scores import UndefinedMetricError
from cl_bench.harness.measure.statistics.intervals import LEVEL, RESAMPLES, Interval, expansion

Values = NDArray[np.float64]
SMALLEST_CLUSTERS = 8
"""Fewer clusters give no interval and no claim."""
_FEWEST_POINTS = 3
_NEARLY_ONE = 1 - 1e-12
_NO_VARIANCE = 1e-14
"""Share of the squared size of numbers below which their variance is rounding."""


@dataclass(frozen=True, slots=True)
class Correlation:
    """A correlation with its line and plain percentile intervals.

    Attributes:
        n: Points.
        pearson: Pearson's r.
        pearson_p: Two-sided p value of r, of independent points.
        spearman: Spearman's rho, average ranks on ties.
        slope: Least-squares slope.
        intercept: Least-squares intercept.
        pearson_interval: Percentile bootstrap interval.
        spearman_interval: Percentile bootstrap interval, of ranks within each resample.
        resamples: Bootstrap resamples that had a value (those without variance have none).
    """

    n: int
    pearson: float
    pearson_p: float
    spearman: float
    slope: float
    intercept: float
    pearson_interval: Interval
    spearman_interval: Interval
    resamples: int


@dataclass(frozen=True, slots=True)
class ClusterIntervals:
    """Intervals of a correlation over other clusters.

    Attributes:
        clusters: Number of clusters.
        pearson: 95 % interval of Pearson's r; None for fewer than ``SMALLEST_CLUSTERS``.
        spearman: 95 % interval of Spearman's rho; None likewise.
        reason: Why there are none.
    """

    clusters: int
    pearson: Interval | None
    spearman: Interval | None
    reason: str = ""


def correlate(
    x: Sequence[float], y: Sequence[float], indices: Iterable[NDArray[np.int64]], level: float = LEVEL
) -> Correlation:
    """Correlate pairs, with percentile intervals from given resamples.

    The plain percentile interval covers less than its level with few points (0.90 for 8, 0.92 to 0.93 for 30; from 100
    on what it should: ``benchmarks/correlation_coverage.py``); ``clustered`` gives the intervals that are shown.

    Args:
        x: Shift of each point.
        y: Change of retention of each point.
        indices: Bootstrap resamples (``resamples`` or ``cluster_resamples``).
        level: Coverage of the intervals.

    Raises:
        UndefinedMetricError: Fewer than two points, different lengths, a number that is not finite, or no variance.
    """
    first, second = pairs(x, y)
    r, slope, intercept = line(first, second)
    weights = _weights(indices, first.size)
    drawn = weighted_pearson(weights, first, second)
    ranked = _row_pearson(weights, _weighted_ranks(weights, first), _weighted_ranks(weights, second))
    usable = np.isfinite(drawn)
    return Correlation(
        n=first.size,
        pearson=r,
        pearson_p=pearson_p(r, first.size),
        spearman=spearman(first, second),
        slope=slope,
        intercept=intercept,
        pearson_interval=_percentiles(drawn[usable], level),
        spearman_interval=_percentiles(ranked[usable], level),
        resamples=int(usable.sum()),
    )


def clustered(
    x: Sequence[float], y: Sequence[float], clusters: Sequence[str], level: float = LEVEL, count: int = RESAMPLES
) -> ClusterIntervals:
    """Intervals of Pearson's r and Spearman's rho from a bootstrap over whole clusters; the same points, the same ones.

    Percentiles are taken on Fisher's scale (atanh r), where they lie nearly symmetrical, and moved out from the
    estimate as far as Student's t of the number of clusters is wider than the bootstrap (Hesterberg, 1411.5279). Ranks
    are those of all points.

    Args:
        x: One number a point.
        y: Another.
        clusters: Name of each point's cluster.
        level: Coverage of the intervals.
        count: Resamples.

    Raises:
        UndefinedMetricError: As ``correlate``.
    """
    first, second = pairs(x, y)
    number = len(set(clusters))
    if number < SMALLEST_CLUSTERS:
        return ClusterIntervals(number, None, None, f"{number} clusters; an interval needs {SMALLEST_CLUSTERS}")
    weights = _cluster_weights(clusters, count)

    def interval(one: Values, other: Values) -> Interval:
        return _expanded(weighted_pearson(weights, one, other), pearson(one, other), number, level)

    return ClusterIntervals(number, interval(first, second), interval(_ranks(first), _ranks(second)))


def resamples(n: int, count: int = RESAMPLES, seed: int = 0) -> NDArray[np.int64]:
    """Indices of ``count`` bootstrap resamples of n points, [count, n]."""
    return np.random.default_rng(seed).integers(0, n, (count, n))


def cluster_resamples(clusters: Sequence[str], count: int = RESAMPLES, seed: int = 0) -> list[NDArray[np.int64]]:
    """Indices of resamples that draw whole clusters: points that share a base model are not independent."""
    names = sorted(set(clusters))
    members = {name: np.flatnonzero(np.asarray(clusters) == name) for name in names}
    generator = np.random.default_rng(seed)
    draws = generator.integers(0, len(names), (count, len(names)))
    return [np.concatenate([members[names[index]] for index in row]) for row in draws]


def line(x: Sequence[float] | Values, y: Sequence[float] | Values) -> tuple[float, float, float]:
    """Pearson's r, slope and intercept of the least-squares line."""
    first, second = pairs(x, y)
    r = pearson(first, second)
    slope = r * float(second.std()) / float(first.std())
    return r, slope, float(second.mean()) - slope * float(first.mean())


def partial_pearson(x: Sequence[float], y: Sequence[float], control: Sequence[Sequence[float]]) -> float:
    """Pearson's r of what is left of x and y after least squares on the controls (each a list over the points)."""
    first, second = pairs(x, y)
    columns = [np.asarray(column, dtype=np.float64) for column in control]
    if not all(np.isfinite(column).all() for column in columns):
        raise UndefinedMetricError("a control is no finite number")
    if first.size < len(columns) + 3:
        raise UndefinedMetricError(f"{first.size} points and {len(columns)} controls: too few points")
    design = np.column_stack([np.ones(first.size), *columns])
    rest = [target - design @ np.linalg.lstsq(design, target, rcond=None)[0] for target in (first, second)]
    if any(_vanished(left, target) for left, target in zip(rest, (first, second), strict=True)):
        raise UndefinedMetricError("the controls explain one of the two entirely")
    return pearson(*rest)


def pearson(x: Values, y: Values) -> float:
    """Pearson's r. Raises ``UndefinedMetricError`` without variance."""
    if constant(x) or constant(y):
        raise UndefinedMetricError("a correlation needs variance in both lists")
    return float(np.clip(np.corrcoef(x, y)[0, 1], -1, 1))


def spearman(x: Sequence[float] | Values, y: Sequence[float] | Values) -> float:
    """Spearman's rho, average ranks on ties. Raises ``UndefinedMetricError`` as ``correlate`` does."""
    first, second = pairs(x, y)
    return pearson(_ranks(first), _ranks(second))


def pearson_p(r: float, n: int) -> float:
    """Two-sided p value of Pearson's r of n independent points; NaN for two."""
    from scipy.special import stdtr

    if n < _FEWEST_POINTS:
        return math.nan
    if abs(r) >= _NEARLY_ONE:
        return 0.0
    return float(2 * stdtr(n - 2, -abs(r) * math.sqrt((n - 2) / (1 - r * r))))


def weighted_pearson(weights: Values, x: Values, y: Values) -> Values:
    """Pearson's r under each row of weights, [resamples]; NaN where a row leaves no variance."""
    return _row_pearson(weights, x - x.mean(), y - y.mean())


def _row_pearson(weights: Values, x: Values, y: Values) -> Values:
    """``x`` and ``y``: [points], or [resamples, points]."""
    total = weights.sum(axis=1)

    def mean(values: Values) -> Values:
        sums: Values = weights @ values if values.ndim == 1 else (weights * values).sum(axis=1)
        means: Values = sums / total
        return means

    mean_x, mean_y, mean_xx, mean_yy = mean(x), mean(y), mean(x * x), mean(y * y)
    of_x, of_y = mean_xx - mean_x**2, mean_yy - mean_y**2
    varied = (of_x > _NO_VARIANCE * mean_xx) & (of_y > _NO_VARIANCE * mean_yy)
    with np.errstate(invalid="ignore", divide="ignore"):
        r = (mean(x * y) - mean_x * mean_y) / np.sqrt(of_x * of_y)
    found: Values = np.where(varied, np.clip(r, -1, 1), np.nan)
    return found


def _weighted_ranks(weights: Values, values: Values) -> Values:
    """Average rank of every point within each resample, [resamples, points]."""
    less = (values[None, :] < values[:, None]).astype(float)
    equal = (values[None, :] == values[:, None]).astype(float)
    ranks: Values = weights @ less.T + (weights @ equal.T + 1) / 2
    return ranks


def _ranks(values: Values) -> Values:
    ranks: Values = _weighted_ranks(np.ones((1, values.size)), values)[0]
    return ranks


def _weights(indices: Iterable[NDArray[np.int64]], n: int) -> Values:
    """How often each resample holds each point, [resamples, points]."""
    return np.array([np.bincount(row, minlength=n) for row in indices], dtype=np.float64).reshape(-1, n)


def _cluster_weights(clusters: Sequence[str], count: int, seed: int = 0) -> Values:
    """``_weights`` of ``cluster_resamples``, without the lists of indices."""
    codes = np.unique(np.asarray(clusters), return_inverse=True)[1]
    number = int(codes.max()) + 1
    draws = np.random.default_rng(seed).integers(0, number, (count, number))
    places = draws + number * np.arange(count)[:, None]
    drawn = np.bincount(places.ravel(), minlength=number * count).reshape(count, number)
    weights: Values = drawn[:, codes].astype(np.float64)
    return weights


def pairs(x: Sequence[float] | Values, y: Sequence[float] | Values) -> tuple[Values, Values]:
    """Both as arrays that have a correlation. Raises ``UndefinedMetricError`` as ``correlate`` does."""
    first, second = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if first.shape != second.shape or first.size < 2:
        sizes = f"not {first.size} and {second.size}"
        raise UndefinedMetricError(f"two equally long lists of at least two points are needed, {sizes}")
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise UndefinedMetricError("a number is not finite")
    if constant(first) or constant(second):
        raise UndefinedMetricError("a correlation needs variance in both lists")
    return first, second


def constant(values: Values) -> bool:
    """Whether all values are the same."""
    # Equal decimal fractions differ in their last bits.
    return bool(np.ptp(values) <= 1e-12 * np.abs(values).max(initial=0))


def _vanished(left: Values, target: Values) -> bool:
    return bool(np.abs(left).max() <= 1e-9 * np.abs(target - target.mean()).max())


def _expanded(drawn: Values, estimate: float, clusters: int, level: float) -> Interval:
    # A resample that leaves no variance has no correlation; the draw of every cluster once always has one.
    scale = np.arctanh(np.clip([*drawn[np.isfinite(drawn)], estimate], -_NEARLY_ONE, _NEARLY_ONE))
    centre = math.atanh(max(-_NEARLY_ONE, min(_NEARLY_ONE, estimate)))
    ends = np.percentile(scale, [50 * (1 - level), 50 * (1 + level)])
    low, high = np.tanh(centre + expansion(clusters, level) * (ends - centre))
    return float(low), float(high)


def _percentiles(values: Values, level: float) -> Interval:
    if not values.size:
        return (math.nan, math.nan)
    low, high = np.percentile(values, [50 * (1 - level), 50 * (1 + level)])
    return float(low), float(high)
