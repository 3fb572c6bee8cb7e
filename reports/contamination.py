"""Evaluated items that a run trained on, by stage, and the scores without them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cl_bench.harness.files import read_object
from cl_bench.harness.measure.contamination import KINDS
from cl_bench.harness.measure.matrix import Matrix
from cl_bench.harness.run_directory import CONTAMINATION, RunView
from cl_bench.reports.content import Grid, percent

TITLE = "Evaluated items that are trained on"
_NOTES = (
    "Items of any kind, then exact / 13-gram / choices. exact: the question is a training question, or stands in a "
    "training text. 13-gram: 13 words in a row of it do. choices: the same options with the same stem.",
    "What many rows share (templates, tool documentation) is no overlap. Generated and replayed rows are counted; "
    "each stage's data/contamination.json names the items.",
)


def contamination_grids(view: RunView) -> list[Grid]:
    """The table of stages and evaluation sets and the scores on clean items; none for a run that did not write them."""
    path = view.directory / CONTAMINATION
    if not path.is_file():
        return []
    found = read_object(path)
    touched = [name for name, row in found["columns"].items() if row["any"]["count"]]
    if not found["stages"]:
        return []
    return [_table(found, touched), *([_clean_scores(view, found, touched)] if touched else [])]


def _table(found: Mapping[str, Any], touched: Sequence[str]) -> Grid:
    tables = [*found["stages"].values(), found["columns"]]
    rows = []
    for name in touched:
        row = found["columns"][name]
        cells = [_cell(table[name]) if name in table else "0" for table in tables]
        rows.append((name, str(row["n"]), *cells, percent(row["any"]["share"])))
    others = [row for name, row in found["columns"].items() if name not in touched]
    if others:
        items = sum(row["n"] for row in others)
        label = f"the {len(others)} others" if touched else f"all {len(others)} columns"
        rows.append((label, str(items), *["0"] * len(tables), percent(0.0)))
    return Grid(TITLE, ("evaluated", "items", *found["stages"], "any stage", "%"), tuple(rows), _NOTES)


def _cell(row: Mapping[str, Any]) -> str:
    if not row["any"]["count"]:
        return "0"
    return f"{row['any']['count']}: {' / '.join(str(row[kind]['count']) for kind in KINDS)}"


def _clean_scores(view: RunView, found: Mapping[str, Any], touched: Sequence[str]) -> Grid:
    clean = Matrix.from_json(found["clean"]["matrix"])
    measured = [column for column in clean.columns if column.name in touched]
    header = ["after", *(f"{column.name} ({column.n})" for column in measured), "retention", "all items"]
    rows = []
    for row in clean.rows:
        values = [percent(clean.value(row, column.name)) for column in measured]
        means = [stages.get(row, {}).get("retention", {}) for stages in (found["clean"]["stages"], _stages(view))]
        rows.append((row, *values, *(percent(mean.get("value")) for mean in means)))
    reasons = dict.fromkeys(
        f"{column.name}: {clean.cell(row, column.name).reason}"
        for column in measured
        for row in clean.rows
        if clean.value(row, column.name) is None
    )
    notes = (
        "In brackets: items left. retention: its mean without the items that are trained on, then over all items.",
    )
    return Grid("Scores on items that no stage trained on (%)", tuple(header), tuple(rows), (*notes, *reasons))


def _stages(view: RunView) -> Mapping[str, Any]:
    stages: Mapping[str, Any] = view.metrics.get("stages", {})
    return stages
