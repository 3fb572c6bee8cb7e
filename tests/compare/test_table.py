"""Methods over seeds: panels, rows, what stands in a cell, and what has no value."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from cl_bench.harness.compare.comparability import check_comparable
from cl_bench.harness.compare.comparison import compare_runs
from cl_bench.harness.compare.runs import find_runs
from cl_bench.harness.compare.table import MethodRow, Panel, panels
from cl_bench.harness.errors import NotComparableError
from cl_bench.harness.measure.items.churn import check_seeds
from cl_bench.reports.compare import warnings
from cl_bench.reports.seeds import summarise_seeds
from tests.compare.small_runs import TASKS, VALUES, Values, make_run


def panels_of(folder: Path, mark: bool = False) -> tuple[Panel, ...]:
    views = find_runs([str(folder)]).views
    return panels(views, check_comparable(views, mark))


def rows_of(folder: Path, mark: bool = False) -> dict[str, MethodRow]:
    (panel,) = panels_of(folder, mark)
    return {row.label: row for row in panel.rows}


def shifted(by: float) -> Values:
    """The values with the last row's first task higher."""
    last = VALUES["biology"]
    return {**VALUES, "biology": ((last[0] or 0) + by, *last[1:])}


def branch_of(weights: str, settings: str = "77") -> dict[str, Any]:
    names = {"run": weights * 32, "method": "dft", "seed": 0, "settings": settings * 32, "carried": False}
    return {**names, "stage": 1, "row": "chemistry", "weights": weights * 32}


def test_branches_of_runs_with_other_settings_are_rows_of_their_own(tmp_path: Path) -> None:
    for settings in ("77", "88"):
        make_run(tmp_path, branch=branch_of("aa", settings))
    assert sorted(rows_of(tmp_path)) == [f"sft-after-dft-chemistry (settings={two * 4}...)" for two in ("77", "88")]


def test_a_branch_is_no_other_seed_of_a_run_that_is_none(tmp_path: Path) -> None:
    make_run(tmp_path)
    make_run(tmp_path, seed=1, branch=branch_of("aa"))
    one, other = find_runs([str(tmp_path)]).views
    for pair in ((one, other), (other, one)):
        with pytest.raises(NotComparableError, match="branch"):
            check_seeds(*pair)
        with pytest.raises(NotComparableError, match="branch"):
            summarise_seeds(pair)


def test_branches_of_several_seeds_are_one_row_which_says_where_they_share_stages(tmp_path: Path) -> None:
    for seed, weights in ((0, "aa"), (1, "bb"), (2, "bb")):
        make_run(tmp_path, seed=seed, branch=branch_of(weights))
    (row,) = rows_of(tmp_path).values()
    assert row.label == "sft-after-dft-chemistry" and row.seeds == (0, 1, 2)
    assert row.shared_start == "chemistry"
    (said,) = [line for line in warnings(compare_runs([str(tmp_path)])) if "seeds share stages" in line]
    assert said.startswith("sft-after-dft-chemistry: seeds share stages up to chemistry")
    shutil.rmtree(row.views[2].directory)
    (row,) = rows_of(tmp_path).values()
    assert row.shared_start is None


def test_measures_of_one_run_are_those_of_the_hand(tmp_path: Path) -> None:
    make_run(tmp_path, shifts={"chemistry": 0.5, "biology": 0.25})
    measures = {name: found.mean for name, found in rows_of(tmp_path)["sft"].measures.items()}
    assert measures["acquisition"] == pytest.approx((0.9 + 0.8) / 2)
    assert measures["gain"] == pytest.approx(((0.9 - 0.2) + (0.8 - 0.3)) / 2)
    assert measures["retention_change"] == pytest.approx(0.5 - 0.7)
    assert measures["backward_transfer"] == pytest.approx(0.7 - 0.9)
    assert measures["forgetting"] == pytest.approx(0.2)
    assert measures["shift"] == 0.25, "the last row's, like retention change"
    assert measures["pflops"] == pytest.approx(2 * 4e12 / 1e15)
    assert measures["seconds"] == 4.0 and measures["total_seconds"] == 60.0
    assert measures["gain_per_pflop"] == pytest.approx(0.6 / 0.008)
    parts = {name: found.mean for name, found in rows_of(tmp_path)["sft"].parts.items()}
    assert parts == pytest.approx({"train": 0.006, "data_generation": 0.002})


def test_five_seeds_have_a_t_interval_and_four_have_none(tmp_path: Path) -> None:
    for seed, by in enumerate((-0.02, -0.01, 0.0, 0.01, 0.02)):
        make_run(tmp_path / "five", seed=seed, values=shifted(by))
        if seed < 4:
            make_run(tmp_path / "four", seed=seed, values=shifted(by))
    five = rows_of(tmp_path / "five")["sft"].measures["backward_transfer"]
    half = 2.7764451 * 0.0158113883 / 5**0.5  # t of 4 degrees of freedom, standard deviation of the five
    assert five.mean == pytest.approx(-0.2) and five.interval == pytest.approx((-0.2 - half, -0.2 + half))
    four = rows_of(tmp_path / "four")["sft"].measures["backward_transfer"]
    assert four.interval is None and four.values == pytest.approx((-0.22, -0.21, -0.2, -0.19))


def test_a_mean_is_missing_where_one_seed_has_no_value(tmp_path: Path) -> None:
    make_run(tmp_path)
    make_run(tmp_path, seed=1, state="diverged", values={**VALUES, "biology": (None,) * 4})
    row = rows_of(tmp_path)["sft"]
    for name in ("acquisition", "retention_change", "backward_transfer", "forgetting", "shift"):
        found = row.measures[name]
        assert found.mean is None and found.interval is None, name
        assert found.values[0] is not None and found.values[1] is None
        assert found.reason.startswith("1 of 2 seeds: ") and len(found.reason) > len("1 of 2 seeds: ")


def test_one_task_one_row_and_base_have_reasons(tmp_path: Path) -> None:
    make_run(tmp_path, stages=TASKS[:1], values={"base": (0.2, 0.6, 0.8), "chemistry": (0.9, 0.5, 0.7)})
    make_run(tmp_path, "base", stages=TASKS[:1], values={"base": (0.2, 0.6, 0.8)})
    rows = rows_of(tmp_path)
    assert rows["sft"].measures["gain"].mean == pytest.approx(0.7)
    assert "no task was learned before the last stage" in rows["sft"].measures["forgetting"].reason
    assert rows["base"].measures["gain"].reason == "the run has no stages"
    assert rows["base"].measures["retention_change"].mean == 0.0
    assert rows["base"].measures["pflops"].reason == "the run has no stages"


def test_a_shift_that_was_not_measured_is_a_reason_and_no_zero(tmp_path: Path) -> None:
    make_run(tmp_path, shifts={"biology": None})
    found = rows_of(tmp_path)["sft"].measures["shift"]
    assert found.mean is None and "no dev row is left to ask" in found.reason


def test_a_score_that_is_no_number_is_undefined(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    (run / "metrics.json").unlink()
    (run / "matrix.json").write_text((run / "matrix.json").read_text().replace("0.7", "NaN"))
    row = rows_of(tmp_path)["sft"]
    for name in ("backward_transfer", "forgetting"):
        assert row.measures[name].mean is None and "no finite number" in row.measures[name].reason


def test_intransigence_is_against_joint_training_of_the_same_seed(tmp_path: Path) -> None:
    joint = {"base": VALUES["base"], "joint": (0.95, 0.9, 0.5, 0.7)}
    for seed in (0, 1):
        make_run(tmp_path, seed=seed)
    make_run(tmp_path, "joint-sft", values=joint)
    rows = rows_of(tmp_path)
    found = rows["sft"].measures["intransigence"]
    assert found.values[0] == pytest.approx((0.05 + 0.1) / 2) and found.values[1] is None
    assert "no joint run of the same seed" in found.reason
    assert rows["joint-sft"].measures["intransigence"].mean is None
    make_run(tmp_path, "joint-sdft", seed=1, values=joint)
    assert rows_of(tmp_path)["sft"].measures["intransigence"].values[1] is None, "joint-sft is the reference"


def test_settings_that_differ_make_rows_of_their_own(tmp_path: Path) -> None:
    for rate in (1e-3, 1e-4):
        for seed in (0, 1):
            make_run(tmp_path, seed=seed, settings={"learning_rate": rate, "epochs": 2})
    rows = rows_of(tmp_path)
    assert set(rows) == {"sft (learning_rate=0.001)", "sft (learning_rate=0.0001)"}
    assert all(row.seeds == (0, 1) for row in rows.values())


def test_two_runs_of_one_seed_are_two_rows_and_no_two_seeds(tmp_path: Path) -> None:
    make_run(tmp_path)
    make_run(tmp_path, eval_every=4)
    rows = rows_of(tmp_path)
    assert set(rows) == {"sft (eval_every=None)", "sft (eval_every=4)"}
    assert all(row.seeds == (0,) for row in rows.values())


def test_sequences_and_models_have_panels_of_their_own(tmp_path: Path) -> None:
    make_run(tmp_path)
    make_run(tmp_path, "sdft")
    make_run(tmp_path, stages=TASKS[:1], values={"base": (0.2, 0.6, 0.8), "chemistry": (0.9, 0.5, 0.7)})
    make_run(tmp_path, model={"name": "lab-s", "fingerprint": "cd" * 32})
    found = {panel.title: [row.label for row in panel.rows] for panel in panels_of(tmp_path)}
    assert found == {
        "chemistry+biology, lab-m": ["sdft", "sft"],
        "chemistry+biology, lab-s": ["sft"],
        "chemistry, lab-m": ["sft"],
    }


def test_marked_runs_stand_in_rows_that_say_so(tmp_path: Path) -> None:
    for seed in (0, 1):
        make_run(tmp_path, seed=seed)
    make_run(tmp_path, seed=2, limit=8)
    marks = {label: row.marks for label, row in rows_of(tmp_path, mark=True).items()}
    assert marks == {"sft (limit=None)": (), "sft (limit=8)": ("limit",)}


def test_metrics_of_an_earlier_version_are_computed_anew(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    (run / "metrics.json").write_text('{"schema_version": 1, "metrics": {}, "stages": {}}')
    assert rows_of(tmp_path)["sft"].measures["forgetting"].mean == pytest.approx(0.2)


def test_negative_scores_are_scores(tmp_path: Path) -> None:
    make_run(tmp_path, values={row: [-(value or 0) for value in values] for row, values in VALUES.items()})
    measures = rows_of(tmp_path)["sft"].measures
    assert measures["gain"].mean == pytest.approx(-0.6) and measures["backward_transfer"].mean == pytest.approx(0.2)
