"""Claims over seeds: paired by seed, nothing from fewer than five, Holm over a table."""

from __future__ import annotations

import math

import pytest
from scipy.stats import ttest_rel

from cl_bench.harness.measure.statistics.seeds import (
    SMALLEST_SEEDS,
    holm,
    holm_table,
    mean_interval,
    paired_difference,
)

A = {0: 0.71, 1: 0.74, 2: 0.69, 3: 0.75, 4: 0.72, 5: 0.7}
B = {0: 0.66, 1: 0.7, 2: 0.66, 3: 0.7, 4: 0.69, 5: 0.64}


def test_differences_and_their_interval_are_scipys() -> None:
    found = paired_difference(A, B)
    expected = ttest_rel(list(A.values()), list(B.values()))
    assert found.p == pytest.approx(expected.pvalue)
    assert found.interval == pytest.approx(tuple(expected.confidence_interval()))
    assert found.mean == pytest.approx(0.26 / 6)
    assert (found.n, found.claim, found.seeds, found.unpaired) == (6, True, (0, 1, 2, 3, 4, 5), ())


def test_seeds_are_paired_by_number_not_by_order() -> None:
    shuffled = {seed: B[seed] for seed in (5, 3, 1, 0, 2, 4)}
    assert paired_difference(A, shuffled) == paired_difference(A, B)
    found = paired_difference(A, {**{seed: B[seed] for seed in (1, 2, 3, 4, 5)}, 9: 0.0})
    assert (found.seeds, found.unpaired, found.n) == ((1, 2, 3, 4, 5), (0, 9), 5)
    assert found.values == pytest.approx(tuple(A[seed] - B[seed] for seed in (1, 2, 3, 4, 5)))


def test_pairing_finds_what_two_separate_means_hide() -> None:
    level = {seed: 0.1 * seed for seed in range(6)}
    better = {seed: value + 0.02 + 0.001 * (seed % 2) for seed, value in level.items()}
    assert paired_difference(better, level).claim


def test_four_seeds_have_a_mean_and_values_and_no_claim() -> None:
    few = {seed: A[seed] for seed in range(SMALLEST_SEEDS - 1)}
    found = paired_difference(few, B)
    assert found.mean is not None and len(found.values) == 4
    assert (found.interval, found.p, found.claim) == (None, None, False)
    assert found.reason == "4 paired seeds; a claim needs 5"


def test_noise_is_no_claim() -> None:
    found = paired_difference({s: (-1) ** s * 0.1 for s in range(6)}, dict.fromkeys(range(6), 0.0))
    assert found.p is not None and found.p > 0.5 and not found.claim
    assert found.interval is not None and found.interval[0] < 0 < found.interval[1]


@pytest.mark.parametrize("shift", [0.0, 0.1])
def test_equal_differences_have_no_test(shift: float) -> None:
    found = paired_difference({seed: value + shift for seed, value in A.items()}, A)
    assert found.mean == pytest.approx(shift)
    assert (found.interval, found.p, found.claim) == (None, None, False)
    assert "no spread" in found.reason


def test_no_common_seed_and_no_number_are_said() -> None:
    assert paired_difference({0: 1.0}, {1: 1.0}).reason == "no seed in common"
    found = paired_difference({**A, 3: math.nan}, B)
    assert (found.mean, found.claim, found.reason) == (None, False, "seed 3: not a finite number")


def test_interval_of_a_mean() -> None:
    low, high = mean_interval([1.0, 2.0, 3.0, 4.0, 5.0]) or (0, 0)
    assert (low, high) == pytest.approx((3 - 2.776445 * 0.5**0.5, 3 + 2.776445 * 0.5**0.5))
    assert mean_interval([1.0, 2.0, 3.0, 4.0]) is None
    assert mean_interval([0.3] * 6) is None
    assert mean_interval([1.0, 2.0, 3.0, 4.0, math.nan]) is None
    assert mean_interval([]) is None


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == pytest.approx([1.0, 1.0])
    assert holm([0.02, None, 0.03]) == [pytest.approx(0.04), None, pytest.approx(0.04)]
    assert holm([]) == []


@pytest.mark.parametrize("wrong", [-0.1, 1.1, math.nan])
def test_holm_refuses_what_is_no_p_value(wrong: float) -> None:
    with pytest.raises(ValueError, match="p-value"):
        holm([0.1, wrong])


def test_a_claim_must_hold_over_the_whole_table() -> None:
    alone = paired_difference({0: 0.5, 1: 0.1, 2: 0.6, 3: 0.2, 4: 0.5}, dict.fromkeys(range(5), 0.0))
    assert alone.claim and alone.p is not None and 0.01 < alone.p < 0.05
    few = paired_difference({0: 1.0}, {0: 0.0})
    table = holm_table({"one": alone, "two": alone, "three": alone, "few": few})
    assert [found.claim for found in table.values()] == [False] * 4
    assert table["one"].p == pytest.approx(3 * alone.p)
    assert table["few"] == few
    assert holm_table({"one": alone})["one"].claim
