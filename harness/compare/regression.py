"""Lines within groups and curves: is a correlation more than methods that lie apart, and is it a line?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cl_bench.harness.measure.correlation import SMALLEST_CLUSTERS, Values, constant, line, pairs
from cl_bench.harness.measure.scores import UndefinedMetricError
from cl_bench.harness.measure.statistics.intervals import LEVEL

_FEWEST_IN_GROUP = 3
_COEFFICIENTS = 3  # constant, linear, quadratic


@dataclass(frozen=True, slots=True)
class Quadratic:
    """A least-squares parabola beside the line.

    Attributes:
        n: Points.
        coefficient: Of the square of x in standard deviations of x, in units of y: 0 for a line.
        p: Two-sided p value of it, of independent points: with clusters it comes out too small, never too large, so
            that a curve is suspected too often rather than overlooked.
        line_share: Share of y's variance that the line explains.
        curve_share: Share that the parabola explains.
    """

    n: int
    coefficient: float
    p: float
    line_share: float
    curve_share: float


def within_groups(x: Sequence[float], y: Sequence[float], groups: Sequence[str]) -> tuple[float, float]:
    """Slope and correlation within groups (fixed effects): each group's means are taken off x and y.

    Args:
        x: One number a point.
        y: Another.
        groups: Name of each point's group.

    Raises:
        UndefinedMetricError: Every group has one point, or no variance is left.
    """
    if len(set(groups)) == len(groups):
        raise UndefinedMetricError("no group has two points")
    first, second = (_centred(values, groups) for values in (x, y))
    for left, values in ((first, x), (second, y)):
        if np.abs(left).max() <= 1e-9 * max(np.ptp(values), 1e-300):
            raise UndefinedMetricError("there is no variance within groups")
    r, slope, _ = line(first, second)
    return slope, r


def group_slopes(x: Sequence[float], y: Sequence[float], groups: Sequence[str]) -> dict[str, float | None]:
    """Slope of each group by name; None for fewer than three points or without variance."""
    found: dict[str, float | None] = {}
    for name in dict.fromkeys(groups):
        inside = [place for place, group in enumerate(groups) if group == name]
        try:
            slope = line([x[place] for place in inside], [y[place] for place in inside])[1]
        except UndefinedMetricError:
            slope = None
        found[name] = slope if len(inside) >= _FEWEST_IN_GROUP else None
    return found


def without_each(x: Sequence[float], y: Sequence[float], groups: Sequence[str]) -> dict[str, float | None]:
    """Pearson's r without each group by name; None where the rest has no correlation."""
    found: dict[str, float | None] = {}
    for name in dict.fromkeys(groups):
        rest = [place for place, group in enumerate(groups) if group != name]
        try:
            found[name] = line([x[place] for place in rest], [y[place] for place in rest])[0]
        except UndefinedMetricError:
            found[name] = None
        if len(rest) < _FEWEST_IN_GROUP:
            found[name] = None
    return found


def quadratic(x: Sequence[float], y: Sequence[float]) -> Quadratic:
    """Fit a parabola beside the line.

    Raises:
        UndefinedMetricError: Fewer than four points, fewer than three different values of x, or no variance.
    """
    from scipy.special import stdtr

    r = line(x, y)[0]
    first, second = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if first.size <= _COEFFICIENTS:
        raise UndefinedMetricError(f"{first.size} points: too few for a curve")
    scaled = (first - first.mean()) / first.std()
    if np.unique(np.round(scaled, 9)).size < _COEFFICIENTS:
        raise UndefinedMetricError("fewer than three different values of shift")
    design = np.column_stack([np.ones(first.size), scaled, scaled**2])
    coefficients, *_ = np.linalg.lstsq(design, second, rcond=None)
    rest = second - design @ coefficients
    total = float(((second - second.mean()) ** 2).sum())
    left = float((rest**2).sum())
    freedom = first.size - _COEFFICIENTS
    error = math.sqrt(left / freedom * float(np.linalg.inv(design.T @ design)[2, 2]))
    value = float(coefficients[2])
    negligible = abs(value) <= 1e-9 * float(second.std())
    p = 1.0 if negligible else float(2 * stdtr(freedom, -abs(value) / error)) if error > 0 else 0.0
    return Quadratic(first.size, value, p, r * r, max(r * r, 1 - left / total))


def line_band(
    x: Sequence[float], y: Sequence[float], clusters: Sequence[str], at: Values, level: float = LEVEL
) -> tuple[Values, Values] | None:
    """Pointwise interval of the least-squares line from leaving out one cluster after another (jackknife, Student's t).

    Args:
        x: One number a point.
        y: Another.
        clusters: Name of each point's cluster.
        at: Where, [places].
        level: Coverage at each place.

    Returns:
        Lower and upper ends, [places] each; None for fewer than ``SMALLEST_CLUSTERS`` or where all of x's variance lies
        in one cluster.
    """
    from scipy.special import stdtrit

    first, second = pairs(x, y)
    names = sorted(set(clusters))
    if len(names) < SMALLEST_CLUSTERS:
        return None
    kept = [np.asarray(clusters) != name for name in names]
    if any(constant(first[rows]) for rows in kept):
        return None
    lines = np.array([np.polyval(np.polyfit(first[rows], second[rows], 1), at) for rows in kept])
    spread = np.sqrt((len(names) - 1) / len(names) * ((lines - lines.mean(axis=0)) ** 2).sum(axis=0))
    centre = np.polyval(np.polyfit(first, second, 1), at)
    half = float(stdtrit(len(names) - 2, (1 + level) / 2)) * spread
    return centre - half, centre + half


def _centred(values: Sequence[float], groups: Sequence[str]) -> Values:
    members: dict[str, list[float]] = {}
    for value, group in zip(values, groups, strict=True):
        members.setdefault(group, []).append(value)
    means = {group: math.fsum(found) / len(found) for group, found in members.items()}
    return np.array([value - means[group] for value, group in zip(values, groups, strict=True)])
