"""Reader of ToolAlpaca in the schema of SDFT: a prompt with a tool's documentation, and gold calls."""

from __future__ import annotations

import re
from collections.abc import Iterable

from cl_bench.tasks.base import Example
from cl_bench.tasks.scoring.tool_calls import STOP, canonical, gold_calls, score_tool_calls
from cl_bench.tasks.sources.reading import DroppedRowError, Reader, Reading, Row, row_id, worked_answer

_WORKED = "golden_response"
_UNDOCUMENTED = "gold action that the tool's documentation does not name"


def read_toolalpaca(row: Row, reading: Reading) -> Example:
    """A row of ToolAlpaca; rows whose gold arguments are no JSON are dropped.

    Gold actions that the documentation does not name (``[Optional]update``, ``getDetails``) are published so: the rows
    are kept, because a model's answer can still equal them, and counted as a remark.
    """
    try:
        gold = gold_calls(row["golden_answer"])
    except (ValueError, KeyError, TypeError) as error:
        raise DroppedRowError("gold call is not readable") from error
    if not gold:
        raise DroppedRowError("no gold call")
    if not _documented([name for name, _ in gold], str(row.get("nl_documentation") or row["prompt"])):
        reading.remarks[_UNDOCUMENTED] += 1
    return Example(
        task=reading.task,
        id=row_id(row, row["prompt"]),
        messages=reading.chat(row["prompt"]),
        demonstration=worked_answer(row, reading.columns.get("demonstration", _WORKED)) or _calls_as_text(row),
        answer=canonical(gold),
        meta={"question": row.get("instruction", row["prompt"]), "api": row.get("name", "")},
    )


def _documented(names: Iterable[str], documentation: str) -> bool:
    return all(re.search(rf"^{re.escape(name)}:", documentation, re.MULTILINE) for name in names)


def _calls_as_text(row: Row) -> str:
    return "\n".join(
        line
        for call in row["golden_answer"]
        for line in (f"Action: {call['Action']}", f"Action Input: {call['Action_Input']}")
    )


TOOLALPACA = Reader(
    read_toolalpaca,
    score_tool_calls,
    {"prompt": "str", "instruction": "str", "golden_answer": "list"},
    stop=(STOP,),
)
