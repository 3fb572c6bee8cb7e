"""Confidence intervals of a cell: Wilson's for shares of right items, a bootstrap over items for means."""

from __future__ import annotations

from collections.abc import Sequence

Interval = tuple[float, float]
LEVEL = 0.95
_RESAMPLES = 2000


def wilson(successes: int, n: int, level: float = LEVEL) -> Interval:
    """Wilson's score interval of a share.

    Args:
        successes: Items that are right.
        n: Items, at least one.
        level: Coverage, as a fraction.
    """
    from scipy.stats import binomtest

    found = binomtest(successes, n).proportion_ci(level, method="wilson")
    return float(found.low), float(found.high)


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
