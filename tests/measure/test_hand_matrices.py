"""Small matrices worked out by hand, each after a fault of another program, through ``metrics.json``."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from cl_bench.harness.measure.plain_matrix import PlainMatrix, Row
from cl_bench.harness.measure.run_metrics import run_metrics


def found(scores: list[Row], tasks: list[str], base: Row | None = None, **given: Any) -> dict[str, Any]:
    plain = PlainMatrix.of(scores, tasks, base, **given)
    return run_metrics(plain.matrix, plain.learned)


def value(document: dict[str, Any], name: str, task: str | None = None) -> float | None:
    metrics = document["metrics"] if task is None else document["tasks"][task]
    number: float | None = metrics[name]["value"]
    return number


def test_forgetting_has_its_value_after_the_second_stage_and_not_before() -> None:
    whole = found([[0.8, 0.1], [0.6, 0.9]], ["a", "b"])
    assert value(whole, "forgetting") == pytest.approx(0.2)
    assert value(whole, "backward_transfer") == pytest.approx(-0.2)
    half = PlainMatrix.of([[0.8, 0.1]], ["a", "b"])
    planned = run_metrics(half.matrix, {**half.learned, "b": ("b",)})["metrics"]
    for name in ("forgetting", "backward_transfer"):
        assert planned[name] == {"value": None, "reason": "row b was not evaluated"}


def test_a_task_that_is_evaluated_and_never_trained_has_reasons_and_no_zeros() -> None:
    document = found([[0.8, 0.4]], ["a", "b"], [0.2, 0.4])
    assert {one["value"] for one in document["tasks"]["b"].values() if "reason" in one} == {None}
    assert document["tasks"]["b"]["forgetting"]["reason"] == "no stage trains on b"
    assert value(document, "average_accuracy") == pytest.approx(0.8), "what was never trained is not averaged in"


def test_names_decide_where_tasks_stand_in_another_order_and_one_comes_again() -> None:
    # Columns c, a, b; stages b, c, b, a: stage numbers, column numbers and tasks all differ.
    scores: list[Row] = [[0.1, 0.2, 0.9], [0.8, 0.2, 0.5], [0.6, 0.2, 0.7], [0.3, 0.9, 0.6]]
    document = found(scores, ["c", "a", "b"], [0.0, 0.2, 0.1], learned=["b", "c", "b", "a"])
    assert value(document, "forgetting", "b") == pytest.approx(0.9 - 0.6)
    assert value(document, "backward_transfer", "b") == pytest.approx(0.6 - 0.7)
    assert value(document, "forgetting", "c") == pytest.approx(0.8 - 0.3)
    assert value(document, "forgetting") == pytest.approx((0.3 + 0.5) / 2)
    assert value(document, "backward_transfer") == pytest.approx((-0.1 - 0.5) / 2)
    assert value(document, "forward_transfer") == pytest.approx((0.1 + 0.0) / 2)


def test_scores_below_zero_are_scores_and_what_is_missing_is_none() -> None:
    scores: list[Row] = [[-2, None, None], [-2, -1, None], [-2, -1.5, -1]]
    before = copy.deepcopy(scores)
    document = found(scores, ["a", "b", "c"], items={"a": 10, "b": 10, "c": 10})
    assert value(document, "forgetting") == pytest.approx(0.25), "0.75 is what zeros for missing cells give"
    assert document["metrics"]["forgetting_all_past"]["reason"] == "a/b: not evaluated"
    assert value(document, "backward_transfer") == pytest.approx(-0.25)
    assert document["metrics"]["forgetting_under_no_change"]["value"] is None
    assert scores == before


def test_one_task_is_undefined_and_a_better_score_is_negative_forgetting() -> None:
    one = found([[0.8]], ["a"], [0.1])["metrics"]
    for name in ("backward_transfer", "forward_transfer", "forgetting", "forgetting_all_past", "forgetting_diagonal"):
        assert one[name]["value"] is None and one[name]["reason"]
    assert value(found([[0.5, 0.1], [0.7, 0.6]], ["a", "b"]), "forgetting") == pytest.approx(-0.2)


def test_the_last_task_is_in_no_mean_of_forgetting() -> None:
    # It was far better before its own stage; only a counts.
    document = found([[0.8, 0.9], [0.7, 0.1]], ["a", "b"])
    assert value(document, "forgetting") == value(document, "forgetting_all_past") == pytest.approx(0.1)


def test_five_stages_learn_each_its_own_task() -> None:
    tasks = list("abcde")
    scores: list[Row] = [[0.9 if row == column else 0.25 for column in range(5)] for row in range(5)]
    document = found(scores, tasks, [0.25] * 5, chance=dict.fromkeys(tasks, 0.25))
    assert [value(document, "acquisition", task) for task in tasks] == [0.9] * 5
    assert value(document, "acquisition_above_chance") == pytest.approx(0.65 / 0.75)
    assert value(document, "average_accuracy_above_chance") == pytest.approx(0.65 / 0.75 / 5)


def test_a_column_without_spread_detects_nothing() -> None:
    retention = {"p": [1.0, 1.0], "q": [0.0, 0.0]}
    document = found([[0.8]], ["a"], [0.1], retention=retention, retention_items={"p": 100, "q": 50})
    assert value(document, "retention_change") == 0
    detectable = document["metrics"]["retention_change_detectable"]
    assert detectable["value"] is None and "no spread" in detectable["reason"]
