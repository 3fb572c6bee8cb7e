"""Methods against the reference item by item, as tables."""

from __future__ import annotations

from cl_bench.harness.compare.items import ItemTable
from cl_bench.harness.compare.table import Panel
from cl_bench.harness.measure.statistics.intervals import Interval
from cl_bench.harness.measure.statistics.paired import SCOPE
from cl_bench.reports.content import MISSING, Grid, percent

_SEEDS = "seeds and items"


def items_grids(panel: Panel, table: ItemTable | None) -> list[Grid]:
    """Two grids: two checkpoints a column, and retention over items and seeds; none without a table."""
    if table is None:
        return []
    return [_columns(panel, table), _retention(panel, table)]


def _columns(panel: Panel, table: ItemTable) -> Grid:
    rows = tuple(
        (
            entry.method,
            entry.column,
            str(entry.seed),
            str(entry.n),
            percent(entry.difference, signed=True),
            _interval(entry.interval),
            MISSING if entry.p is None else f"{entry.p:.3f}",
            percent(entry.detectable),
        )
        for entry in table.entries
    )
    missing = [f"{MISSING} {entry.method}, {entry.column}: {entry.reason}." for entry in table.entries if entry.reason]
    notes = (
        f"Holds for {SCOPE}: the last checkpoints of one seed, on the same items. p: exact McNemar test, adjusted over "
        "the table (Holm). 95 %: paired bootstrap over items. detectable: with a power of 80 % at this discordance.",
        *missing,
    )
    header = ("method", "column", "seed", "items", "difference", "95 %", "p (Holm)", "detectable")
    return Grid(f"Items against {table.reference} on {panel.title}", header, rows, notes)


def _retention(panel: Panel, table: ItemTable) -> Grid:
    rows, missing = [], []
    for entry in table.retention:
        found = entry.found
        if found is None:
            missing.append(f"{MISSING} {entry.method}: {entry.reason}.")
            rows.append((entry.method, MISSING, MISSING, MISSING, MISSING))
            continue
        items = str(sum(found.items.values()))
        rows.append((entry.method, str(found.seeds), items, percent(found.mean, True), _interval(found.interval)))
    notes = ("Retention after the last stage, the mean over columns. 95 %: bootstrap over items and seeds.", *missing)
    header = ("method", "seeds", "items", "difference", "95 %")
    return Grid(f"Retention against {table.reference} over {_SEEDS}, {panel.title}", header, tuple(rows), notes)


def _interval(interval: Interval | None) -> str:
    return MISSING if interval is None else f"[{percent(interval[0], True)}, {percent(interval[1], True)}]"
