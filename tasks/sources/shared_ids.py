"""Ids that are used more than once: replay, caches and joint training tell rows by them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from cl_bench.harness.errors import DataError
from cl_bench.tasks.base import Example
from cl_bench.tasks.sources.editions import Edition
from cl_bench.tasks.sources.reading import Reader
from cl_bench.tasks.sources.repetitions import agree, asked

_HASH = re.compile(r"[0-9a-f]{16}")
"""An id that ``row_id`` made of a row's content: rows with it ask the same, and only their gold can differ."""


def refuse_shared_ids(task: str, edition: Edition, rows: Mapping[str, Sequence[Example]], reader: Reader) -> None:
    """Refuse rows that differ and have one id.

    Args:
        task: Name of the task, for messages.
        edition: Where the rows are from.
        rows: All rows by split, as published.
        reader: Whose rows these are.

    Raises:
        DataError: Two rows that differ have one id.
    """
    first: dict[str, tuple[str, Example]] = {}
    for split, examples in rows.items():
        for example in examples:
            place, other = first.setdefault(example.id, (split, example))
            if other is not example and not _same(other, example, reader):
                files = dict.fromkeys(edition.files_of(one) for one in (place, split))
                raise DataError(
                    f"the task {task} has two rows with the id {example.id!r}",
                    f"they differ, and are in {' and in '.join(files)}",
                    "give every row of the task an id of its own",
                )


def _same(one: Example, other: Example, reader: Reader) -> bool:
    if asked(one) != asked(other):
        return False
    return _HASH.fullmatch(one.id) is not None or agree(one, other, reader)
