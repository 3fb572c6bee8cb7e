"""The 95 % intervals of the cells over their items."""

from __future__ import annotations

from cl_bench.harness.files import read_json
from cl_bench.harness.measure.matrix import Column
from cl_bench.harness.measure.statistics.intervals import BOOTSTRAP_ITEMS, WILSON_ITEMS
from cl_bench.harness.run_directory import RunView
from cl_bench.reports.content import GROUPS, MISSING, Grid, percent

_NOTES = (
    "Other items of the same kind would give a value in here, for this checkpoint: Wilson's interval of a share, a "
    "bootstrap where answers are graded. They say nothing about other seeds.",
    f"{MISSING}: no value, or fewer than {WILSON_ITEMS} items ({BOOTSTRAP_ITEMS} graded ones).",
)


def interval_grids(view: RunView) -> list[Grid]:
    """One grid per kind of column with the interval of each cell; none where no cell has one.

    Args:
        view: A run; intervals are those that its evaluation wrote.
    """
    grids = []
    for kind, title in GROUPS:
        columns = view.matrix.of_kind(kind)
        rows = tuple((row, *(_interval(view, row, column) for column in columns)) for row in view.stages)
        if any(cell != MISSING for _, *cells in rows for cell in cells):
            header = ("after", *(column.name for column in columns))
            grids.append(Grid(f"{title}, 95 % intervals over items (%)", header, rows, _NOTES))
    return grids


def _interval(view: RunView, row: str, column: Column) -> str:
    path = view.stages[row] / "eval" / column.name / "results.json"
    document = read_json(path) if path.is_file() else {}
    found = document.get("intervals", {}).get(column.metric)
    return MISSING if found is None else " to ".join(percent(bound) for bound in found)
