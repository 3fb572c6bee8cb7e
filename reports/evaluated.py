"""What stands beside a cell: scores of guesses that need no question, and scores of sampled answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cl_bench.harness.files import read_json
from cl_bench.harness.measure.matrix import Column, Matrix
from cl_bench.harness.run_directory import RunView
from cl_bench.reports.content import MISSING, Grid, ordered, percent

BASELINES: dict[str, str] = {
    "chance": "chance",
    "majority_letter": "majority letter",
    "middle_value": "middle value",
}
"""Labels of a column's baselines (``cl_bench.tasks.baselines``)."""
_NOTES = (
    "chance: one over the number of options. majority letter: always the most frequent answer of the training rows. "
    "middle value: a middle one of numeric options, chance elsewhere.",
    "question hidden: the model's own score when it sees the options alone.",
)


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
    """Scores of sampled answers with 95 % intervals, a grid a metric; none where only greedy answers were asked for."""
    found = {
        row: {column.name: _sampled(view, row, column.name) for column in view.matrix.columns} for row in view.stages
    }
    metrics = ordered(name for cells in found.values() for cell in cells.values() for name in cell)
    grids = []
    for metric in metrics:
        columns = [c.name for c in view.matrix.columns if any(metric in cells[c.name] for cells in found.values())]
        rows = tuple((row, *(cells[name].get(metric, MISSING) for name in columns)) for row, cells in found.items())
        grids.append(Grid(f"{metric} of sampled answers (%)", ("after", *columns), rows))
    return grids


def _sampled(view: RunView, row: str, column: str) -> dict[str, str]:
    path = view.stages[row] / "eval" / column / "results.json"
    if not path.is_file():
        return {}
    document: Mapping[str, Any] = read_json(path)
    scores = next(iter(document["results"].values()))
    intervals = document.get("intervals", {})
    names = [name for name in intervals if "@" in name]
    return {name: _with_interval(scores.get(f"{name},none"), intervals[name]) for name in names}


def _with_interval(value: float | None, interval: list[float]) -> str:
    low, high = (percent(bound) for bound in interval)
    return f"{percent(value)} [{low}, {high}]"
