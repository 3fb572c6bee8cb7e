"""JSONL files, checked line by line, so that a broken row is reported with file, line and field."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cl_bench.harness.errors import DataError

JSON_TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "list": (list,),
    "dict": (dict,),
}
"""Names of field types in task and suite files."""


def read_jsonl(path: Path, fields: Mapping[str, str]) -> list[dict[str, Any]]:
    """Read and check a JSONL file.

    Args:
        path: The file; empty lines are skipped.
        fields: Fields that every row must have, with their type's name (``JSON_TYPES``). An ``id``, where rows have
            one, must be a string and unique.

    Raises:
        DataError: The file cannot be read, a line is no JSON object, a field is missing or of another type, an id
            comes twice, or there is no row.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read", str(error)) from error
    rows: list[dict[str, Any]] = []
    seen: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        row = _parsed(line, path, number)
        check_row(row, fields, f"{path}, line {number}")
        if "id" in row:
            first = seen.setdefault(row["id"], number)
            if first != number:
                raise DataError(f"{path}, line {number}, field `id`: {row['id']!r} was used in line {first} already")
        rows.append(row)
    if not rows:
        raise DataError(f"{path} has no rows")
    return rows


def _parsed(line: str, path: Path, number: int) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise DataError(f"{path}, line {number}: invalid JSON", f"{error.msg} at column {error.colno}") from error
    if not isinstance(row, dict):
        raise DataError(f"{path}, line {number}: a row must be a JSON object", f"it is a {type(row).__name__}")
    return row


def check_row(row: Mapping[str, Any], fields: Mapping[str, str], where: str) -> None:
    """Check that a row has the fields, each of its type. Raises DataError that names ``where`` and the field."""
    for name, type_name in {**({"id": "str"} if "id" in row else {}), **fields}.items():
        if name not in row:
            raise DataError(f"{where}, field `{name}`: missing", hint=f"every row needs {', '.join(fields)}")
        value = row[name]
        # bool is an int in Python, but true is no number in a data file.
        if not isinstance(value, JSON_TYPES[type_name]) or (isinstance(value, bool) and type_name != "bool"):
            raise DataError(f"{where}, field `{name}`: not a {type_name}", f"it is a {type(value).__name__}")
