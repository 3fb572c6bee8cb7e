"""The noise floor: two seeds of one specification."""

from __future__ import annotations

from pathlib import Path

import pytest

from cl_bench.harness.errors import NotComparableError, UnknownNameError
from cl_bench.harness.files import write_jsonl
from cl_bench.harness.measure.items.churn import churn, mean_churn
from cl_bench.harness.measure.items.ledger import reader
from cl_bench.harness.run_directory import RunView, load_run
from cl_bench.reports.items import seeds_items_grid
from tests.measure.items_run import column, run_spec, sample, samples, write_run

COLUMNS = [column("one"), column("old", "retention")]


def run(output: Path, seed: int, after: str, recipe: str = "lab", old: str = "1111") -> RunView:
    n = len(after)
    old = old[:n]
    rows = {
        "base": {"one": samples("0" * n), "old": samples("1" * n)},
        "one": {"one": samples(after), "old": samples(old)},
    }
    return load_run(write_run(output, COLUMNS, rows, run_spec([("one", "one")], seed, recipe)))


def test_items_that_differ_are_counted_both_ways(tmp_path: Path) -> None:
    found = churn(run(tmp_path, 0, "1110"), run(tmp_path, 1, "0101"), "one")
    assert (found["one"].n, found["one"].first_only, found["one"].second_only) == (4, 2, 1)
    assert found["one"].share == pytest.approx(0.75) and found["one"].one_way == pytest.approx(0.375)
    assert found["old"].share == 0


def test_untouched_rows_do_not_differ(tmp_path: Path) -> None:
    assert churn(run(tmp_path, 0, "1110"), run(tmp_path, 1, "0101"), "base")["one"].share == 0


def test_items_without_a_verdict_do_not_count(tmp_path: Path) -> None:
    first, second = run(tmp_path, 0, "1110"), run(tmp_path, 1, "0101")
    path = second.stages["one"] / "eval/one/samples.jsonl"
    rows = [sample(0, None, ended="skipped"), *samples("0101")[1:]]
    write_jsonl(path, rows)
    assert churn(first, second, "one")["one"].n == 3


def test_seeds_are_averaged_over_pairs_beside_what_they_forget(tmp_path: Path) -> None:
    views = [
        run(tmp_path, seed, after, old=old)
        for seed, (after, old) in enumerate([("11", "10"), ("10", "00"), ("00", "11")])
    ]
    assert mean_churn(views, "one", [reader(view) for view in views]) == {"one": 2 / 3, "old": 2 / 3}
    grid = seeds_items_grid(views)
    assert grid is not None
    assert grid.rows == (("one", "2", "0.0", "50.0", "66.7", "33.3"), ("old", "2", "50.0", "0.0", "66.7", "33.3"))
    assert seeds_items_grid(views[:1]) is None


def test_only_two_seeds_of_one_specification_are_compared(tmp_path: Path) -> None:
    first = run(tmp_path, 0, "1110")
    with pytest.raises(NotComparableError, match="no other seed") as error:
        churn(first, first, "one")
    assert error.value.why == "both have seed 0"
    with pytest.raises(NotComparableError) as error:
        churn(first, run(tmp_path, 1, "1110", recipe="other"), "one")
    assert error.value.why == "they differ in recipe"
    with pytest.raises(UnknownNameError):
        churn(first, run(tmp_path, 2, "1110"), "two")
