"""Confidence intervals of a cell: Wilson's for shares of right items, a bootstrap over items for means."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

Interval = tuple[float, float]
LEVEL = 0.95
_RESAMPLES = 2000


def wilson(successes: int, n: int, level: float = LEVEL) -> Interval:
    """Wilson's score interval of a share.

    Args:
        successes: Items that are right.
        n: Items, at least one.
        level: Coverage, as a fraction.

    Source: Wilson (1927); the same as ``scipy.stats.binomtest(...).proportion_ci(method="wilson")``.
    """
    # Written out, because scipy.stats takes a second to import and every run comes by here.
    z, share = NormalDist().inv_cdf((1 + level) / 2), successes / n
    scale = 1 + z**2 / n
    centre = (share + z**2 / (2 * n)) / scale
    half = z / scale * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return max(0.0, centre - half), min(1.0, centre + half)


def bootstrap_mean(values: Sequence[float], level: float = LEVEL) -> Interval:
    """Percentile bootstrap of a mean over items; the same values give the same interval.

    Args:
        values: One number an item, at least one. With a single item, or equal ones, the interval is a point.
        level: Coverage, as a fraction.
    """
    import numpy as np

    numbers = np.asarray(values, dtype=float)
    draws = np.random.default_rng(0).integers(0, len(numbers), (_RESAMPLES, len(numbers)))
    low, high = np.quantile(numbers[draws].mean(axis=1), [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
