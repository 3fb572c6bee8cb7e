"""Scores on clean items: those that no stage of a run trained on, the same items for every row of its matrix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from cl_bench.harness.files import read_json, read_object
from cl_bench.harness.measure.contamination import KINDS, Overlap, shares
from cl_bench.harness.measure.matrix import BASE_ROW, Cell, Column, Matrix
from cl_bench.harness.measure.run_metrics import run_metrics
from cl_bench.harness.planned_stages import learned_columns
from cl_bench.harness.run_directory import CONTAMINATION, RunView, load_run

if TYPE_CHECKING:
    from cl_bench.harness.store import Store

STAGE_CONTAMINATION = f"data/{CONTAMINATION}"
CONTAMINATION_VERSION = 1
_LABELS = {"exact": "exact", "ngram": "13-gram", "choices": "choices"}
_SCHEMA = "contamination"
_OF_RETENTION = ("retention", "retention_above_chance", "retention_change", "retention_change_above_chance")
_TOLERANCE = 1e-9


def overlap_warnings(found: Mapping[str, Overlap]) -> list[str]:
    """A sentence for each column of which something was trained on."""
    return [
        f"{len(overlap.any)} evaluated rows of {column} are also trained on "
        f"({', '.join(f'{len(overlap.items[kind])} {_LABELS[kind]}' for kind in KINDS if overlap.items[kind])})"
        for column, overlap in found.items()
        if overlap.any
    ]


def write_stage(store: Store, folder: str, found: Mapping[str, Overlap]) -> None:
    """Write a stage's ``data/contamination.json``: counts, shares and ids by column.

    Args:
        store: The run.
        folder: The stage's folder in it.
        found: Overlap by column.
    """
    columns = {column: overlap.to_json() for column, overlap in found.items()}
    document = {"schema_version": CONTAMINATION_VERSION, "columns": columns}
    store.write_json(f"{folder}/{STAGE_CONTAMINATION}", document, schema=_SCHEMA)


def write_run(store: Store) -> None:
    """Write a run's ``contamination.json``: each stage's table, that of all stages, and the scores on clean items.

    Args:
        store: The run, with ``matrix.json``.

    Raises:
        StoreError: A file of a finished stage cannot be read.
    """
    store.write_json(CONTAMINATION, _run_document(load_run(store.directory, verify=False)), schema=_SCHEMA)


def _run_document(view: RunView) -> dict[str, Any]:
    stages = _stage_tables(view)
    unknown = [stage for stage in view.stages if stage != BASE_ROW and stage not in stages]
    flagged = {column.name: _flagged(stages, column.name) for column in view.matrix.columns}
    clean = _clean_matrix(view, flagged, unknown)
    metrics = run_metrics(clean, learned_columns(view.spec))
    return {
        "schema_version": CONTAMINATION_VERSION,
        "stages": {stage: {name: _without_ids(row) for name, row in found.items()} for stage, found in stages.items()},
        "columns": {column.name: _row(flagged[column.name], column.n) for column in view.matrix.columns},
        "clean": {"matrix": clean.to_json(), "metrics": metrics["metrics"], "stages": metrics["stages"]},
    }


def clean_metrics(directory: Path) -> dict[str, dict[str, Any]]:
    """Retention metrics on clean items, each with how many those are as its reason; empty for a run without them.

    Args:
        directory: A run directory.
    """
    path = directory / CONTAMINATION
    document = read_object(path) if path.is_file() else {"stages": {}}
    if not document["stages"]:
        return {}
    clean, columns = document["clean"], document["columns"]
    left = {column["name"]: column["n"] for column in clean["matrix"]["columns"] if column["kind"] == "retention"}
    n = sum(columns[name]["n"] for name in left)
    remark = f"the same on the {sum(left.values())} of {n} items that no stage trained on"
    # A run of an older version may lack some.
    found = {name: clean["metrics"][name] for name in _OF_RETENTION if name in clean["metrics"]}
    return {
        name: {"value": metric["value"], "reason": remark if metric["value"] is not None else metric["reason"]}
        for name, metric in found.items()
    }


def _stage_tables(view: RunView) -> dict[str, dict[str, Any]]:
    files = {stage: folder / STAGE_CONTAMINATION for stage, folder in view.stages.items()}
    return {stage: read_json(file)["columns"] for stage, file in files.items() if file.is_file()}


def _without_ids(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key != "items"}


def _flagged(stages: Mapping[str, Mapping[str, Any]], column: str) -> dict[str, set[str]]:
    """Ids of a column's items that any stage trained on, by kind."""
    tables = [found[column]["items"] for found in stages.values() if column in found]
    return {kind: {name for items in tables for name in items[kind]} for kind in KINDS}


def _row(flagged: Mapping[str, set[str]], n: int) -> dict[str, Any]:
    counts = {**{kind: len(ids) for kind, ids in flagged.items()}, "any": len(set().union(*flagged.values()))}
    return {"n": n, **shares(counts, n)}


def _clean_matrix(view: RunView, flagged: Mapping[str, Mapping[str, set[str]]], unknown: list[str]) -> Matrix:
    dirty = {name: frozenset[str]().union(*kinds.values()) for name, kinds in flagged.items()}
    clean = Matrix(replace(column, n=column.n - len(dirty[column.name])) for column in view.matrix.columns)
    for row in view.matrix.rows:
        clean.add_row(row)
        for column in view.matrix.columns:
            cell = view.matrix.cell(row, column.name)
            if unknown and cell.value is not None:
                cell = Cell(None, f"what stage {unknown[0]} trained on was not compared with evaluated items")
            elif dirty[column.name] and cell.value is not None:
                cell = _clean_cell(view, row, column, cell.value, dirty[column.name])
            clean.set(row, column.name, cell)
    return clean


def _clean_cell(view: RunView, row: str, column: Column, value: float, dirty: frozenset[str]) -> Cell:
    scored = {str(sample["id"]): _score(sample) for sample in view.samples(row, column.name)}
    known = {name: score for name, score in scored.items() if score is not None}
    if not known or abs(fmean(known.values()) - value) > _TOLERANCE:
        return Cell(None, f"{column.metric} is no mean over items")
    kept = [score for name, score in known.items() if name not in dirty]
    if not kept:
        return Cell(None, "every item is trained on")
    return Cell(fmean(kept), counts={"n": len(kept), "correct": sum(score == 1 for score in kept)})


def _score(sample: Mapping[str, Any]) -> float | None:
    """What an item adds to the column's mean; None for a row that was not scored."""
    found = sample.get("score", sample["correct"])
    return None if found is None else float(found)
