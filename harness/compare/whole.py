"""A run for tables: documents that no hash covers are checked before a number of theirs is shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from cl_bench.harness.documents import validate_document
from cl_bench.harness.errors import StoreError
from cl_bench.harness.files import read_object
from cl_bench.harness.measure.matrix import Matrix
from cl_bench.harness.measure.run_metrics import run_metrics
from cl_bench.harness.planned_stages import learned_columns
from cl_bench.harness.run_directory import ADAPTATION, ENDED, MANIFEST, MATRIX, SHIFT, STATUS, RunView, load_run

_CELLS = "eval/cells.json"
_LARGEST = 1e100
"""No score is larger; sums of a few such numbers are still numbers."""
_AGAIN = "remove the file and resume the run: it is written again"


def load_whole(directory: Path, shifts: bool = True) -> RunView:
    """Read a run directory whose every document has its form; metrics are those of its matrix.

    ``matrix.json`` has to agree with the rows that lie in the stages, whose hashes are compared. ``metrics.json`` is
    not used at all, so that no number in a table can differ from the matrix beside it.

    Args:
        directory: The run directory.
        shifts: Look at every number of ``shift.json`` too; a comparison takes one of them, and looks at that.

    Raises:
        NotARunError: The directory is not a run.
        StoreError: It is damaged, or does not belong to its spec.
    """
    view = _read(directory)
    if view.status:
        _check(directory / STATUS, view.status, "status")
    if view.manifest:
        _check(directory / MANIFEST, view.manifest, "manifest")
    if (directory / MATRIX).is_file():
        _check(directory / MATRIX, view.matrix.to_json(), "matrix")
        _check_scores(directory / MATRIX, view.matrix)
    _check_rows(view)
    for folder in view.stages.values():
        for name in (ADAPTATION, SHIFT) if shifts else (ADAPTATION,):
            if (folder / name).is_file():
                _check(folder / name, read_object(folder / name), name.removesuffix(".json"))
    return replace(view, metrics=run_metrics(view.matrix, learned_columns(view.spec))) if view.matrix.rows else view


def _read(directory: Path) -> RunView:
    try:
        return load_run(directory)
    except StoreError as error:
        if error.hint:
            raise
        raise StoreError(f"{directory}: {error.what}", error.why, _AGAIN) from error


def _check(path: Path, document: Mapping[str, Any], schema: str) -> None:
    try:
        validate_document(dict(document), schema)
    except StoreError as error:
        raise StoreError(f"{path} is damaged", error.why, _AGAIN) from error


def _check_scores(path: Path, matrix: Matrix) -> None:
    for row in matrix.rows:
        for column in matrix.columns:
            value = matrix.value(row, column.name)
            # What is no number at all is a score without a value, which metrics give a reason for.
            if value is not None and value == value and abs(value) > _LARGEST:
                raise StoreError(f"{path} is damaged", f"{row}/{column.name} is no score", _AGAIN)


def _check_rows(view: RunView) -> None:
    """The matrix has what each finished stage has; only a run that goes on may lack a row."""
    path = view.directory / MATRIX
    for row, folder in view.stages.items():
        if not (folder / _CELLS).is_file():  # stages of before rows lay in them
            continue
        if row not in view.matrix.rows:
            if view.status.get("state") in ENDED:
                raise StoreError(f"{path} lacks row {row}", "the stage is finished", _AGAIN)
            continue
        for column, cell in read_object(folder / _CELLS).items():
            _check_cell(view, row, column, cell)


def _check_cell(view: RunView, row: str, column: str, cell: Mapping[str, Any]) -> None:
    known = column in {one.name for one in view.matrix.columns}
    shown = view.matrix.value(row, column) if known else None
    if not known or shown != cell.get("value"):
        why = f"{row}/{column} is {shown if known else 'no column'}, and {cell.get('value')} was measured"
        raise StoreError(f"{view.directory / MATRIX} is damaged", why, _AGAIN)
