"""Forgetting by chance alone: against closed forms, against an independent simulation, and where it is undefined."""

from __future__ import annotations

import random
from statistics import NormalDist, fmean

import pytest

from cl_bench.harness.measure import metrics
from cl_bench.harness.measure.matrix import Cell
from cl_bench.harness.measure.null_forgetting import backward_transfer_under_no_change, forgetting_under_no_change
from cl_bench.harness.measure.scores import Measure, Scores
from tests.measure.matrices import make_matrix, one_by_one


def constant(stages: int, share: float = 0.5, n: int | None = 400) -> Scores:
    tasks = [f"t{place}" for place in range(stages)]
    return one_by_one(None, [[share] * stages] * stages, tasks, n)


def value(found: Measure) -> float:
    assert found.value is not None, found.reason
    return found.value


def test_two_stages_have_no_best_of_several() -> None:
    found = forgetting_under_no_change(constant(2))
    assert value(found) == pytest.approx(0, abs=0.003)
    assert found.range is not None
    deviation = (2 * 0.25 / 400) ** 0.5
    assert found.range == pytest.approx((-1.96 * deviation, 1.96 * deviation), abs=0.007)


def test_the_best_of_two_lies_above_the_third_by_the_closed_form() -> None:
    rows = {row: [0.5, 0.5] for row in ("a", "b", "c")}
    scores = Scores(make_matrix(rows, ("a", "b"), n=400), {"a": ("a",), "b": ("b",), "c": ("b",)})
    # E max(x, y) = deviation / sqrt(pi) above the mean; only a is learned before the last stage.
    assert value(forgetting_under_no_change(scores)) == pytest.approx((0.25 / 400 / 3.14159265) ** 0.5, abs=0.002)


def test_size_of_bwt_by_the_closed_form() -> None:
    deviation = (2 * 0.25 / 400) ** 0.5
    expected = deviation * (2 / 3.14159265) ** 0.5
    assert value(backward_transfer_under_no_change(constant(2))) == pytest.approx(expected, abs=0.002)
    found = backward_transfer_under_no_change(constant(2)).range
    assert found is not None and found[0] >= 0
    assert found[1] == pytest.approx(-NormalDist().inv_cdf(0.0125) * deviation, abs=0.006)


def test_runs_that_never_change_forget_as_much_as_it_says() -> None:
    generator = random.Random(4)
    tasks, n = ("a", "b", "c", "d"), 50
    forgotten = []
    for _ in range(400):
        rows = [[sum(generator.random() < 0.7 for _ in range(n)) / n for _ in tasks] for _ in tasks]
        forgotten.append(metrics.forgetting(one_by_one(None, rows, tasks, n)))
    expected = value(forgetting_under_no_change(constant(4, 0.7, n)))
    assert expected > 0.02
    assert fmean(forgotten) == pytest.approx(expected, abs=0.006)


def test_forgetting_that_is_real_lies_outside() -> None:
    scores = one_by_one(None, [[0.9, 0.2], [0.3, 0.9]], ("a", "b"))
    found = forgetting_under_no_change(scores)
    assert found.range is not None and metrics.forgetting(scores) > found.range[1]


def test_the_share_is_that_of_the_last_learning() -> None:
    rows = {"a": [0.9, 0.1], "a-2": [0.2, 0.1], "b": [0.9, 0.1]}
    scores = Scores(make_matrix(rows, ("a", "b"), n=1000), {"a": ("a",), "a-2": ("a",), "b": ("b",)})
    assert value(forgetting_under_no_change(scores)) == pytest.approx(0.7, abs=0.01)
    assert value(backward_transfer_under_no_change(scores)) < 0.03


def test_a_full_score_still_has_noise() -> None:
    found = forgetting_under_no_change(constant(3, 1.0, 20))
    assert found.range is not None and found.range[1] > 0


def test_it_is_the_same_again_and_a_further_task_leaves_others_alone() -> None:
    assert forgetting_under_no_change(constant(3)) == forgetting_under_no_change(constant(3))
    alone = Scores(make_matrix({"a": [0.5, 0.5], "b": [0.5, 0.5]}, ("a", "b")), {"a": ("a",), "b": ("b",)})
    wider = make_matrix({"a": [0.5, 0.5, 0.1], "b": [0.5, 0.5, 0.1]}, ("a", "b", "z"))
    assert forgetting_under_no_change(Scores(wider, alone.learned)) == forgetting_under_no_change(alone)


@pytest.mark.parametrize("compute", [forgetting_under_no_change, backward_transfer_under_no_change])
def test_undefined_with_the_reason(compute: object) -> None:
    def reason(scores: Scores) -> str:
        found = compute(scores)  # type: ignore[operator]
        assert found.value is None and found.range is None
        return str(found.reason)

    assert "number of items is not known" in reason(constant(2, n=None))
    assert "no share of items" in reason(constant(2, share=-1.0))
    assert "no task was learned before the last stage" in reason(constant(1))
    assert reason(Scores(make_matrix({}, ("a",)), {})) == "no task was learned before the last stage"
    broken = constant(2)
    broken.matrix.set("t1", "t0", Cell(None, "diverged"))
    assert reason(broken) == "t1/t0: diverged"
