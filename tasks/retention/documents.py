"""Rows of a benchmark as lm-eval's documents, and the ids by which the same rows are chosen every time."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from cl_bench.harness.errors import DataError

Row = dict[str, Any]

ROW_INDEX = "row_index"
"""Field of a document with the place of its row: what survives lm-eval's own processing."""


class Documents(list[Row]):
    """Documents in memory, with the one attribute of ``datasets.Dataset`` that lm-eval reads."""

    @property
    def features(self) -> Mapping[str, None]:
        """Names of the fields."""
        return dict.fromkeys(self[0]) if self else {}


def row_ids(rows: Sequence[Row], own: str | None) -> list[str]:
    """Ids of rows, unique.

    Args:
        rows: The rows as published.
        own: Field with a row's id where rows have no ``id``; rows with neither, or whose ids repeat, are named by a
            hash of their content. None: rows without ``id`` go by their number.
    """
    if own is None:
        return [str(row.get("id", index)) for index, row in enumerate(rows)]
    for name in ("id", own):
        ids = [str(row[name]) for row in rows if row.get(name) is not None]
        if len(set(ids)) == len(rows):
            return ids
    seen: Counter[str] = Counter()
    return [_numbered(content_hash(row)[:16], seen) for row in rows]


def _numbered(digest: str, seen: Counter[str]) -> str:
    """A digest that came before gets a number: two rows with the same content are still two rows."""
    seen[digest] += 1
    return digest if seen[digest] == 1 else f"{digest}-{seen[digest]}"


def content_hash(row: Mapping[str, Any]) -> str:
    """SHA-256 (hex) of a row's fields without its ``id``."""
    content = {name: value for name, value in row.items() if name != "id"}
    return hashlib.sha256(json.dumps(content, sort_keys=True, ensure_ascii=False, default=str).encode()).hexdigest()


def documents_of(
    rows: Iterable[Row], document: Callable[[Row], Row], process: Callable[[Any], Any] | None, name: str
) -> Documents:
    """Make documents of rows.

    Args:
        rows: The rows.
        document: Makes a row what the definition expects.
        process: The definition's own ``process_docs``, or None.
        name: The benchmark's, for messages.

    Raises:
        DataError: A row is not what the definition expects.
    """
    try:
        documents = Documents(document(row) | {ROW_INDEX: index} for index, row in enumerate(rows))
        if process is None:
            return documents
        from datasets import Dataset

        return Documents(process(Dataset.from_list(documents)))
    except DataError:
        raise
    except Exception as error:  # lm-eval's functions raise whatever a row that they do not expect leads to
        raise DataError(f"the rows of {name} are not as expected", f"{type(error).__name__}: {error}") from error
