"""Item by item: what pairing finds, what holds for two checkpoints, and what holds over items and seeds."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cl_bench.harness.compare.comparison import Comparison, compare_runs, to_json
from cl_bench.harness.compare.items import ItemTable
from cl_bench.harness.documents import validate_document
from cl_bench.harness.files import hash_tree
from cl_bench.reports.compare import text
from tests.compare.small_runs import make_run

ITEMS = 220
Right = Callable[[int], bool | None]


def run_with(folder: Path, method: str, seed: int, right: Right, column: str = "reading", prompt: str = "h") -> Path:
    """A run whose last row has these verdicts in one column."""
    run = make_run(folder, method, seed, samples=ITEMS)
    (stage,) = (run / "stages").glob("02-*")
    path = stage / "eval" / column / "samples.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for number, row in enumerate(rows):
        row |= {"correct": right(number), "prompt_hash": prompt}
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = json.loads((stage / "done.json").read_text())
    (stage / "done.json").write_text(json.dumps(done | {"files": hash_tree(stage, ("done.json",))}))
    return run


def better(seed: int) -> Right:
    """Every other item and a tenth more, with one or the other odd item by seed."""
    return lambda number: number % 2 == 0 or number % 5 == 0 or number % 31 == seed


def compared(folder: Path) -> Comparison:
    return compare_runs([str(folder)], items=True)


def table_of(folder: Path) -> ItemTable:
    (table,) = compared(folder).items
    assert table is not None
    return table


def test_pairing_finds_eleven_items_of_220_that_an_unpaired_test_misses(tmp_path: Path) -> None:
    run_with(tmp_path, "sft", 0, lambda number: number < 110)
    run_with(tmp_path, "sdft", 0, lambda number: number < 124)
    entries = {entry.column: entry for entry in table_of(tmp_path).entries}
    found = entries["reading"]
    assert found.n == ITEMS and found.difference == pytest.approx(14 / ITEMS)
    assert found.p is not None and found.p < 0.001 and found.interval is not None and found.interval[0] > 0
    unpaired = (14 / ITEMS) / (2 * 0.25 / ITEMS) ** 0.5
    assert unpaired < 1.96
    assert found.detectable is not None and 0.0 < found.detectable <= 14 / ITEMS
    assert entries["sums"].difference == 0.0 and entries["sums"].p == 1.0 and entries["sums"].detectable is None


def test_p_values_are_adjusted_over_the_columns(tmp_path: Path) -> None:
    run_with(tmp_path, "sft", 0, lambda number: number < 110)
    run_with(tmp_path, "sdft", 0, lambda number: number < 118)
    found = {entry.column: entry.p for entry in table_of(tmp_path).entries}
    assert found["reading"] == pytest.approx(4 * 2 * 0.5**8), "eight items on one side, four columns"


def test_retention_over_items_and_seeds_has_an_interval_from_five_seeds(tmp_path: Path) -> None:
    for seed in range(5):
        run_with(tmp_path, "sft", seed, lambda number: number % 2 == 0)
        run_with(tmp_path, "sdft", seed, better(seed))
    (found,) = table_of(tmp_path).retention
    assert found.found is not None and found.found.seeds == 5
    assert found.found.items == {"reading": ITEMS, "sums": ITEMS}
    assert found.found.interval is not None and 0 < found.found.interval[0] < found.found.mean
    page = text(compared(tmp_path), width=200)
    assert "Holds for these checkpoints" in page and "bootstrap over items and seeds" in page


def test_items_without_a_verdict_and_other_prompts_are_reasons(tmp_path: Path) -> None:
    run_with(tmp_path, "sft", 0, lambda number: None)
    run_with(tmp_path, "sdft", 0, lambda number: True)
    run_with(tmp_path, "dft", 0, lambda number: True, prompt="another")
    found = {(entry.method, entry.column): entry for entry in table_of(tmp_path).entries}
    assert found["sdft", "reading"].difference is None and "right or wrong" in found["sdft", "reading"].reason
    assert "another prompt" in found["dft", "reading"].reason
    retention = {entry.method: entry for entry in table_of(tmp_path).retention}
    assert retention["dft"].found is None and "another prompt" in retention["dft"].reason
    assert retention["sdft"].found is not None and set(retention["sdft"].found.items) == {"sums"}


def test_the_json_of_items_fits_its_schema_and_is_null_without(tmp_path: Path) -> None:
    run_with(tmp_path, "sft", 0, lambda number: number < 110)
    run_with(tmp_path, "sdft", 0, lambda number: number < 124)
    for items in (True, False):
        document = to_json(compare_runs([str(tmp_path)], items=items))
        validate_document(document, "comparison")
        assert (document["panels"][0]["items"] is None) is not items


def test_a_row_that_is_no_answer_is_a_reason(tmp_path: Path) -> None:
    run_with(tmp_path, "sft", 0, lambda number: True)
    broken = run_with(tmp_path, "sdft", 0, lambda number: True)
    (stage,) = (broken / "stages").glob("02-*")
    (stage / "eval" / "reading" / "samples.jsonl").write_text('[]\n{"id": "1"}\n5\n')
    (stage / "done.json").write_text(json.dumps({"schema_version": 1, "files": hash_tree(stage, ("done.json",))}))
    found = {entry.column: entry for entry in table_of(tmp_path).entries}
    assert found["reading"].difference is None and "a row of reading is no answer" in found["reading"].reason
    assert found["sums"].n == ITEMS
