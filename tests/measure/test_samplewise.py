"""Transitions of items between two rows, and what luck explains of them."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

import pytest

from cl_bench.harness.measure.samplewise import sample_wise


def test_transitions_by_hand() -> None:
    found = sample_wise([1, 1, 1, 0, 0], [1, 0, 0, 1, 0], 5)
    assert (found.kept, found.forgotten, found.gained, found.never) == (1, 2, 1, 1)
    assert (found.forgetting, found.backward_transfer) == (0.4, 0.2)
    assert found.chance_transition == pytest.approx(0.4 * 0.6 / 4)
    assert found.known_before == pytest.approx((5 * 0.6 - 1) / 4)


def test_gained_less_forgotten_is_the_change_of_accuracy_adjusted_or_not() -> None:
    generator = random.Random(3)
    rows = [[generator.random() < share for _ in range(60)] for share in (0.7, 0.5)]
    for options in (None, 2, 4):
        found = sample_wise(rows[0], rows[1], options)
        change = found.accuracy_after - found.accuracy_before
        assert found.backward_transfer - found.forgetting == pytest.approx(change)
        adjusted = found.adjusted(found.backward_transfer) - found.adjusted(found.forgetting)
        assert adjusted == pytest.approx(change)


def answered(known: Sequence[bool], options: int, generator: random.Random) -> list[bool]:
    return [one or generator.random() < 1 / options for one in known]


@pytest.mark.parametrize("options", [2, 4])
def test_what_is_left_of_forgetting_is_what_was_known_where_knowledge_is_independent(options: int) -> None:
    generator, n = random.Random(5), 30_000
    known = [[generator.random() < share for _ in range(n)] for share in (0.6, 0.3)]
    before, after = (answered(row, options, generator) for row in known)
    found = sample_wise(before, after, options)
    lost = sum(one and not right for one, right in zip(known[0], after, strict=True)) / n
    assert found.adjusted(found.forgetting) == pytest.approx(lost, abs=0.01)
    assert (found.known_before, found.known_after) == pytest.approx((0.6, 0.3), abs=0.015)
    assert found.forgetting > lost + 0.04


@pytest.mark.parametrize("options", [2, 4])
def test_where_the_same_items_stay_unknown_luck_explains_as_much_more_as_is_said(options: int) -> None:
    generator, n, unknown = random.Random(6), 30_000, 2 / 3
    known = [item >= unknown * n for item in range(n)]
    found = sample_wise(answered(known, options, generator), answered(known, options, generator), options)
    assert found.forgetting == pytest.approx(found.chance_transition / unknown, abs=0.01)
    difference = found.adjusted(found.backward_transfer) - found.adjusted(found.forgetting)
    assert difference == pytest.approx(0, abs=0.015)


@pytest.mark.parametrize("wrong", [0.5, 2, None, math.nan])
def test_what_is_neither_right_nor_wrong_is_refused(wrong: Any) -> None:
    for before, after in (([1, wrong], [1, 0]), ([1, 0], [wrong, 0])):
        with pytest.raises(ValueError, match="right .1. or wrong .0."):
            sample_wise(before, after, None)


def test_rows_that_do_not_fit_are_refused() -> None:
    for before, after, options in (([1], [1, 0], None), ([], [], None), ([1], [1], 1)):
        with pytest.raises(ValueError, match="same items|two options"):
            sample_wise(before, after, options)
