"""Metrics against the golden vectors, and what they do where something is missing."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from cl_bench.harness.documents import validate_document
from cl_bench.harness.measure import metrics
from cl_bench.harness.measure.matrix import Cell, Column, Matrix
from cl_bench.harness.measure.metrics import Scores, UndefinedMetricError, run_metrics

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "cl_metrics_a.json").read_text())
EXPECTED: dict[str, Any] = GOLDEN["expected"]
TASKS = ("t1", "t2", "t3", "t4")


def make_matrix(
    rows: dict[str, list[float | None]], tasks: tuple[str, ...] = TASKS, retention: tuple[str, ...] = ()
) -> Matrix:
    matrix = Matrix(
        [Column(name, "sequence", 0.25, 100, "accuracy") for name in tasks]
        + [Column(name, "retention", 0.5, 100, "acc") for name in retention]
    )
    for row, values in rows.items():
        matrix.add_row(row)
        for name, value in zip((*tasks, *retention), values, strict=True):
            matrix.set(row, name, Cell(value, "" if value is not None else "diverged"))
    return matrix


@pytest.fixture
def golden() -> Scores:
    rows = {"base": GOLDEN["inputs"]["base"], **dict(zip(TASKS, GOLDEN["inputs"]["R"], strict=True))}
    return Scores(make_matrix(rows), {task: (task,) for task in TASKS})


def test_golden_vectors(golden: Scores) -> None:
    joint = dict(zip(TASKS, GOLDEN["inputs"]["joint_reference"], strict=True))
    found = {
        "average_accuracy_final": metrics.average_accuracy(golden),
        "average_incremental_accuracy": metrics.average_incremental_accuracy(golden),
        "BWT": metrics.backward_transfer(golden),
        "FWT_vs_base": metrics.forward_transfer(golden),
        "forgetting_max_past_minus_final": metrics.forgetting(golden),
        "forgetting_max_from_learn": metrics.forgetting(golden, since_learned=True),
        "forgetting_clamped_at_zero": metrics.forgetting(golden, with_final=True),
        "intransigence": metrics.intransigence(golden, joint),
        "learning_accuracy_diag": metrics.mean_over_stages(golden, metrics.acquisition),
        "acquisition_gain_over_base": metrics.mean_over_stages(golden, metrics.gain),
    }
    assert found == pytest.approx({name: EXPECTED[name] for name in found}, abs=1e-12)
    per_task = [metrics.task_forgetting(golden, task) for task in TASKS[:-1]]
    assert per_task == pytest.approx(EXPECTED["per_task_forgetting"], abs=1e-12)
    triangle = metrics.forgetting_matrix(golden)
    for row, expected in zip(TASKS, EXPECTED["avalanche_forgetting_matrix"], strict=True):
        assert list(triangle[row].values()) == pytest.approx(expected[: len(triangle[row])], abs=1e-12)


def test_best_before_learning_counts_for_forgetting_but_not_since_learned() -> None:
    rows: dict[str, list[float | None]] = {
        "base": [0.2, 0.2, 0],
        "a": [0.5, 0.9, 0],
        "b": [0.5, 0.6, 0],
        "c": [0.5, 0.5, 1],
    }
    scores = Scores(make_matrix(rows, ("a", "b", "c")), {"a": ("a",), "b": ("b",), "c": ("c",)})
    assert metrics.task_forgetting(scores, "b") == pytest.approx(0.4)
    assert metrics.task_forgetting(scores, "b", since_learned=True) == pytest.approx(0.1)


def test_a_model_that_never_changed_learned_and_forgot_nothing() -> None:
    constant: list[float | None] = [0.3, 0.1, 0.45, 0.2, 0.7]
    matrix = make_matrix({row: constant for row in ("base", *TASKS)}, retention=("piqa",))
    document = run_metrics(matrix, {task: (task,) for task in TASKS})
    changes = ("gain", "backward_transfer", "forward_transfer", "forgetting", "forgetting_since_learned")
    found = {name: document["metrics"][name]["value"] for name in (*changes, "retention_change")}
    assert found == dict.fromkeys(found, 0.0)
    assert document["metrics"]["acquisition"]["value"] == pytest.approx(sum((0.3, 0.1, 0.45, 0.2)) / 4)


def test_input_is_not_changed_and_shifting_all_scores_changes_no_difference(golden: Scores) -> None:
    before = copy.deepcopy(golden.matrix.to_json())
    document = run_metrics(golden.matrix, golden.learned)
    assert golden.matrix.to_json() == before
    lowered = make_matrix(
        {row: [golden.at(row, task) - 5.0 for task in TASKS] for row in golden.matrix.rows},
    )
    negative = run_metrics(lowered, golden.learned)["metrics"]
    for name in ("gain", "backward_transfer", "forward_transfer", "forgetting", "forgetting_since_learned"):
        assert negative[name]["value"] == pytest.approx(document["metrics"][name]["value"], abs=1e-12)
    for name in ("acquisition", "average_accuracy", "average_incremental_accuracy"):
        assert negative[name]["value"] == pytest.approx(document["metrics"][name]["value"] - 5.0, abs=1e-12)


def test_metrics_go_by_names_not_by_column_order(golden: Scores) -> None:
    turned = Matrix(reversed(golden.matrix.columns))
    for row in golden.matrix.rows:
        turned.add_row(row)
        for task in TASKS:
            turned.set(row, task, golden.matrix.cell(row, task))
    assert run_metrics(turned, golden.learned) == run_metrics(golden.matrix, golden.learned)


def test_missing_cell_makes_reasons_not_zeros(golden: Scores) -> None:
    golden.matrix.set("t4", "t2", Cell(None, "diverged"))
    found = run_metrics(golden.matrix, golden.learned)["metrics"]
    for name in ("average_accuracy", "backward_transfer", "forgetting"):
        assert found[name] == {"value": None, "reason": "t4/t2: diverged"}
    assert found["acquisition"]["value"] == pytest.approx(EXPECTED["learning_accuracy_diag"])
    assert found["forward_transfer"]["value"] == pytest.approx(EXPECTED["FWT_vs_base"])


def test_planned_stage_that_never_ran_is_named(golden: Scores) -> None:
    document = run_metrics(golden.matrix, {**golden.learned, "t5": ("t1",)})
    assert document["metrics"]["average_accuracy"] == {"value": None, "reason": "row t5 was not evaluated"}
    assert document["stages"]["t5"]["acquisition"]["value"] is None
    assert document["stages"]["t4"]["acquisition"]["value"] == 0.81


def test_one_stage_has_no_transfer_and_no_forgetting() -> None:
    matrix = make_matrix({"base": [0.2], "a": [0.6]}, ("a",))
    found = run_metrics(matrix, {"a": ("a",)})["metrics"]
    assert found["gain"]["value"] == pytest.approx(0.4)
    for name in ("backward_transfer", "forward_transfer", "forgetting", "retention"):
        assert found[name]["value"] is None and found[name]["reason"]


def test_base_alone_has_retention_only() -> None:
    document = run_metrics(make_matrix({"base": [0.2, 0.75]}, ("a",), ("piqa",)), {})
    assert document["metrics"]["retention"]["value"] == 0.75
    assert document["metrics"]["retention_above_chance"]["value"] == pytest.approx(0.5)
    assert document["metrics"]["acquisition"] == {"value": None, "reason": "the run has no stages"}


def test_joint_training_learns_all_tasks_in_one_stage() -> None:
    matrix = make_matrix({"base": [0.2, 0.3], "joint": [0.6, 0.9]}, ("a", "b"))
    found = run_metrics(matrix, {"joint": ("a", "b")})["metrics"]
    assert found["acquisition"]["value"] == pytest.approx(0.75)
    assert found["gain"]["value"] == pytest.approx(0.5)
    assert found["backward_transfer"]["value"] is None


def test_repeated_task_is_learned_twice() -> None:
    rows: dict[str, list[float | None]] = {"base": [0.1, 0.1], "a": [0.8, 0.1], "b": [0.4, 0.7], "a-2": [0.9, 0.5]}
    scores = Scores(make_matrix(rows, ("a", "b")), {"a": ("a",), "b": ("b",), "a-2": ("a",)})
    assert metrics.acquisition(scores, "a-2") == 0.9
    assert metrics.backward_transfer(scores) == pytest.approx(0.5 - 0.7)
    assert metrics.forgetting(scores) == pytest.approx(0.7 - 0.5)
    assert metrics.average_accuracy(scores) == pytest.approx(0.7)


def test_absent_benchmark_is_left_out_of_all_rows_and_named() -> None:
    rows: dict[str, list[float | None]] = {"base": [0.2, 0.8, None], "a": [0.6, 0.7, None]}
    document = run_metrics(make_matrix(rows, ("a",), ("piqa", "gsm8k")), {"a": ("a",)})
    assert document["metrics"]["retention_change"]["value"] == pytest.approx(-0.1)
    assert document["metrics"]["retention_change"]["reason"] == "without gsm8k: diverged"
    assert document["stages"]["base"]["retention"]["value"] == 0.8


def test_benchmark_lost_after_row_0_makes_retention_undefined() -> None:
    rows: dict[str, list[float | None]] = {"base": [0.2, 0.8, 0.4], "a": [0.6, 0.7, None]}
    found = run_metrics(make_matrix(rows, ("a",), ("piqa", "gsm8k")), {"a": ("a",)})["metrics"]
    assert found["retention"] == {"value": None, "reason": "a/gsm8k: diverged"}


def test_document_fits_its_schema(golden: Scores) -> None:
    validate_document(run_metrics(golden.matrix, golden.learned), "metrics")
    validate_document(run_metrics(Matrix(()), {}), "metrics")


def test_intransigence_names_what_is_missing(golden: Scores) -> None:
    with pytest.raises(UndefinedMetricError, match="t3, t4"):
        metrics.intransigence(golden, {"t1": 1.0, "t2": 1.0})
