"""Confidence intervals of a cell: Wilson's for shares of right items, a bootstrap over items for means.

Each has a smallest design. Below it the simulated coverage of the nominal 95 % leaves 93 to 97 %
(``benchmarks/interval_coverage.py``), and there is no interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

Interval = tuple[float, float]
LEVEL = 0.95
WILSON_ITEMS = 60
"""Fewest items of a share; from here on coverage is 93 to 97 % for every true share of .1 to .9.

Beyond, no interval from counts holds its level: Wilson's covers 84 % (a true share of .003, 60 items) to 99 %.
"""
BOOTSTRAP_ITEMS = 50
"""Fewest items of a bootstrapped mean."""
RESAMPLES = 2000
_LARGEST_DRAW = 2_000_000
"""Indices drawn at once: bounds memory, whatever the number of items."""


def wilson(successes: int, n: int, level: float = LEVEL) -> Interval | None:
    """Wilson's score interval of a share.

    Args:
        successes: Items that are right.
        n: Items.
        level: Coverage, as a fraction.

    Returns:
        The interval; None for fewer than ``WILSON_ITEMS`` items.

    Source: Wilson (1927); the same as ``scipy.stats.binomtest(...).proportion_ci(method="wilson")``.
    """
    if n < WILSON_ITEMS:
        return None
    # Written out, because scipy.stats takes a second to import and every run comes by here.
    z, share = NormalDist().inv_cdf((1 + level) / 2), successes / n
    scale = 1 + z**2 / n
    centre = (share + z**2 / (2 * n)) / scale
    half = z / scale * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    # The ends are exact where rounding would leave the share itself outside.
    return 0.0 if successes == 0 else centre - half, 1.0 if successes == n else centre + half


def bootstrap_mean(values: Sequence[float], level: float = LEVEL) -> Interval | None:
    """Expanded percentile bootstrap of a mean over items; the same values give the same interval.

    The quantiles lie further out than (1 - level) / 2, as far as Student's t is wider than the normal distribution with
    variance (n - 1) / n: Hesterberg (1411.5279).

    Args:
        values: One number an item.
        level: Coverage, as a fraction.

    Returns:
        The interval; None for fewer than ``BOOTSTRAP_ITEMS`` values, a value that is not finite, or equal ones (no
        spread to judge by).
    """
    if len(values) < BOOTSTRAP_ITEMS or not all(map(math.isfinite, values)) or min(values) == max(values):
        return None
    import numpy as np

    means = resampled_means(values, np.random.default_rng(0))
    tail = expanded_tail(len(values), level)
    low, high = np.quantile(means, [tail, 1 - tail])
    return float(low), float(high)


def resampled_means(
    values: Sequence[float] | Array, generator: np.random.Generator, resamples: int = RESAMPLES
) -> Array:
    """Means of draws with replacement.

    Args:
        values: One number an item.
        generator: What draws.
        resamples: Number of draws.

    Returns:
        The means, [resamples].
    """
    import numpy as np

    numbers = np.asarray(values, dtype=float)
    n, step = len(numbers), max(1, _LARGEST_DRAW // len(numbers))
    parts = [
        numbers[generator.integers(0, n, (min(step, resamples - start), n))].mean(axis=1)
        for start in range(0, resamples, step)
    ]
    return np.concatenate(parts)


def expanded_tail(n: int, level: float = LEVEL) -> float:
    """Share of draws beyond each end of an expanded percentile interval over n units (at least two)."""
    return NormalDist().cdf(-NormalDist().inv_cdf((1 + level) / 2) * expansion(n, level))


def expansion(n: int, level: float = LEVEL) -> float:
    """How much wider a t interval of n units (at least two) is than the spread of their bootstrapped mean."""
    from scipy.special import stdtrit

    t = float(stdtrit(n - 1, (1 + level) / 2))
    return t * math.sqrt(n / (n - 1)) / NormalDist().inv_cdf((1 + level) / 2)
