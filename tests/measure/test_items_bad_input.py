"""Items where runs are damaged, incomplete or degenerate: a number that is right, or a refusal that says why."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cl_bench.harness.errors import NotComparableError, StoreError
from cl_bench.harness.measure.items.churn import churn
from cl_bench.harness.measure.items.ledger import column_ledger, standard_ledgers
from cl_bench.harness.run_directory import load_run
from cl_bench.reports.items import items_grid
from tests.measure.items_run import Sample, column, run_spec, sample, samples, write_run

COLUMNS = [column("one"), column("old", "retention", 0.25)]


def run(output: Path, after: dict[str, Any], seed: int = 0) -> Path:
    rows = {"base": {"one": samples("1010"), "old": samples("1100")}, "one": after}
    return write_run(output, COLUMNS, rows, run_spec([("one", "one")], seed))


def lines_of(change: Callable[[list[str]], list[str]]) -> Callable[[Path], object]:
    return lambda path: path.write_text("".join(change(path.read_text().splitlines(keepends=True))))


def flipped(lines: list[str]) -> list[str]:
    first = json.loads(lines[0])
    first["correct"] = not first["correct"]
    return [json.dumps(first) + "\n", *lines[1:]]


@pytest.mark.parametrize(
    "damage",
    [
        lines_of(lambda lines: lines[:-1]),
        lines_of(lambda lines: [*lines, lines[-1]]),
        lines_of(lambda lines: lines[::-1]),
        lines_of(flipped),
        lines_of(lambda lines: [line.replace("said", "SAID") for line in lines]),
        lambda path: path.write_text(""),
        lambda path: path.unlink(),
    ],
    ids=["a whole row cut", "a row twice", "rows turned", "a verdict", "same size", "emptied", "removed"],
)
@pytest.mark.parametrize("row", ["00-base", "01-one"])
def test_samples_that_are_not_those_that_were_written_are_named(
    row: str, damage: Callable[[Path], object], tmp_path: Path
) -> None:
    directory = run(tmp_path, {"one": samples("0101"), "old": samples("1000")})
    path = directory / f"stages/{row}/eval/old/samples.jsonl"
    damage(path)
    with pytest.raises(StoreError) as error:
        load_run(directory)
    assert str(path) in str(error.value) and "resume" in error.value.hint


@pytest.mark.parametrize("rows", [samples("010"), [*samples("010"), sample("new", True)]])
def test_items_that_one_row_lacks_are_refused_by_name(rows: list[Sample], tmp_path: Path) -> None:
    view = load_run(run(tmp_path, {"one": rows, "old": samples("1000")}))
    with pytest.raises(NotComparableError, match="one, base and one") as error:
        column_ledger(view, "one", "base", "one")
    assert "'3'" in str(error.value) and "same items" in str(error.value)
    assert column_ledger(view, "old", "base", "one").n == 4, "other columns are whole"


def test_seeds_on_other_items_have_no_noise_floor(tmp_path: Path) -> None:
    whole = load_run(run(tmp_path, {"one": samples("0101"), "old": samples("1000")}))
    part = load_run(run(tmp_path, {"one": samples("010"), "old": samples("1000")}, seed=1))
    with pytest.raises(NotComparableError, match="same items"):
        churn(whole, part, "one")


@pytest.mark.parametrize(
    "changes", [{"parsed": None}, {"ended": "length"}, {"correct": None, "parsed": None, "ended": "skipped"}]
)
def test_a_row_whose_every_answer_has_no_form_forgets_by_form_alone(changes: dict[str, Any], tmp_path: Path) -> None:
    broken = [found | changes for found in samples("0000")]
    view = load_run(run(tmp_path, {"one": broken, "old": broken}))
    for ledger in standard_ledgers(view):
        assert ledger.counts == {"kept": 0, "forgotten": 2, "gained": 0, "never": 2}
        assert ledger.causes("forgotten") == {"format failure": 2, "wrong answer": 0}
        assert ledger.causes("never") == {"format failure": 2, "wrong answer": 0}
        assert ledger.guessing is not None and ledger.guessing.known_after == 0
        assert ledger.guessing.gained - ledger.guessing.forgotten == pytest.approx(-0.5)
    grid = items_grid(view)
    assert grid is not None
    assert [row[8] for row in grid.rows if row[0] in ("one", "old")] == ["2", "2"]


def test_a_base_whose_every_item_was_skipped_has_no_ledger_but_a_reason(tmp_path: Path) -> None:
    lost = {"correct": None, "parsed": None, "response": None, "ended": "skipped"}
    skipped = [found | lost for found in samples("0000")]
    rows: dict[str, Any] = {"base": {"one": skipped}, "one": {"one": samples("1111")}}
    (ledger,) = standard_ledgers(load_run(write_run(tmp_path, COLUMNS[:1], rows)))
    assert ledger.n == 0 and ledger.share("forgotten") is None and ledger.guessing is None
    assert ledger.left_out == {"skipped": 4} and ledger.reason is not None and "skipped" in ledger.reason


def test_two_rows_the_same_forget_and_gain_nothing(tmp_path: Path) -> None:
    view = load_run(run(tmp_path, {"one": samples("1010"), "old": samples("1100")}))
    for ledger in (*standard_ledgers(view), column_ledger(view, "one", "one", "one")):
        assert ledger.counts == {"kept": 2, "forgotten": 0, "gained": 0, "never": 2}
        assert ledger.share("forgotten") == 0
        assert ledger.guessing is not None and ledger.guessing.gained == ledger.guessing.forgotten
