"""What stands beside cells: baselines, hidden questions, sampled answers."""

from __future__ import annotations

import json
from pathlib import Path

from cl_bench.harness.measure.matrix import Cell, Column, Matrix
from cl_bench.harness.run_directory import load_run
from cl_bench.reports.evaluated import baselines_grid, sampled_grids
from tests.reports.conftest import make_run


def matrix(counts: dict[str, int], **guesses: float) -> Matrix:
    columns = [
        Column("physics", "sequence", 0.25, 40, "accuracy", guesses),
        Column("math", "sequence", 0, 40, "accuracy"),
    ]
    found = Matrix(columns)
    for row in ("base", "physics"):
        found.add_row(row)
        found.set(row, "physics", Cell(0.5, counts={"n": 40, **counts}))
    return found


def test_baselines_stand_by_column_and_hidden_questions_by_row() -> None:
    grid = baselines_grid(matrix({"options_only": 12}, chance=0.25, majority_letter=0.341))
    assert grid is not None
    assert grid.header == ("answer", "physics")
    assert grid.rows == (
        ("chance", "25.0"),
        ("majority letter", "34.1"),
        ("middle value", "-"),
        ("question hidden, base", "30.0"),
        ("question hidden, physics", "30.0"),
    )


def test_hidden_questions_that_were_not_asked_are_no_row() -> None:
    grid = baselines_grid(matrix({}, chance=0.25, majority_letter=0.341))
    assert grid is not None and [row[0] for row in grid.rows] == ["chance", "majority letter", "middle value"]


def test_without_options_there_is_nothing_to_guess() -> None:
    assert baselines_grid(matrix({"options_only": 12})) is None


def test_sampled_scores_come_with_their_intervals(tmp_path: Path) -> None:
    directory = make_run(tmp_path)
    assert sampled_grids(load_run(directory)) == []
    document = {
        "results": {"chemistry": {"alias": "chemistry", "acc,none": 0.9, "avg@4,none": 0.625, "pass@4,none": 1.0}},
        "intervals": {"accuracy": [0.8, 0.95], "avg@4": [0.5, 0.75], "pass@4": [0.9, 1.0]},
    }
    (directory / "stages/01-chemistry/eval/chemistry/results.json").write_text(json.dumps(document))
    first, second = sampled_grids(load_run(directory, verify=False))
    assert (first.title, second.title) == ("avg@4 of sampled answers (%)", "pass@4 of sampled answers (%)")
    assert first.header == ("after", "chemistry")
    assert first.rows == (("base", "-"), ("chemistry", "62.5 [50.0, 75.0]"), ("biology", "-"))
    assert second.rows[1] == ("chemistry", "100.0 [90.0, 100.0]")
    assert first.notes == second.notes == ()


def test_sampled_scores_of_few_items_stand_without_intervals(tmp_path: Path) -> None:
    directory = make_run(tmp_path)
    document = {"results": {"chemistry": {"alias": "chemistry", "acc,none": 0.5, "maj@4,none": 0.75, "pass@1,x": 1.0}}}
    (directory / "stages/01-chemistry/eval/chemistry/results.json").write_text(json.dumps(document))
    (grid,) = sampled_grids(load_run(directory, verify=False))
    assert grid.rows[1] == ("chemistry", "75.0")
    assert "fewer than" in grid.notes[0]
