"""Two checkpoints on the same items."""

from __future__ import annotations

import math

import pytest
from scipy.stats import binomtest, norm

from cl_bench.harness.measure.statistics.paired import PAIRED_ITEMS, exact_p, mcnemar, paired_bootstrap


def pair(both: int, first: int, second: int, neither: int) -> tuple[list[bool], list[bool]]:
    one = [True] * (both + first) + [False] * (second + neither)
    other = [True] * both + [False] * first + [True] * second + [False] * neither
    return one, other


def unpaired_p(one: list[bool], other: list[bool]) -> float:
    """The two-sample z test of two accuracies, which takes the items for different ones."""
    n, shares = len(one), (sum(one) / len(one), sum(other) / len(other))
    error = sum(share * (1 - share) / (n - 1) for share in shares) ** 0.5
    return float(2 * norm.sf(abs(shares[0] - shares[1]) / error))


def test_the_paired_test_finds_what_the_unpaired_one_misses_on_220_items() -> None:
    one, other = pair(both=158, first=22, second=7, neither=33)
    assert len(one) == 220
    assert unpaired_p(one, other) == pytest.approx(0.08, abs=0.005)
    found = mcnemar(one, other)
    assert found.p == pytest.approx(0.008, abs=0.0005)
    assert (found.only_first, found.only_second, found.n, found.scope) == (22, 7, 220, "these checkpoints")
    assert found.difference == pytest.approx(15 / 220) and found.discordance == pytest.approx(29 / 220)
    interval = paired_bootstrap(one, other).interval
    assert interval is not None and interval[0] > 0


def test_shuffled_pairs_are_no_pairs() -> None:
    one, other = pair(both=158, first=22, second=7, neither=33)
    assert mcnemar(one, other[::-1]).p > 0.05, "the same accuracies, the wrong items beside each other"


@pytest.mark.parametrize(("first", "second"), [(0, 0), (1, 0), (3, 3), (0, 9), (22, 7), (400, 320)])
def test_p_is_the_binomial_test_of_items_that_differ(first: int, second: int) -> None:
    expected = binomtest(first, first + second).pvalue if first + second else 1.0
    assert exact_p(first, second) == pytest.approx(expected)
    assert exact_p(first, second) == exact_p(second, first)


def test_equal_checkpoints_do_not_differ() -> None:
    one, _ = pair(90, 0, 0, 30)
    assert mcnemar(one, one).p == 1
    found = paired_bootstrap(one, one)
    assert (found.difference, found.interval) == (0, None)


def test_bootstrap_of_graded_scores_and_of_few_items() -> None:
    first, second = [0.5, 0.75, 1.0, 0.0] * 30, [0.25, 0.75, 0.5, 0.0] * 30
    found = paired_bootstrap(first, second)
    assert found.difference == pytest.approx(0.1875) and (found.n, found.scope) == (120, "these checkpoints")
    assert found.interval is not None and found.interval[0] < 0.1875 < found.interval[1]
    few = PAIRED_ITEMS - 1
    assert paired_bootstrap(first[:few], second[:few]).interval is None


@pytest.mark.parametrize("compare", [mcnemar, paired_bootstrap])
def test_rows_of_different_items_are_refused(compare: object) -> None:
    for first, second in (([1], [1, 0]), ([], [])):
        with pytest.raises(ValueError, match="same items"):
            compare(first, second)  # type: ignore[operator]


@pytest.mark.parametrize("wrong", [0.5, 2, None, math.nan])
def test_mcnemar_takes_no_grades_and_nothing_missing(wrong: object) -> None:
    with pytest.raises(ValueError, match="right .1. or wrong .0."):
        mcnemar([1, wrong], [1, 0])  # type: ignore[list-item]


def test_a_score_that_is_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        paired_bootstrap([math.nan, *([1.0] * 120)], [0.0] * 121)
