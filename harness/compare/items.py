"""Methods on the same items: McNemar and bootstrap between two checkpoints, and a bootstrap over items and seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cl_bench.harness.compare.differences import Differences
from cl_bench.harness.compare.table import MethodRow, Panel
from cl_bench.harness.errors import ClBenchError, StoreError
from cl_bench.harness.measure.items.causes import verdict
from cl_bench.harness.measure.items.transitions import paired
from cl_bench.harness.measure.statistics.hierarchical import Hierarchical, item_seed_bootstrap
from cl_bench.harness.measure.statistics.intervals import Interval
from cl_bench.harness.measure.statistics.paired import mcnemar, paired_bootstrap
from cl_bench.harness.measure.statistics.power import detectable_between_checkpoints
from cl_bench.harness.measure.statistics.seeds import holm
from cl_bench.harness.planned_stages import learned_columns
from cl_bench.harness.run_directory import RunView

Pair = tuple[RunView, RunView]
Reader = Callable[[RunView, str], list[dict[str, Any]]]
"""The samples of a run's last row and a column, without what is not compared."""
_COMPARED = ("id", "prompt_hash", "correct")


@dataclass(frozen=True, slots=True)
class ItemDifference:
    """Two last checkpoints on the items of one column. It says nothing of other seeds.

    Attributes:
        method: The method's label.
        column: Name of the column.
        seed: Seed of the two runs.
        n: Items that both have a verdict on.
        difference: Share right of the method minus that of the reference; None without items.
        interval: 95 % paired bootstrap interval over items, or None.
        p: Two-sided p of the exact McNemar test, adjusted over the table (Holm); None without items.
        detectable: Smallest difference that McNemar's test finds with a power of 80 % at this discordance, or None.
        reason: Why there is no difference.
    """

    method: str
    column: str
    seed: int
    n: int
    difference: float | None
    interval: Interval | None
    p: float | None
    detectable: float | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RetentionDifference:
    """A method minus the reference over all retention columns, items and paired seeds.

    Attributes:
        method: The method's label.
        found: Mean and interval; None where there is nothing to compare.
        reason: Why there is none.
    """

    method: str
    found: Hierarchical | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ItemTable:
    """Item-level comparison of a panel.

    Attributes:
        reference: Label of the reference.
        entries: By method, then column; for the first seed that both have.
        retention: By method.
    """

    reference: str
    entries: tuple[ItemDifference, ...]
    retention: tuple[RetentionDifference, ...]


def item_table(panel: Panel, differences: Differences) -> ItemTable | None:
    """Compare a panel's methods with the reference item by item; reads the samples of the last rows.

    Args:
        panel: The panel.
        differences: Its differences, which say what is compared with what.

    Returns:
        The table; None where the panel has no differences.
    """
    methods = dict.fromkeys(entry.method for entry in differences.entries)
    if not methods:
        return None
    rows = {row.label: row for row in panel.rows}
    pairs = {name: _pairs(rows[name], rows[differences.reference]) for name in methods}
    read = _reader()
    entries = [
        _column(name, found[0], column, read) for name, found in pairs.items() if found for column in _columns(found[0])
    ]
    adjusted = holm([entry.p for entry in entries])
    return ItemTable(
        differences.reference,
        tuple(replace(entry, p=p) for entry, p in zip(entries, adjusted, strict=True)),
        tuple(_retention(name, found, read) for name, found in pairs.items()),
    )


def _pairs(row: MethodRow, reference: MethodRow) -> list[Pair]:
    """Finished runs of the same seed, ascending."""
    others = {view.spec.seed: view for view in reference.views}
    both = [(view, others[view.spec.seed]) for view in row.views if view.spec.seed in others]
    return [pair for pair in both if all(_last(view) in view.stages for view in pair)]


def _reader() -> Reader:
    """Reads every file once: the reference is compared with several methods."""
    kept: dict[tuple[Path, str], list[dict[str, Any]]] = {}

    def read(view: RunView, column: str) -> list[dict[str, Any]]:
        key = (view.directory, column)
        if key not in kept:
            kept[key] = [_compared(view, column, sample) for sample in view.samples(_last(view), column)]
        return kept[key]

    return read


def _compared(view: RunView, column: str, sample: Any) -> dict[str, Any]:
    try:
        return {name: sample[name] for name in _COMPARED}
    except (TypeError, KeyError) as error:
        what = f"{view.directory}: a row of {column} is no answer"
        raise StoreError(what, f"it lacks {', '.join(_COMPARED)}", "remove the stage and resume the run") from error


def _last(view: RunView) -> str:
    return list(learned_columns(view.spec))[-1]


def _columns(pair: Pair) -> list[str]:
    return [column.name for column in pair[0].matrix.columns if column.kind in ("sequence", "retention")]


def _column(method: str, pair: Pair, column: str, read: Reader) -> ItemDifference:
    empty = ItemDifference(method, column, pair[0].spec.seed, 0, None, None, None, None)
    try:
        verdicts = _verdicts(pair, column, read)
    except ClBenchError as error:
        return replace(empty, reason=error.what)
    if not verdicts:
        return replace(empty, reason="no item that both have right or wrong")
    first, second = ([both[side] for both in verdicts.values()] for side in (0, 1))
    test, bootstrap = mcnemar(first, second), paired_bootstrap(first, second)
    detectable = detectable_between_checkpoints(test.n, test.discordance) if test.discordance else None
    return replace(
        empty, n=test.n, difference=test.difference, interval=bootstrap.interval, p=test.p, detectable=detectable
    )


def _verdicts(pair: Pair, column: str, read: Reader) -> dict[str, tuple[bool, bool]]:
    """What both last checkpoints made of each item, by id.

    Raises:
        StoreError: A cell has no samples.
        NotComparableError: They do not hold the same items with the same prompts.
    """
    first, second = (read(view, column) for view in pair)
    found = {}
    for one, other in paired(first, second, f"{column} of {pair[0].directory.name} and {pair[1].directory.name}"):
        verdicts = verdict(one), verdict(other)
        if verdicts[0] is not None and verdicts[1] is not None:
            found[str(one["id"])] = (verdicts[0], verdicts[1])
    return found


def _retention(method: str, pairs: Sequence[Pair], read: Reader) -> RetentionDifference:
    if not pairs:
        return RetentionDifference(method, None, "no seed in common")
    names = [column.name for column in pairs[0][0].matrix.of_kind("retention")]
    try:
        columns = {name: _by_seed([_verdicts(pair, name, read) for pair in pairs]) for name in names}
    except ClBenchError as error:
        return RetentionDifference(method, None, error.what)
    measured = {name: rows for name, rows in columns.items() if rows[0]}
    if not measured:
        return RetentionDifference(method, None, "no retention item that all have right or wrong")
    return RetentionDifference(method, item_seed_bootstrap(measured))


def _by_seed(verdicts: Sequence[dict[str, tuple[bool, bool]]]) -> list[list[float]]:
    """Differences by seed and item, for the items that all seeds have."""
    shared = [name for name in verdicts[0] if all(name in found for found in verdicts)]
    return [[float(found[name][0]) - float(found[name][1]) for name in shared] for found in verdicts]
