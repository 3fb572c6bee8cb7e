"""What stands beside a cell: scores of guesses that need no question, and scores of sampled answers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from cl_bench.harness.files import read_json
from cl_bench.harness.measure.matrix import Column, Matrix
from cl_bench.harness.measure.statistics.intervals import BOOTSTRAP_ITEMS, WILSON_ITEMS
from cl_bench.harness.run_directory import RunView
from cl_bench.reports.content import MISSING, Grid, ordered, percent

BASELINES: dict[str, str] = {
    "chance": "chance",
    "majority_letter": "majority letter",
    "middle_value": "middle value",
}
"""Labels of a column's baselines (``cl_bench.tasks.baselines``)."""
_SAMPLED = re.compile(r"(avg|maj|pass)@\d+,none")
_NOTES = (
    "chance: one over the number of options. majority letter: always the most frequent answer of the training rows. "
    "middle value: a middle one of numeric options, chance elsewhere.",
    "question hidden: the model's own score when it sees the options alone.",
)
_FEW_ITEMS = (f"No interval for fewer than {BOOTSTRAP_ITEMS} items (avg) or {WILSON_ITEMS} items (maj, pass).",)


def baselines_grid(matrix: Matrix) -> Grid | None:
    """Scores that need no reading of the question, by column; None where no column has options throughout."""
    columns = [column for column in matrix.columns if "majority_letter" in column.baselines]
    if not columns:
        return None
    rows = [(label, *(percent(c.baselines.get(name)) for c in columns)) for name, label in BASELINES.items()]
    for row in matrix.rows:
        hidden = [_hidden(matrix, row, column) for column in columns]
        if any(value is not None for value in hidden):
            rows.append((f"question hidden, {row}", *(percent(value) for value in hidden)))
    header = ("answer", *(column.name for column in columns))
    return Grid("Baselines without the question (%)", header, tuple(rows), _NOTES)


def _hidden(matrix: Matrix, row: str, column: Column) -> float | None:
    counts = matrix.cell(row, column.name).counts
    return counts["options_only"] / counts["n"] if "options_only" in counts and counts["n"] else None


def sampled_grids(view: RunView) -> list[Grid]:
    """Scores of sampled answers and their 95 % intervals, a grid a metric; none without sampled answers."""
    found = {
        row: {column.name: _sampled(view, row, column.name) for column in view.matrix.columns} for row in view.stages
    }
    metrics = ordered(name for cells in found.values() for cell in cells.values() for name in cell)
    grids = []
    for metric in metrics:
        columns = [c.name for c in view.matrix.columns if any(metric in cells[c.name] for cells in found.values())]
        rows = tuple((row, *(cells[name].get(metric, MISSING) for name in columns)) for row, cells in found.items())
        bare = any("[" not in cell for _, *cells in rows for cell in cells if cell != MISSING)
        grids.append(Grid(f"{metric} of sampled answers (%)", ("after", *columns), rows, _FEW_ITEMS if bare else ()))
    return grids


def _sampled(view: RunView, row: str, column: str) -> dict[str, str]:
    path = view.stages[row] / "eval" / column / "results.json"
    if not path.is_file():
        return {}
    document: Mapping[str, Any] = read_json(path)
    scores = next(iter(document["results"].values()))
    intervals = document.get("intervals", {})
    names = [key.removesuffix(",none") for key in scores if _SAMPLED.fullmatch(key)]
    return {name: _with_interval(scores[f"{name},none"], intervals.get(name)) for name in names}


def _with_interval(value: float | None, interval: list[float] | None) -> str:
    if interval is None:
        return percent(value)
    low, high = (percent(bound) for bound in interval)
    return f"{percent(value)} [{low}, {high}]"
