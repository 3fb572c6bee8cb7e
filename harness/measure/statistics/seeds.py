"""Claims about methods: differences paired by seed, Student's t over seeds, Holm's correction over a table.

Seeds are the units: two runs of one seed differ in the method alone, and what a method does is known from several seeds
only. Below five seeds there is no interval, no test and no claim: the mean and every value are all that can be said.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev

from cl_bench.harness.measure.statistics.intervals import LEVEL, Interval

SMALLEST_SEEDS = 5
"""Fewer seeds give no interval and no claim."""
ALPHA = 0.05
NO_SPREAD = 1e-12
"""Standard deviation, relative to the numbers, that is rounding."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A measure of one method minus that of another, paired by seed.

    Attributes:
        mean: Mean of the differences; None where there is none.
        values: The differences by seed, in the order of ``seeds``.
        interval: 95 % t interval of the mean; None for fewer than five seeds or without spread.
        p: Two-sided p-value of the paired t test (Holm-adjusted in what ``holm_table`` gives); None with ``interval``.
        n: Paired seeds.
        claim: Whether the difference may be called one: five seeds or more and p below .05.
        seeds: The seeds that both methods have, ascending.
        unpaired: Seeds that one of the two lacks, ascending; left out.
        reason: Why mean, interval or claim are missing.
    """

    mean: float | None
    values: tuple[float, ...]
    interval: Interval | None
    p: float | None
    n: int
    claim: bool
    seeds: tuple[int, ...] = ()
    unpaired: tuple[int, ...] = ()
    reason: str = ""


def mean_interval(values: Sequence[float], level: float = LEVEL) -> Interval | None:
    """Student's t interval of a mean over seeds.

    Args:
        values: One number a seed.
        level: Coverage, as a fraction.

    Returns:
        The interval; None for fewer than ``SMALLEST_SEEDS`` values, a value that is not finite, or equal values (no
        spread to judge by).
    """
    if len(values) < SMALLEST_SEEDS or not all(map(math.isfinite, values)) or _constant(values):
        return None
    from scipy.special import stdtrit

    half = float(stdtrit(len(values) - 1, (1 + level) / 2)) * stdev(values) / math.sqrt(len(values))
    return fmean(values) - half, fmean(values) + half


def paired_difference(a: Mapping[int, float], b: Mapping[int, float]) -> Difference:
    """Differences a - b of the seeds that both have, with what may be said about their mean.

    Args:
        a: A measure of one method by seed.
        b: The same measure of the other method by seed.
    """
    seeds = tuple(sorted(set(a) & set(b)))
    unpaired = tuple(sorted(set(a) ^ set(b)))
    values = tuple(a[seed] - b[seed] for seed in seeds)
    found = Difference(None, values, None, None, len(seeds), False, seeds, unpaired)
    if not seeds:
        return replace(found, reason="no seed in common")
    broken = [seed for seed, value in zip(seeds, values, strict=True) if not math.isfinite(value)]
    if broken:
        return replace(found, reason=f"seed {broken[0]}: not a finite number")
    found = replace(found, mean=fmean(values))
    if len(seeds) < SMALLEST_SEEDS:
        return replace(found, reason=f"{len(seeds)} paired seeds; a claim needs {SMALLEST_SEEDS}")
    interval = mean_interval(values)
    if interval is None:
        return replace(found, reason="the differences of all seeds are equal: no spread to test against")
    p = _t_test(values)
    return replace(found, interval=interval, p=p, claim=p < ALPHA)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down adjusted p-values (Holm 1979), in the order given.

    Args:
        p_values: P-values of one table; None where there was no test: it stays None and does not count.

    Raises:
        ValueError: A number outside [0, 1].
    """
    tested = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (p, place) in enumerate(tested):
        if not 0 <= p <= 1:
            raise ValueError(f"a p-value lies between 0 and 1, not {p}")
        largest = max(largest, min(1.0, (len(tested) - rank) * p))
        adjusted[place] = largest
    return adjusted


def holm_table(differences: Mapping[str, Difference]) -> dict[str, Difference]:
    """The same differences with p-values adjusted over the table and claims that hold after it."""
    adjusted = holm([difference.p for difference in differences.values()])
    return {
        name: replace(difference, p=p, claim=p is not None and p < ALPHA)
        for (name, difference), p in zip(differences.items(), adjusted, strict=True)
    }


def _t_test(values: Sequence[float]) -> float:
    from scipy.special import stdtr

    t = fmean(values) / (stdev(values) / math.sqrt(len(values)))
    return float(2 * stdtr(len(values) - 1, -abs(t)))


def _constant(values: Sequence[float]) -> bool:
    # Equal differences of decimal fractions differ in the last bits.
    return stdev(values) <= NO_SPREAD * max(1.0, *map(abs, values))
