"""The document ``recovery.json`` of a run directory: rows with their columns, each tied to the samples it came from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cl_bench.harness.documents import validate_document
from cl_bench.harness.files import content_hash, read_object
from cl_bench.harness.measure.matrix import BASE_ROW
from cl_bench.harness.run_directory import DONE, RunView

RECOVERY = "recovery.json"
SCHEMA_VERSION = 1


def evidence(view: RunView, row: str) -> str:
    """Hash of everything that base and a row were evaluated to: what probes of that row belong to."""
    hashes = [read_object(view.stages[name] / DONE)["files"] for name in (BASE_ROW, row)]
    return content_hash([{file: found[file] for file in found if file.startswith("eval/")} for found in hashes])


def read_recovery(view: RunView) -> dict[str, Any]:
    """Rows of ``recovery.json`` by name, those alone that still belong to the run's samples; empty without the file.

    Raises:
        StoreError: The file is damaged.
    """
    path = view.directory / RECOVERY
    if not path.is_file():
        return {}
    document = read_object(path)
    validate_document(document, "recovery")
    rows: dict[str, Any] = document["rows"]
    return {row: part for row, part in rows.items() if row in view.stages and part["evidence"] == evidence(view, row)}


def with_row(rows: Mapping[str, Any], row: str, part: Mapping[str, Any]) -> dict[str, Any]:
    """The document ``recovery.json`` with a row's new columns; its other ones stay where they were found likewise."""
    before = rows.get(row)
    alike = before is not None and all(before[name] == part[name] for name in part if name != "columns")
    columns = {**(before["columns"] if before is not None and alike else {}), **part["columns"]}
    return {"schema_version": SCHEMA_VERSION, "rows": {**rows, row: {**part, "columns": columns}}}
