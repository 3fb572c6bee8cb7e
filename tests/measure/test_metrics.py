"""Metrics against golden vectors and hand matrices, and what they do where something is missing."""

from __future__ import annotations

import copy
import json
import math
from pathlib import Path
from typing import Any

import pytest

from cl_bench.harness.measure import metrics
from cl_bench.harness.measure.matrix import Cell
from cl_bench.harness.measure.scores import Scores, UndefinedMetricError
from tests.measure.matrices import Row, make_matrix, one_by_one

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "cl_metrics_a.json").read_text())
EXPECTED: dict[str, Any] = GOLDEN["expected"]
TASKS = ("t1", "t2", "t3", "t4")


@pytest.fixture
def golden() -> Scores:
    return one_by_one(GOLDEN["inputs"]["base"], GOLDEN["inputs"]["R"], TASKS)


def test_golden_vectors(golden: Scores) -> None:
    joint = dict(zip(TASKS, GOLDEN["inputs"]["joint_reference"], strict=True))
    found = {
        "average_accuracy_final": metrics.average_accuracy(golden),
        "average_incremental_accuracy": metrics.average_incremental_accuracy(golden),
        "BWT": metrics.backward_transfer(golden),
        "FWT_vs_base": metrics.forward_transfer(golden),
        "forgetting_max_past_minus_final": metrics.forgetting(golden, "all"),
        "forgetting_max_from_learn": metrics.forgetting(golden),
        "forgetting_clamped_at_zero": metrics.forgetting(golden, "every"),
        "intransigence": metrics.intransigence(golden, joint),
        "learning_accuracy_diag": metrics.mean_over_stages(golden, metrics.acquisition),
        "acquisition_gain_over_base": metrics.mean_over_stages(golden, metrics.gain),
    }
    assert found == pytest.approx({name: EXPECTED[name] for name in found}, abs=1e-12)
    per_task = [metrics.task_forgetting(golden, task, "all") for task in TASKS[:-1]]
    assert per_task == pytest.approx(EXPECTED["per_task_forgetting"], abs=1e-12)
    triangle = metrics.forgetting_matrix(golden)
    for row, expected in zip(TASKS, EXPECTED["avalanche_forgetting_matrix"], strict=True):
        assert list(triangle[row].values()) == pytest.approx(expected[: len(triangle[row])], abs=1e-12)
    diagonal = metrics.forgetting(golden, "diagonal")
    assert diagonal == pytest.approx(sum(EXPECTED["avalanche_forgetting_matrix"][-1]) / 3, abs=1e-12)


def test_two_tasks_by_hand() -> None:
    scores = one_by_one(None, [[0.8, 0.1], [0.6, 0.9]], ("a", "b"))
    for past in ("own", "all", "diagonal"):
        assert metrics.forgetting(scores, past) == pytest.approx(0.2)
    assert metrics.backward_transfer(scores) == pytest.approx(-0.2)
    assert metrics.average_accuracy(scores) == pytest.approx(0.75)


def test_a_task_that_no_stage_trains_on_is_undefined_not_zero() -> None:
    rows = {"base": [0.1, 0.3], "a": [0.8, 0.2]}
    scores = Scores(make_matrix(rows, ("a", "b")), {"a": ("a",)})
    for compute in (metrics.task_forgetting, metrics.task_backward_transfer, metrics.task_forward_transfer):
        with pytest.raises(UndefinedMetricError, match="no stage trains on b"):
            compute(scores, "b")
    assert metrics.average_accuracy(scores) == 0.8


def test_negative_scores_improvement_and_the_last_task() -> None:
    scores = one_by_one(None, [[-2, -9, -9], [-2, -1, -9], [-2, -1.5, -1]], ("a", "b", "c"))
    assert metrics.forgetting(scores) == pytest.approx(0.25), "not 0.75, which zeros for missing cells would give"
    assert metrics.backward_transfer(scores) == pytest.approx(-0.25)
    improving = one_by_one(None, [[0.5, 0.1], [0.7, 0.6]], ("a", "b"))
    assert metrics.forgetting(improving) == pytest.approx(-0.2)
    assert metrics.forgetting(improving, "every") == 0
    last_is_bad = one_by_one(None, [[0.8, 0.9], [0.8, 0.1]], ("a", "b"))
    assert metrics.forgetting(last_is_bad) == 0, "the last task is not averaged in"


def test_five_stages_read_the_cells_of_their_own_tasks() -> None:
    tasks = tuple("abcde")
    rows = [[0.1 * (row == column) + 0.01 * column for column in range(5)] for row in range(5)]
    scores = one_by_one([0.0] * 5, rows, tasks)
    for place, task in enumerate(tasks):
        assert metrics.acquisition(scores, task) == pytest.approx(0.1 + 0.01 * place)
    assert metrics.forgetting(scores) == pytest.approx(0.1)
    assert metrics.forward_transfer(scores) == pytest.approx(0.01 * (1 + 2 + 3 + 4) / 4)


def test_what_came_before_learning_counts_for_all_past_only_and_base_never() -> None:
    rows: list[Row] = [[0.5, 0.9, 0], [0.5, 0.6, 0], [0.5, 0.5, 1]]
    scores = one_by_one([0.99, 0.99, 0], rows, ("a", "b", "c"))
    assert metrics.task_forgetting(scores, "b", "all") == pytest.approx(0.4)
    assert metrics.task_forgetting(scores, "b") == pytest.approx(0.1)
    assert metrics.task_forgetting(scores, "a", "all") == 0, "the untouched model's score is not looked at"


def test_the_best_since_learning_differs_from_the_diagonal() -> None:
    scores = one_by_one(None, [[0.5, 0, 0], [0.8, 0.5, 0], [0.4, 0.5, 0.5]], ("a", "b", "c"))
    assert metrics.task_forgetting(scores, "a") == pytest.approx(0.4)
    assert metrics.task_forgetting(scores, "a", "diagonal") == pytest.approx(0.1)


def test_repeated_task_is_learned_twice() -> None:
    rows = {"base": [0.1, 0.1], "a": [0.8, 0.1], "b": [0.4, 0.7], "a-2": [0.9, 0.5]}
    scores = Scores(make_matrix(rows, ("a", "b")), {"a": ("a",), "b": ("b",), "a-2": ("a",)})
    assert metrics.acquisition(scores, "a-2") == 0.9
    assert metrics.backward_transfer(scores) == pytest.approx(0.5 - 0.7)
    assert metrics.forgetting(scores) == pytest.approx(0.7 - 0.5)
    assert metrics.average_accuracy(scores) == pytest.approx(0.7)


def test_relearned_task_is_compared_with_its_last_learning_for_bwt_and_its_first_for_forgetting() -> None:
    rows = {"a": [0.9, 0.0], "a-2": [0.6, 0.0], "b": [0.5, 0.8]}
    scores = Scores(make_matrix(rows, ("a", "b")), {"a": ("a",), "a-2": ("a",), "b": ("b",)})
    assert metrics.backward_transfer(scores) == pytest.approx(0.5 - 0.6)
    assert metrics.forgetting(scores) == pytest.approx(0.9 - 0.5)
    assert metrics.forgetting(scores, "diagonal") == pytest.approx(0.9 - 0.5)


@pytest.mark.parametrize("broken", [math.nan, math.inf, -math.inf])
def test_a_score_that_is_no_number_makes_metrics_undefined(golden: Scores, broken: float) -> None:
    golden.matrix.set("t4", "t2", Cell(broken))
    with pytest.raises(UndefinedMetricError, match=f"t4/t2: the score is {broken}"):
        metrics.average_accuracy(golden)
    with pytest.raises(UndefinedMetricError, match="t4/t2"):
        metrics.forgetting(golden)
    assert metrics.mean_over_stages(golden, metrics.acquisition) == pytest.approx(EXPECTED["learning_accuracy_diag"])


def test_a_stage_that_learns_no_evaluated_task_is_named() -> None:
    scores = Scores(make_matrix({"base": [0.1], "a": [0.2], "b": [0.3]}, ("a",)), {"a": ("a",), "b": ()})
    with pytest.raises(UndefinedMetricError, match="stage b"):
        metrics.mean_over_stages(scores, metrics.acquisition)
    assert metrics.average_accuracy(scores) == pytest.approx(0.3)
    with pytest.raises(UndefinedMetricError):
        metrics.average_accuracy(Scores(scores.matrix, {"b": ()}))
    with pytest.raises(UndefinedMetricError):
        metrics.average_incremental_accuracy(Scores(scores.matrix, {"b": ()}))


def test_intransigence_takes_the_final_scores_of_a_joint_run(golden: Scores) -> None:
    rows = {"base": [0.2, 0.3, 0.2, 0.2], "joint": GOLDEN["inputs"]["joint_reference"]}
    joint = Scores(make_matrix(rows, TASKS), {"joint": TASKS})
    reference = metrics.joint_scores(joint)
    assert metrics.intransigence(golden, reference) == pytest.approx(EXPECTED["intransigence"], abs=1e-12)
    joint.matrix.set("joint", "t2", Cell(None, "diverged"))
    with pytest.raises(UndefinedMetricError, match="no joint reference for t2"):
        metrics.intransigence(golden, metrics.joint_scores(joint))


def test_intransigence_names_what_is_missing(golden: Scores) -> None:
    with pytest.raises(UndefinedMetricError, match="t3, t4"):
        metrics.intransigence(golden, {"t1": 1.0, "t2": 1.0, "t3": math.nan})


def test_above_chance_by_hand() -> None:
    scores = one_by_one([0.25, 0.4], [[0.75, 0.4], [0.5, 0.85]], ("a", "b")).above_chance()
    assert scores.at("a", "a") == pytest.approx(0.5 / 0.75)
    assert metrics.forgetting(scores) == pytest.approx(0.25 / 0.75)
    assert metrics.gain(scores, "a") == pytest.approx(0.5 / 0.75)


def test_nothing_lies_above_a_chance_of_one() -> None:
    scores = Scores(make_matrix({"base": [0.5], "a": [0.7]}, ("a",), chance=1.0), {"a": ("a",)}).above_chance()
    with pytest.raises(UndefinedMetricError, match="guessing scores 1"):
        metrics.acquisition(scores, "a")


def near_base(change: float, n: int) -> float:
    rows = {"base": [0.1, 0.6, 0.6], "a": [0.9, 0.6 + change, 0.3]}
    return metrics.retention_near_base(Scores(make_matrix(rows, ("a",), ("p", "q"), n), {"a": ("a",)}), "a")


def test_share_of_benchmarks_near_base() -> None:
    assert near_base(0.02, 50) == 0.5
    assert near_base(-0.02, 50) == 0.5
    assert near_base(0.03, 100) == 0


def test_near_base_is_undefined_where_one_item_weighs_more_than_the_distance() -> None:
    with pytest.raises(UndefinedMetricError, match="p has 49 items"):
        near_base(0.0, 49)


def test_nothing_changes_the_input(golden: Scores) -> None:
    before = copy.deepcopy(golden.matrix.to_json())
    metrics.forgetting(golden.above_chance(), "every")
    metrics.backward_transfer(golden)
    assert golden.matrix.to_json() == before
