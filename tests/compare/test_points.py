"""Points of shift against forgetting: which rows become one, and with which numbers."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from cl_bench.harness.compare.points import Points, points_of
from cl_bench.harness.compare.runs import find_runs
from cl_bench.harness.compare.table import method_names, panels
from tests.compare.small_runs import TASKS, VALUES, make_run

ONE_STAGE = {"base": (0.2, 0.6, 0.8), "chemistry": (0.9, 0.5, 0.7)}


def points(folder: Path, *marked: Path) -> Points:
    views = find_runs([str(folder)]).views
    return points_of(views, method_names(panels(views)), [run.resolve() for run in marked])


def test_x_and_y_are_of_the_same_row_against_the_untouched_model(tmp_path: Path) -> None:
    run = make_run(tmp_path, shifts={"chemistry": 0.5, "biology": 0.25}, steps=10)
    first, second = points(tmp_path).points
    assert (first.row, first.task, first.primary, first.shift) == ("chemistry", "chemistry", True, 0.5)
    assert first.retention_change.value == pytest.approx(-0.1) and first.gain.value == pytest.approx(0.7)
    assert (second.row, second.task, second.primary, second.shift) == ("biology", "biology", False, 0.25)
    assert second.retention_change.value == pytest.approx(-0.2) and second.gain.value == pytest.approx(0.5)
    assert first.log_budget.value == pytest.approx(math.log(1e-3 * 10))
    assert second.log_budget.value == pytest.approx(math.log(1e-3 * 20)), "steps since the untouched model"
    assert first.run_cluster == second.run_cluster == str(run.resolve())
    assert first.task_cluster == "lab-m x chemistry"


def test_one_adaptation_in_two_runs_is_one_primary_point(tmp_path: Path) -> None:
    make_run(tmp_path)
    make_run(tmp_path, stages=TASKS[:1], values=ONE_STAGE)
    found = points(tmp_path)
    assert [point.primary for point in found.points].count(True) == 1
    assert found.left_out == {"the same adaptation as another run's first stage": 1}
    make_run(tmp_path, seed=1, stages=TASKS[:1], values=ONE_STAGE)
    make_run(tmp_path, settings={"learning_rate": 1e-4}, stages=TASKS[:1], values=ONE_STAGE)
    assert [point.primary for point in points(tmp_path).points].count(True) == 3


def test_joint_training_is_an_adaptation_of_the_untouched_model(tmp_path: Path) -> None:
    make_run(tmp_path, "joint-sft", values={"base": VALUES["base"], "joint": VALUES["biology"]})
    (point,) = points(tmp_path).points
    assert point.primary and point.task == "chemistry+biology" and point.method == "joint-sft"


def test_rows_without_a_shift_or_a_value_say_why(tmp_path: Path) -> None:
    make_run(tmp_path, shifts={"chemistry": None})
    make_run(tmp_path, seed=1, state="diverged", values={**VALUES, "biology": (None,) * 4})
    run = make_run(tmp_path, seed=2)
    marked = make_run(tmp_path, seed=3, limit=8)
    for folder in (run / "stages").iterdir():  # as a version that measures no shift leaves it
        done = json.loads((folder / "done.json").read_text())
        if done["files"].pop("shift.json", None):
            (folder / "shift.json").unlink()
        (folder / "done.json").write_text(json.dumps(done))
    found = points(tmp_path, marked)
    assert [(point.seed, point.row) for point in found.points] == [(0, "biology"), (1, "chemistry")]
    assert found.left_out == {
        "no dev row is left to ask": 1,
        "the run diverged before": 1,
        "no shift was measured": 2,
        "not comparable": 2,
    }


def test_a_row_without_retention_is_a_point_for_learning_alone(tmp_path: Path) -> None:
    make_run(tmp_path, values={**VALUES, "chemistry": (0.9, 0.3, None, 0.7)})
    first, second = points(tmp_path).points
    assert first.retention_change.value is None and "diverged" in first.retention_change.reason
    assert first.gain.value is not None and second.retention_change.value is not None


def test_a_method_without_a_learning_rate_has_no_budget(tmp_path: Path) -> None:
    make_run(tmp_path, settings={})
    assert all(point.log_budget.value is None for point in points(tmp_path).points)


@pytest.mark.parametrize(("left", "floor"), [(0.26, True), (0.3, True), (0.45, False)])
def test_a_point_is_on_the_floor_where_most_cells_score_what_guessing_scores(
    tmp_path: Path, left: float, floor: bool
) -> None:
    # 100 items at a chance of .25: two standard errors of guessing are .087.
    make_run(tmp_path, values={**VALUES, "chemistry": (0.9, 0.3, left, left), "biology": (0.7, 0.8, left, 0.6)})
    first, second = points(tmp_path).points
    assert first.at_floor is floor and second.at_floor is False
