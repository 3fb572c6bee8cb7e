"""Intervals of a cell: against scipy, and nothing below the smallest design."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from cl_bench.harness.measure.statistics.intervals import (
    BOOTSTRAP_ITEMS,
    WILSON_ITEMS,
    Interval,
    bootstrap_mean,
    expansion,
    resampled_means,
    wilson,
)


def known(interval: Interval | None) -> Interval:
    assert interval is not None
    return interval


def test_wilson_is_scipys() -> None:
    for successes, n in ((0, 60), (1, 61), (70, 80), (80, 80), (137, 200)):
        expected = binomtest(successes, n).proportion_ci(method="wilson")
        assert known(wilson(successes, n)) == pytest.approx((expected.low, expected.high), abs=1e-12)
        low, high = known(wilson(successes, n))
        assert low <= successes / n <= high


def test_fewer_items_have_no_interval() -> None:
    assert wilson(8, WILSON_ITEMS - 1) is None and wilson(0, 0) is None
    assert bootstrap_mean([0.0, 1.0] * (BOOTSTRAP_ITEMS // 2 - 1)) is None
    assert bootstrap_mean([]) is None


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_a_value_that_is_no_number_has_no_interval(wrong: float) -> None:
    assert bootstrap_mean([0.0, 1.0] * 50 + [wrong]) is None


def wilson_coverage(n: int, share: float) -> float:
    """Exact: the probability of every number of right items whose interval holds the share."""
    inside = [k for k in range(n + 1) if (found := wilson(k, n)) and found[0] <= share <= found[1]]
    return float(np.sum(binom.pmf(inside, n, share)))


def test_wilson_covers_93_to_97_percent_from_its_smallest_design_on() -> None:
    for n in (WILSON_ITEMS, WILSON_ITEMS + 1, 75, 100, 150):
        found = [wilson_coverage(n, share) for share in np.linspace(0.1, 0.9, 41)]
        assert min(found) >= 0.93 and max(found) <= 0.97, n


def test_wilson_near_0_and_1_is_as_wide_of_its_level_as_is_said() -> None:
    assert wilson_coverage(WILSON_ITEMS, 0.0029) == pytest.approx(0.84, abs=0.002)
    assert wilson_coverage(WILSON_ITEMS, 0.9971) == pytest.approx(0.84, abs=0.002)
    assert max(wilson_coverage(WILSON_ITEMS, share) for share in np.linspace(1e-3, 0.1, 100)) > 0.985


def test_bootstrap_of_a_mean() -> None:
    low, high = known(bootstrap_mean([0.0, 1.0] * 50))
    assert low == pytest.approx(0.4, abs=0.03) and high == pytest.approx(0.6, abs=0.03)
    assert bootstrap_mean([0.0, 1.0, 1.0] * 20) == bootstrap_mean([0.0, 1.0, 1.0] * 20)
    narrow = known(bootstrap_mean([0.0, 1.0] * 50, level=0.5))
    assert low < narrow[0] < narrow[1] < high


def test_equal_values_have_no_interval() -> None:
    assert bootstrap_mean([1.0] * 100) is None


def test_many_items_are_drawn_in_parts() -> None:
    values = list(range(30_000))
    found = resampled_means(values, np.random.default_rng(0), 200)
    assert found.shape == (200,)
    assert np.std(found) == pytest.approx(np.std(values) / 30_000**0.5, rel=0.25)


def test_the_expansion_is_large_for_few_units_and_none_for_many() -> None:
    assert expansion(5) == pytest.approx(2.7764 * (5 / 4) ** 0.5 / 1.95996, rel=1e-4)
    assert expansion(10_000) == pytest.approx(1, abs=1e-3)
