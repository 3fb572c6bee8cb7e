"""Reads suite files and says what is wrong with one, and in which benchmark."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import MISSING, fields
from functools import cache
from pathlib import Path
from typing import Any, get_type_hints

from pydantic import TypeAdapter, ValidationError

from cl_bench.harness.errors import UnknownNameError, UsageError
from cl_bench.harness.jsonl import JSON_TYPES
from cl_bench.harness.yaml_files import read_mapping
from cl_bench.tasks.sources.locate import DatasetSpec

_NEEDED = ("tiers", "tasks")


def read_suite(path: Path) -> dict[str, Any]:
    """Content of a suite file: ``tiers``, ``tasks``, perhaps ``defaults``, in the form that they must have.

    Raises:
        UsageError: The file cannot be read or is no suite.
    """
    try:
        content = read_mapping(path)
    except UsageError as error:
        raise _no_suite(path, ": ".join(filter(None, (error.what, error.why)))) from error
    for key in _NEEDED:
        if not content.get(key):
            near = difflib.get_close_matches(key, set(content) - {*_NEEDED}, n=1)
            empty = f"`{key}` is empty" if key in content else f"it lacks `{key}`"
            raise _no_suite(path, empty, f"is `{near[0]}` meant to be `{key}`?" if near else "")
    _check_tiers(path, content["tiers"])
    if not isinstance(content.get("defaults") or {}, Mapping):
        raise _no_suite(path, "`defaults` is no mapping of keys to values")
    if not isinstance(content["tasks"], list):
        raise _no_suite(path, "`tasks` is no list of benchmarks")
    for number, entry in enumerate(content["tasks"], start=1):
        if not isinstance(entry, Mapping) or not all(isinstance(key, str) for key in entry):
            raise _no_suite(path, f"benchmark {number} of `tasks` is {entry!r:.60}, no mapping of keys to values")
    return content


def _check_tiers(path: Path, tiers: Any) -> None:
    if not isinstance(tiers, Mapping):
        raise _no_suite(path, "`tiers` is no mapping of names to numbers of rows")
    for name, rows in tiers.items():
        if rows is not None and (not isinstance(rows, int) or isinstance(rows, bool) or rows < 1):
            raise _no_suite(path, f"the tier {name} has {rows!r} rows", "a whole number above 0, or null for all rows")


def _no_suite(path: Path, why: str, hint: str = "") -> UsageError:
    form = "it needs `tiers` (names to numbers of rows) and `tasks` (a list of benchmarks)"
    return UsageError(f"{path} is not a suite", why, hint or form)


def check_fields(kind: type, values: Mapping[str, Any], what: str) -> None:
    """Check that values make a dataclass: no unknown key, none that is needed missing, each of its type.

    Args:
        kind: The dataclass.
        values: Values by field.
        what: What they are, for messages ("the benchmark 'piqa' of mine.yaml").

    Raises:
        UsageError: They do not; names the key.
    """
    known = {item.name: item for item in fields(kind)}
    for name in values:
        if name not in known:
            raise UnknownNameError(f"key of {what}", name, known)
    needed = [name for name, item in known.items() if item.default is item.default_factory is MISSING]
    if missing := [name for name in needed if name not in values]:
        raise UsageError(f"{what} lacks {', '.join(missing)}", hint=f"it needs {', '.join(needed)}")
    for name, value in values.items():
        try:
            _types(kind)[name].validate_python(value, strict=True)
        except ValidationError as error:
            said = error.errors(include_url=False)[0]
            raise UsageError(f"{what}: `{name}` cannot be {value!r:.60}", str(said["msg"])) from error


def check_data(data: Mapping[str, Any], what: str) -> None:
    """Check where a benchmark's rows are said to be; raises UsageError."""
    check_fields(DatasetSpec, data, what)
    for name, type_name in data.get("fields", {}).items():
        if type_name not in JSON_TYPES:
            raise UnknownNameError(f"type of the field {name} ({what})", str(type_name), JSON_TYPES)


@cache
def _types(kind: type) -> dict[str, TypeAdapter[Any]]:
    return {name: TypeAdapter(hint) for name, hint in get_type_hints(kind).items()}
