"""One measure over the seeds of a method: mean, spread, interval, or why there is none."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from cl_bench.harness.measure.scores import Measure
from cl_bench.harness.measure.statistics.intervals import Interval
from cl_bench.harness.measure.statistics.seeds import mean_interval


@dataclass(frozen=True, slots=True)
class OverSeeds:
    """One measure over seeds.

    Attributes:
        values: Each seed's value, or None.
        mean: Their mean; None where one is missing: a mean of the runs that went well would say too much.
        deviation: Standard deviation (n - 1); None for one seed or where a value is missing.
        interval: 95 % t interval of the mean; None for fewer than five seeds, without spread, or without a mean.
        reason: Why there is no mean.
    """

    values: tuple[float | None, ...]
    mean: float | None
    deviation: float | None
    interval: Interval | None = None
    reason: str = ""


def over_seeds(values: Sequence[float | None], reasons: Sequence[str] = ()) -> OverSeeds:
    """Mean, standard deviation and interval of a measure's values; none where one is missing.

    Args:
        values: One value a seed, or None; a number that is not finite is no value.
        reasons: Why a value is None, in the same order.
    """
    given = [*reasons, *("" for _ in values)]
    return of_measures([Measure(value, reason) for value, reason in zip(values, given, strict=False)])


def of_measures(measures: Sequence[Measure]) -> OverSeeds:
    """``over_seeds`` of values that come with their reasons."""
    found = [_finite(measure) for measure in measures]
    values = tuple(measure.value for measure in found)
    present = [value for value in values if value is not None]
    if not present or len(present) < len(values):
        missing = [measure.reason for measure in found if measure.value is None and measure.reason]
        alike = not present and len(set(missing)) <= 1
        counted = "" if alike else f"{len(values) - len(present)} of {len(values)} seeds: "
        return OverSeeds(values, None, None, None, counted + (missing[0] if missing else "no value"))
    deviation = stdev(present) if len(present) > 1 else None
    return OverSeeds(values, fmean(present), deviation, mean_interval(present))


def _finite(measure: Measure) -> Measure:
    if measure.value is None or math.isfinite(measure.value):
        return measure
    return Measure(None, f"the value is {measure.value}, no finite number")
