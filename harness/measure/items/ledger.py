"""The per-item ledger of a run: transitions between any two of its rows, for every column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from cl_bench.harness.errors import UnknownNameError
from cl_bench.harness.measure.items.causes import NO_VERDICT, Cause, Sample, verdict
from cl_bench.harness.measure.items.transitions import ColumnLedger, items_of, paired
from cl_bench.harness.measure.matrix import BASE_ROW, Column
from cl_bench.harness.planned_stages import learned_columns
from cl_bench.harness.run_directory import RunView

_GRADED = "its rows are graded by shares: none is right or wrong"
_CLOSE = 1e-6
"""How near one over a column's chance must be to a whole number to be its number of options."""
Reader = Callable[[str, str], list[Sample]]
"""Samples of a row and a column."""


def reader(view: RunView) -> Reader:
    """Reads each ``samples.jsonl`` of a run once."""

    @cache
    def read(row: str, column: str) -> list[Sample]:
        return list(view.samples(row, column))

    return read


def column_ledger(view: RunView, column: str, before: str, after: str, read: Reader | None = None) -> ColumnLedger:
    """Transitions of a column's items between two rows.

    Args:
        view: The run.
        column: Name of the column.
        before: The earlier row.
        after: The later row.
        read: Reads samples; for several ledgers of one run, so that no file is read twice.

    Returns:
        The ledger; without items, and with the reason, where a cell was not measured or has no right and wrong.

    Raises:
        UnknownNameError: No such column or row.
        NotComparableError: The rows do not hold the same items.
        StoreError: A samples file is damaged.
    """
    found = _known_column(view, column)
    for row in (before, after):
        if row not in (*view.matrix.rows, *view.stages):
            raise UnknownNameError("row", row, view.matrix.rows)
    reason = _unmeasured(view, column, (before, after))
    if reason is not None:
        return ColumnLedger(column, before, after, reason=reason)
    read = read or reader(view)
    pairs = paired(read(before, column), read(after, column), f"{column}, {before} and {after}")
    items, left_out = items_of((one, other, options_of((one, other), found)) for one, other in pairs)
    if items:
        return ColumnLedger(column, before, after, items, left_out)
    reason = _GRADED if NO_VERDICT in left_out else "its rows were all skipped" if left_out else "no items"
    return ColumnLedger(column, before, after, left_out=left_out, reason=reason)


def last_row(view: RunView) -> str:
    """The last finished row."""
    return list(view.stages)[-1] if view.stages else BASE_ROW


def own_row(view: RunView, column: str) -> str | None:
    """The finished row after which a column had first been trained on; None where it never was."""
    rows = (row for row, learned in learned_columns(view.spec).items() if column in learned)
    first = next(rows, None)
    return first if first in view.stages else None


def standard_ledgers(view: RunView) -> list[ColumnLedger]:
    """What a report shows: every column from base to the last row, and each task from its own row to the last one."""
    last, read = last_row(view), reader(view)
    if last == BASE_ROW:
        return []
    ledgers = [column_ledger(view, column.name, BASE_ROW, last, read) for column in view.matrix.columns]
    for column in view.matrix.of_kind("sequence"):
        own = own_row(view, column.name)
        if own is not None and own != last:
            ledgers.append(column_ledger(view, column.name, own, last, read))
    return ledgers


def never_right(view: RunView, ledger: ColumnLedger, read: Reader) -> dict[str, Cause]:
    """Items that no finished row up to a ledger's later one has right, with the cause after that row.

    Stricter than the transition ``never``, which looks at two rows alone: what was right in between was known once.
    """
    rows = list(view.stages)
    until = rows[: rows.index(ledger.after) + 1]
    right = {str(sample["id"]) for row in until for sample in read(row, ledger.column) if verdict(sample)}
    return {item.id: item.cause for item in ledger.of("never") if item.cause is not None and item.id not in right}


def options_of(samples: Sequence[Sample], column: Column) -> int | None:
    """Options of an item: as one of its rows records them, else as many as were scored, else by the column's chance.

    A column whose chance is one over a whole number from 2 on has that many options an item, for all it says.
    """
    recorded = [_recorded_options(sample) for sample in samples]
    found = next((options for options in recorded if options is not None), None)
    if found is None and column.chance > 0 and abs(1 / column.chance - round(1 / column.chance)) < _CLOSE:
        found = round(1 / column.chance)
    return found if found is not None and found >= 2 else None


def _recorded_options(sample: Sample) -> int | None:
    recorded: int | None = sample.get("options")
    return recorded if recorded is not None else len(sample.get("loglikelihoods") or ()) or None


def _known_column(view: RunView, name: str) -> Column:
    try:
        return view.matrix.column(name)
    except KeyError as error:
        raise UnknownNameError("column", name, (column.name for column in view.matrix.columns)) from error


def _unmeasured(view: RunView, column: str, rows: Sequence[str]) -> str | None:
    """Why a ledger of two rows cannot be kept, or None."""
    for row in rows:
        cell = view.matrix.cell(row, column) if row in view.matrix.rows else None
        if cell is not None and cell.value is None:
            return f"{row}: {cell.reason}"
        if row not in view.stages:
            return f"{row}: the stage is not finished"
    return None
