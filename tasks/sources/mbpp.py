"""Reader of MBPP: a function to write, told in a sentence and by its tests."""

from __future__ import annotations

import ast

from cl_bench.tasks.base import Example
from cl_bench.tasks.scoring.code import score_code
from cl_bench.tasks.sources.reading import DroppedRowError, Reader, Reading, Row, row_id


def read_mbpp(row: Row, reading: Reading) -> Example:
    """A row of MBPP; the tests are part of the prompt, because the sentence alone leaves name and form open.

    ``meta`` holds what ``score_code`` reads; the function is the one that the tests call. Rows whose gold program is no
    Python 3 are dropped.
    """
    code, tests = _lines(row["code"]), "\n".join(_lines(test) for test in row["test_list"])
    try:
        ast.parse(code)
    except (SyntaxError, ValueError) as error:
        raise DroppedRowError("gold program is no Python 3") from error
    question = "\n".join([row["text"].strip(), "", "The function must pass these tests:", tests])
    return Example(
        task=reading.task,
        id=row_id({"id": f"mbpp-{row['task_id']}", **row}),
        messages=reading.chat(question),
        demonstration=f"```python\n{code}\n```",
        answer=code,
        meta={
            "question": row["text"].strip(),
            "prefix": "",
            "setup": "",
            # What the data set calls setup uses the program's classes, so it runs after the program.
            "tests": "\n".join(filter(None, (_lines(str(row.get("test_setup_code") or "")), tests))),
            "entry_point": None,
        },
    )


def _lines(code: str) -> str:
    """The code with plain line ends, without empty lines around it."""
    return code.replace("\r\n", "\n").strip("\n")


MBPP = Reader(
    read_mbpp,
    score_code,
    {"text": "str", "code": "str", "task_id": "int", "test_list": "list"},
    executes_code=True,
)
