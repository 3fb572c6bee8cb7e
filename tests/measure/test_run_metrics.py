"""The document metrics.json: values and reasons for whole, broken and unusual runs."""

from __future__ import annotations

import copy
import json
import math
from typing import Any

import pytest

from cl_bench.harness.documents import validate_document
from cl_bench.harness.measure.matrix import Cell, Matrix
from cl_bench.harness.measure.run_evaluation import cell_of
from cl_bench.harness.measure.run_metrics import run_metrics
from cl_bench.harness.measure.scores import Scores
from cl_bench.harness.measure.task_result import TaskResult
from tests.measure.matrices import Row, make_matrix, one_by_one

TASKS = ("a", "b", "c")
ROWS: list[Row] = [[0.8, 0.3, 0.2], [0.6, 0.9, 0.3], [0.5, 0.7, 0.9]]
DIFFERENCES = ("gain", "backward_transfer", "forward_transfer", "forgetting", "forgetting_all_past",
               "forgetting_diagonal")  # fmt: skip
LEVELS = ("acquisition", "average_accuracy", "average_incremental_accuracy")


@pytest.fixture
def run() -> Scores:
    return one_by_one([0.2, 0.3, 0.25], ROWS, TASKS)


def document(run: Scores) -> dict[str, Any]:
    return run_metrics(run.matrix, run.learned)


def values(found: dict[str, Any], *names: str) -> dict[str, float | None]:
    return {name: found["metrics"][name]["value"] for name in names}


def test_headline_numbers_by_hand(run: Scores) -> None:
    found = document(run)
    assert values(found, *LEVELS, *DIFFERENCES) == pytest.approx({
        "acquisition": 2.6 / 3,
        "gain": 2.6 / 3 - 0.25,
        "average_accuracy": 0.7,
        "average_incremental_accuracy": (0.8 + 0.75 + 0.7) / 3,
        "backward_transfer": -0.25,
        "forward_transfer": 0.025,
        "forgetting": 0.25,
        "forgetting_all_past": 0.25,
        "forgetting_diagonal": 0.25,
    })  # fmt: skip
    assert found["metrics"]["forgetting_above_chance"]["value"] == pytest.approx(0.25 / 0.75)
    assert found["tasks"]["a"]["forgetting"] == {"value": pytest.approx(0.3)}
    assert found["tasks"]["c"]["forgetting"] == {"value": None, "reason": "c is learned in the last stage"}
    assert found["tasks"]["b"]["final"] == {"value": 0.7}


def test_a_model_that_never_changed_learned_and_forgot_nothing() -> None:
    constant: Row = [0.3, 0.1, 0.45, 0.7]
    matrix = make_matrix({row: constant for row in ("base", *TASKS)}, TASKS, ("piqa",))
    found = run_metrics(matrix, {task: (task,) for task in TASKS})
    assert set(values(found, *DIFFERENCES, "retention_change").values()) == {0.0}
    assert found["metrics"]["retention_near_base"]["value"] == 1


def test_input_is_not_changed_and_shifting_all_scores_changes_no_difference(run: Scores) -> None:
    before = copy.deepcopy(run.matrix.to_json())
    found = document(run)
    assert run.matrix.to_json() == before
    rows = {row: [run.at(row, task) - 5.0 for task in TASKS] for row in run.matrix.rows}
    lowered = run_metrics(make_matrix(rows, TASKS), run.learned)
    assert values(lowered, *DIFFERENCES) == pytest.approx(values(found, *DIFFERENCES))
    assert values(lowered, *LEVELS) == pytest.approx({
        name: value - 5 for name, value in values(found, *LEVELS).items() if value is not None
    })  # fmt: skip
    null = lowered["metrics"]["forgetting_under_no_change"]
    assert null["value"] is None and "no share of items" in null["reason"]


def test_metrics_go_by_names_not_by_column_order(run: Scores) -> None:
    turned = Matrix(reversed(run.matrix.columns))
    for row in run.matrix.rows:
        turned.add_row(row)
        for task in TASKS:
            turned.set(row, task, run.matrix.cell(row, task))
    assert run_metrics(turned, run.learned) == document(run)


@pytest.mark.parametrize("broken", [None, math.nan, math.inf])
def test_missing_cell_makes_reasons_not_zeros(run: Scores, broken: float | None) -> None:
    whole = document(run)
    run.matrix.set("c", "b", Cell(broken, "" if broken is not None else "diverged"))
    found = document(run)
    json.dumps(found, allow_nan=False)
    for name in ("average_accuracy", "backward_transfer", "forgetting", "forgetting_under_no_change"):
        assert found["metrics"][name]["value"] is None
        assert found["metrics"][name]["reason"].startswith("c/b: ")
    assert values(found, "acquisition", "forward_transfer") == values(whole, "acquisition", "forward_transfer")
    assert found["tasks"]["a"]["forgetting"] == whole["tasks"]["a"]["forgetting"]
    validate_document(found, "metrics")


def test_planned_stage_that_never_ran_is_named(run: Scores) -> None:
    found = run_metrics(run.matrix, {**run.learned, "a-2": ("a",)})
    assert found["metrics"]["average_accuracy"] == {"value": None, "reason": "row a-2 was not evaluated"}
    assert found["stages"]["a-2"]["acquisition"]["value"] is None
    assert found["stages"]["c"]["acquisition"]["value"] == 0.9


def test_one_stage_has_no_transfer_and_no_forgetting() -> None:
    matrix = make_matrix({"base": [0.2], "a": [0.6]}, ("a",))
    found = run_metrics(matrix, {"a": ("a",)})["metrics"]
    assert found["gain"]["value"] == pytest.approx(0.4)
    for name in ("backward_transfer", "forward_transfer", "forgetting", "forgetting_under_no_change", "retention"):
        assert found[name]["value"] is None and found[name]["reason"]


def test_base_alone_has_retention_only() -> None:
    found = run_metrics(make_matrix({"base": [0.2, 0.75]}, ("a",), ("piqa",)), {})
    assert found["metrics"]["retention"]["value"] == 0.75
    assert found["metrics"]["retention_above_chance"]["value"] == pytest.approx(0.5)
    assert found["metrics"]["acquisition"] == {"value": None, "reason": "the run has no stages"}
    assert found["tasks"]["a"]["forgetting"] == {"value": None, "reason": "no stage trains on a"}


def test_a_matrix_without_rows_has_reasons_only(run: Scores) -> None:
    found = run_metrics(Matrix(run.matrix.columns), run.learned)
    assert all(one["value"] is None and one["reason"] for one in found["metrics"].values())
    validate_document(found, "metrics")


def test_joint_training_learns_all_tasks_in_one_stage() -> None:
    matrix = make_matrix({"base": [0.2, 0.3], "joint": [0.6, 0.9]}, ("a", "b"))
    found = run_metrics(matrix, {"joint": ("a", "b")})["metrics"]
    assert found["acquisition"]["value"] == pytest.approx(0.75)
    assert found["gain"]["value"] == pytest.approx(0.5)
    assert found["backward_transfer"]["value"] is None


def test_absent_benchmark_is_left_out_of_all_rows_and_named() -> None:
    rows: dict[str, Row] = {"base": [0.2, 0.8, None], "a": [0.6, 0.7, None]}
    found = run_metrics(make_matrix(rows, ("a",), ("piqa", "gsm8k")), {"a": ("a",)})
    assert found["metrics"]["retention_change"]["value"] == pytest.approx(-0.1)
    assert found["metrics"]["retention_change"]["reason"] == "without gsm8k: diverged"
    assert found["metrics"]["retention_change_above_chance"]["value"] == pytest.approx(-0.2)
    assert found["stages"]["base"]["retention"]["value"] == 0.8


def test_benchmark_lost_after_row_0_makes_retention_undefined() -> None:
    rows: dict[str, Row] = {"base": [0.2, 0.8, 0.4], "a": [0.6, 0.7, None]}
    found = run_metrics(make_matrix(rows, ("a",), ("piqa", "gsm8k")), {"a": ("a",)})["metrics"]
    assert found["retention"] == {"value": None, "reason": "a/gsm8k: diverged"}


def test_smallest_detectable_retention_change_by_hand() -> None:
    rows = {"base": [0.2, 0.5, 0.5], "a": [0.6, 0.5, 0.5]}
    found = run_metrics(make_matrix(rows, ("a",), ("piqa", "gsm8k")), {"a": ("a",)})["metrics"]
    deviation = (4 * 0.25 / 100) ** 0.5 / 2
    assert found["retention_change_detectable"]["value"] == pytest.approx((1.959964 + 0.841621) * deviation, rel=1e-5)
    unknown = run_metrics(make_matrix(rows, ("a",), ("piqa", "gsm8k"), n=None), {"a": ("a",)})["metrics"]
    assert unknown["retention_change_detectable"]["value"] is None


def test_document_fits_its_schema(run: Scores) -> None:
    validate_document(document(run), "metrics")
    validate_document(run_metrics(Matrix(()), {}), "metrics")
    assert document(run)["parameters"]["near_base"] == 0.02
    low, high = document(run)["metrics"]["forgetting_under_no_change"]["range"]
    assert low < document(run)["metrics"]["forgetting_under_no_change"]["value"] < high


@pytest.mark.parametrize("score", [float("nan"), float("inf")])
def test_a_score_that_is_no_number_is_a_cell_with_a_reason(score: float) -> None:
    cell = cell_of(TaskResult("task", "metric", score, None, 0.25, {"n": 3}))
    assert cell.value is None and cell.reason == f"the score is {score}, no finite number"
