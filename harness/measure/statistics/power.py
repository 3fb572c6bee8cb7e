"""The smallest effect that a design finds with a power of .8 at a level of .05, two-sided."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

from cl_bench.harness.measure.statistics.seeds import ALPHA, NO_SPREAD, SMALLEST_SEEDS

POWER = 0.8
_STEPS = 40
_UNLIKELY = 1e-12


def detectable_change(deviation: float, power: float = POWER, alpha: float = ALPHA) -> float:
    """Smallest effect that a test of a normal estimate finds: (z of 1 - alpha / 2 + z of power) standard deviations.

    Args:
        deviation: Standard deviation of the estimate.
        power: Chance to find the effect.
        alpha: Chance of a finding where there is none.
    """
    normal = NormalDist()
    return (normal.inv_cdf(1 - alpha / 2) + normal.inv_cdf(power)) * deviation


def detectable_between_checkpoints(n: int, discordance: float, power: float = POWER) -> float | None:
    """Smallest difference of two shares of right items that the exact McNemar test finds at a level of .05.

    Args:
        n: Items that both checkpoints answered.
        discordance: Share of items that only one of the two has right.
        power: Chance to find the difference.

    Returns:
        A fraction, at most ``discordance``; None where no difference that large is found with this power.

    Raises:
        ValueError: No items, or a discordance outside (0, 1].
    """
    if mcnemar_power(discordance, discordance, n) < power:
        return None
    return _smallest(lambda difference: mcnemar_power(difference, discordance, n), power, discordance)


def detectable_over_seeds(deviation: float, n: int, power: float = POWER) -> float | None:
    """Smallest mean difference that the paired t test over seeds finds at a level of .05.

    Args:
        deviation: Standard deviation of the differences between seeds.
        n: Paired seeds.
        power: Chance to find the difference.

    Returns:
        The difference; None for fewer seeds than a claim needs, and without spread: then there is no test to find it.

    Raises:
        ValueError: A negative deviation, or one that is not finite.
    """
    if not 0 <= deviation < math.inf:
        raise ValueError(f"a standard deviation is a finite number from 0 on, not {deviation}")
    if n < SMALLEST_SEEDS or deviation <= NO_SPREAD:
        return None
    enough = detectable_change(1 / math.sqrt(n), power)
    while t_power(enough, n) < power:
        enough *= 2
    return deviation * _smallest(lambda effect: t_power(effect, n), power, enough)


def mcnemar_power(difference: float, discordance: float, n: int) -> float:
    """Chance that the exact McNemar test at a level of .05 finds a difference between two checkpoints.

    The number m of items that differ is binomial(n, discordance), and of those binomial(m, (1 + difference /
    discordance) / 2) favour the first (Connor 1987); both are summed over.

    Args:
        difference: Share of right items of the first minus that of the second; at most ``discordance`` in size.
        discordance: Share of items that only one of the two has right.
        n: Items.

    Raises:
        ValueError: No items, or a discordance outside (0, 1] or below the difference.
    """
    if n < 1 or not 0 < discordance <= 1 or abs(difference) > discordance:
        raise ValueError(f"no such design: {n} items, discordance {discordance}, difference {difference}")
    import numpy as np
    from scipy.special import bdtr, bdtrik, gammaln, xlog1py, xlogy

    m = np.arange(n + 1)
    logs = gammaln(n + 1) - gammaln(m + 1) - gammaln(n - m + 1) + xlogy(m, discordance) + xlog1py(n - m, -discordance)
    m = m[(np.exp(logs) > _UNLIKELY) & (m > 0)]
    weights = np.exp(logs[m])
    # The largest k for which k of m on the rarer side are rejected: 2 P(binomial(m, 1/2) <= k) <= level.
    k = np.floor(bdtrik(ALPHA / 2, m, 0.5))
    k = np.where(2 * bdtr(k + 1, m, 0.5) <= ALPHA, k + 1, k)
    k = np.where(2 * bdtr(k, m, 0.5) <= ALPHA, k, k - 1)
    share = (1 + difference / discordance) / 2
    found = np.where(k >= 0, bdtr(np.maximum(k, 0), m, share) + bdtr(np.maximum(k, 0), m, 1 - share), 0.0)
    return float((weights * found).sum())


def t_power(effect: float, n: int) -> float:
    """Chance that the paired t test at a level of .05 finds a mean difference.

    Args:
        effect: The difference in standard deviations of the differences.
        n: Pairs, at least two.
    """
    from scipy.special import nctdtr, stdtrit

    limit, centre = stdtrit(n - 1, 1 - ALPHA / 2), effect * math.sqrt(n)
    return float(1 - nctdtr(n - 1, centre, limit) + nctdtr(n - 1, centre, -limit))


def _smallest(found: Callable[[float], float], power: float, largest: float) -> float:
    """The effect in [0, largest] at which an increasing chance to find it reaches the power."""
    low, high = 0.0, largest
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if found(middle) >= power else (middle, high)
    return high
