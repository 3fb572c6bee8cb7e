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
    "str or list": (str, list),
    "str or int": (str, int),
}
"""Names of field types in task and suite files."""


def read_jsonl(path: Path, fields: Mapping[str, str]) -> list[dict[str, Any]]:
    """Read and check a JSONL file.

    Args:
        path: The file; empty lines are skipped.
        fields: Fields that every row must have, with their type's name (``JSON_TYPES``); ``a.b`` is a field inside
            another. An ``id``, where rows have one, must be text or a whole number, and unique.

    Raises:
        DataError: The file cannot be read, a line is no JSON object, a field is missing or of another type, an id
            comes twice, or there is no row.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read", str(error)) from error
    rows: list[dict[str, Any]] = []
    seen: dict[Any, int] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        row = _parsed(line, path, number)
        check_row(row, fields, f"{path}, line {number}")
        check_new_id(row, number, seen, f"{path}, line")
        rows.append(row)
    if not rows:
        raise DataError(f"{path} has no rows")
    return rows


def _parsed(line: str, path: Path, number: int) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise DataError(f"{path}, line {number}: invalid JSON", f"{error.msg} at column {error.colno}") from error
    except RecursionError as error:
        raise DataError(f"{path}, line {number}: invalid JSON", "it is nested too deeply") from error
    if "\\ud" in line.lower():  # half of a surrogate pair is text for JSON, and for nothing that comes after
        try:
            json.dumps(row, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise DataError(f"{path}, line {number}: text that is no Unicode", str(error)) from error
    if not isinstance(row, dict):
        raise DataError(f"{path}, line {number}: a row must be a JSON object", f"it is a {type(row).__name__}")
    return row


def check_new_id(row: Mapping[str, Any], number: int, seen: dict[Any, int], where: str) -> None:
    """Check that a row's id, where it has one, is none of the rows' before it.

    Args:
        row: The row.
        number: Its place.
        seen: Places of the ids so far; the row's is added.
        where: What comes before a place in messages ("data.jsonl, line").

    Raises:
        DataError: The id was used before; names both places.
    """
    if "id" in row and (first := seen.setdefault(str(row["id"]), number)) != number:
        raise DataError(f"{where} {number}, field `id`: {row['id']!r} was used in {where.split()[-1]} {first} already")


def check_row(row: Mapping[str, Any], fields: Mapping[str, str], where: str) -> None:
    """Check that a row has the fields, each of its type. Raises DataError that names ``where`` and the field."""
    for name, type_name in {**({"id": "str or int"} if "id" in row else {}), **fields}.items():
        value: Any = row
        for part in [name] if name in row else name.split("."):
            if not isinstance(value, Mapping) or part not in value:
                raise DataError(f"{where}, field `{name}`: missing", hint=f"every row needs {', '.join(fields)}")
            value = value[part]
        # bool is an int in Python, but true is no number in a data file.
        if not isinstance(value, JSON_TYPES[type_name]) or (isinstance(value, bool) and type_name != "bool"):
            raise DataError(f"{where}, field `{name}`: not a {type_name}", f"it is a {type(value).__name__}")
