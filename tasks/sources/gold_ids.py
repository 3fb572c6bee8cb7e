"""The list of gold ids that science tasks are restricted to.

A row's id is its column ``id``. Rows without one, as on the hub, are named by a hash of question and options in their
published order: the first 16 hexadecimal digits of the SHA-256 of ``json.dumps([question, options],
ensure_ascii=False)``, in UTF-8.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from cl_bench.harness.errors import DataError

NO_ROW_OF_TASK = "listed ids are no row of this task"
_HINT = (
    "ids are the column `id`; rows without one are named by the first 16 hexadecimal digits of the SHA-256 of "
    "json.dumps([question, options], ensure_ascii=False); a list for several tasks needs ids of each"
)


def read_gold_ids(path: Path) -> frozenset[str]:
    """The ids that a file lists, one a line; raises DataError where it cannot be read or lists none."""
    try:
        found = frozenset(path.read_text(encoding="utf-8-sig").split())
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"the list of gold ids {path} cannot be read", str(error)) from error
    if not found:
        raise DataError(f"the list of gold ids {path} lists none", hint=_HINT)
    return found


def unknown_remark(task: str, listed: Collection[str], rows: Collection[str], path: Path) -> str:
    """What to say about listed ids that are no rows of a task; empty where all are.

    Args:
        task: Name of the task, for messages.
        listed: The listed ids.
        rows: Ids of the task's rows.
        path: The file, for messages.

    Raises:
        DataError: None of them is a row.
    """
    unknown = len(set(listed) - set(rows))
    if unknown == len(listed):
        raise DataError(f"no listed id is a row of the task {task}", f"{path} lists {unknown:,} ids", _HINT)
    return f"{unknown:,} {NO_ROW_OF_TASK}" if unknown else ""
