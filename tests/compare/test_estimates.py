"""One measure over the seeds of a method."""

from __future__ import annotations

import math

import pytest

from cl_bench.harness.compare.estimates import of_measures, over_seeds
from cl_bench.harness.measure.scores import Measure


def test_five_values_have_a_t_interval_and_four_have_none() -> None:
    five = over_seeds([1.0, 2.0, 3.0, 4.0, 5.0])
    assert five.mean == 3 and five.interval == pytest.approx((3 - 2.776445 * 0.5**0.5, 3 + 2.776445 * 0.5**0.5))
    assert over_seeds([1.0, 2.0, 3.0, 4.0]).interval is None and over_seeds([1.0]).deviation is None


def test_a_missing_value_takes_the_mean_away_and_is_counted() -> None:
    found = of_measures([Measure(0.5), Measure(None, "diverged")])
    assert (found.values, found.mean, found.reason) == ((0.5, None), None, "1 of 2 seeds: diverged")
    assert over_seeds([None, None], ["diverged", "diverged"]).reason == "diverged"
    assert over_seeds([]).reason == "no value" and over_seeds([None]).reason == "no value"


@pytest.mark.parametrize("broken", [math.nan, math.inf])
def test_a_number_that_is_none_is_no_value(broken: float) -> None:
    found = over_seeds([0.5, broken, 0.6])
    assert found.values == (0.5, None, 0.6) and found.mean is None and found.interval is None
    assert found.reason == f"1 of 3 seeds: the value is {broken}, no finite number"
