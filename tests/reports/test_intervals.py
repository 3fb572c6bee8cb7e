"""Intervals of the cells."""

from __future__ import annotations

import json
from pathlib import Path

from cl_bench.harness.run_directory import load_run
from cl_bench.reports.intervals import interval_grids
from tests.reports.conftest import make_run


def write(directory: Path, stage: str, column: str, document: dict[str, object]) -> None:
    (directory / "stages" / stage / "eval" / column / "results.json").write_text(json.dumps(document))


def test_cells_have_their_intervals_by_the_columns_metric(tmp_path: Path) -> None:
    directory = make_run(tmp_path)
    assert interval_grids(load_run(directory, verify=False)) == []
    write(directory, "01-chemistry", "chemistry", {"intervals": {"accuracy": [0.81, 0.953], "avg@4": [0.1, 0.2]}})
    write(directory, "02-biology", "chemistry", {"results": {}})
    (grid,) = interval_grids(load_run(directory, verify=False))
    assert grid.title == "Tasks of the sequence, 95 % intervals over items (%)"
    assert grid.header == ("after", "chemistry", "biology")
    assert grid.rows == (("base", "-", "-"), ("chemistry", "81.0 to 95.3", "-"), ("biology", "-", "-"))
    assert "nothing about other seeds" in grid.notes[0]
