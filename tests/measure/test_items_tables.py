"""Tables of items: every number in its place, and a reason where there is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cl_bench.harness.measure.items.churn import Churn
from cl_bench.harness.run_directory import load_run
from cl_bench.reports.items import churn_grid, items_grid, plain_text
from tests.measure.items_run import column, sample, samples, write_run

COLUMNS = [
    column("one"),
    column("two"),
    column("one/ood", "ood"),
    column("old", "retention", 0.5),
    column("absent", "retention"),
]
ABSENT = {"absent": "its rows are not there"}
ROWS: dict[str, Any] = {
    "base": {
        "one": samples("0001"),
        "two": samples("0000"),
        "one/ood": samples("11"),
        "old": samples("1111"),
        **ABSENT,
    },
    "one": {"one": samples("1111"), "two": samples("0000"), "one/ood": samples("11"), "old": samples("1110"), **ABSENT},
    "two": {
        "one": [*samples("110"), sample(3, False, parsed=None)],
        "two": samples("1111"),
        "one/ood": samples("00"),
        "old": [*samples("110"), sample(3, False, unreliable="the checker broke")],
        **ABSENT,
    },
}


@pytest.fixture()
def lines(tmp_path: Path) -> list[list[str]]:
    grid = items_grid(load_run(write_run(tmp_path, COLUMNS, ROWS)))
    assert grid is not None
    assert all(len(row) == len(grid.header) for row in grid.rows)
    return [line.split() for line in plain_text(grid).splitlines()]


@pytest.mark.parametrize(
    "row",
    [
        # column, from, to, items, kept, forgotten, gained, never, format failures, forgotten %, above guessing %
        "one base two 4 0 1 2 1 1 25.0 +25.0",
        "two base two 4 0 0 4 0 0 0.0 +0.0",
        "one/ood base two 2 0 2 0 0 0 100.0 +100.0",
        # Nothing was wrong before, so that luck turned nothing into a right answer that could be lost.
        "old base two 4 2 2 0 0 0 50.0 +50.0",
        "absent base two - - - - - - - -",
        "mean of tasks base two 2 col. 0.0% 12.5% 75.0% 12.5% 12.5 +12.5",
        "one one two 4 2 2 0 0 1 50.0 +50.0",
    ],
)
def test_every_number_is_in_its_place(lines: list[list[str]], row: str) -> None:
    assert row.split() in lines


def test_what_is_left_out_is_said(lines: list[list[str]]) -> None:
    said = "\n".join(" ".join(line) for line in lines)
    assert "- absent: base: its rows are not there" in said
    assert "old: 1 items with a verdict in doubt" in said
    assert "model-based" in said
    assert "mean of ood" not in said, "one column has no mean"


def test_a_run_without_a_finished_stage_has_no_table(tmp_path: Path) -> None:
    rows: dict[str, Any] = {"base": {"one": samples("10")}, "one": {"one": "not evaluated"}}
    assert items_grid(load_run(write_run(tmp_path, COLUMNS[:1], rows, unfinished=["one"]))) is None


def test_the_noise_floor_is_given_both_ways() -> None:
    grid = churn_grid({"one": Churn(40, 6, 2)}, "two")
    assert grid.rows == (("one", "40", "6", "2", "20.0", "10.0"),)
