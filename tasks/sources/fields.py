"""Values of a row by the names of its columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def value_at(row: Mapping[str, Any], name: str) -> Any:
    """The value of a column; ``outer.inner`` is a field inside another, unless a column has that very name.

    The names are those that ``harness.jsonl.check_row`` checks.

    Raises:
        KeyError: The row has no such column.
    """
    value: Any = row
    for part in [name] if name in row else name.split("."):
        if not isinstance(value, Mapping) or part not in value:
            raise KeyError(name)
        value = value[part]
    return value
