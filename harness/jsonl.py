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


def read_jsonl(path: Path, fields: Mapping[str, str], any_text: bool = False) -> list[dict[str, Any]]:
    """Read and check a JSONL file.

    Args:
        path: The file, UTF-8 with or without a byte order mark; empty lines are skipped.
        fields: Fields that every row must have, with their type's name (``JSON_TYPES``); ``a.b`` is a field inside
            another. An ``id``, where rows have one, must be text or a whole number, and unique.
        any_text: Whether all but the id may hold halves of surrogate pairs, which models write and no file can hold.

    Raises:
        DataError: The file cannot be read, a line is no JSON object, a field is missing or of another type, an id
            comes twice, or there is no row.
    """
    rows: list[dict[str, Any]] = []
    seen: dict[Any, int] = {}
    for number, line in enumerate(_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        row = _parsed(line, path, number, any_text)
        check_row(row, fields, f"{path}, line {number}")
        check_new_id(row, number, seen, f"{path}, line")
        rows.append(row)
    if not rows:
        raise DataError(f"{path} has no rows")
    return rows


def _text(path: Path) -> str:
    try:
        if path.exists() and not path.is_file():  # reading a pipe could wait for ever
            what = "a folder" if path.is_dir() else "a pipe or a device"
            raise DataError(f"{path} cannot be read", f"it is no regular file but {what}", "name a file with rows")
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise DataError(f"{path} cannot be read", error.strerror or str(error)) from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path} cannot be read: it is not UTF-8 text", str(error), _as_text(error.object)) from error
    if "\0" in text:
        raise DataError(f"{path} cannot be read: it is not UTF-8 text", "it has zero bytes", _as_text(b""))
    return text


def _as_text(data: bytes) -> str:
    """What makes UTF-8 text of a file that begins so."""
    if data.startswith(b"\x1f\x8b"):
        return "it is compressed: unpack it with gunzip"
    return "write it as UTF-8; of UTF-16, for example, iconv -f UTF-16 -t UTF-8 makes that"


def _parsed(line: str, path: Path, number: int, any_text: bool) -> dict[str, Any]:
    where = f"{path}, line {number}"
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise DataError(f"{where}: invalid JSON", f"{error.msg} at column {error.colno}") from error
    except ValueError as error:  # Python reads no whole number of more than 4,300 digits
        raise DataError(f"{where}: a number has too many digits", str(error).partition(";")[0]) from error
    except RecursionError as error:
        raise DataError(f"{where}: invalid JSON", "it is nested too deeply") from error
    if not isinstance(row, dict):
        raise DataError(f"{where}: a row must be a JSON object", f"it is a {type(row).__name__}")
    if "\\ud" in line.lower():  # half of a surrogate pair is text for JSON, and for nothing that comes after
        try:
            json.dumps(row.get("id") if any_text else row, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise DataError(f"{where}: text that is no Unicode", str(error)) from error
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


def value_at(row: Mapping[str, Any], name: str) -> Any:
    """The value of a column; ``outer.inner`` is a field inside another, unless a column has that very name.

    Raises:
        KeyError: The row has no such column.
    """
    value: Any = row
    for part in [name] if name in row else name.split("."):
        if not isinstance(value, Mapping) or part not in value:
            raise KeyError(name)
        value = value[part]
    return value


def check_row(row: Mapping[str, Any], fields: Mapping[str, str], where: str) -> None:
    """Check that a row has the fields, each of its type. Raises DataError that names ``where`` and the field."""
    for name, type_name in {**({"id": "str or int"} if "id" in row else {}), **fields}.items():
        try:
            value = value_at(row, name)
        except KeyError as error:
            hint = f"every row needs {', '.join(fields)}"
            raise DataError(f"{where}, field `{name}`: missing", hint=hint) from error
        # bool is an int in Python, but true is no number in a data file.
        if not isinstance(value, JSON_TYPES[type_name]) or (isinstance(value, bool) and type_name != "bool"):
            raise DataError(f"{where}, field `{name}`: not a {type_name}", f"it is a {type(value).__name__}")
