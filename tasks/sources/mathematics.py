"""Readers of GSM8K, SVAMP and MATH."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import Any

from cl_bench.tasks.base import Example
from cl_bench.tasks.scoring.math import score_math
from cl_bench.tasks.scoring.number import score_number
from cl_bench.tasks.scoring.reading import last_boxed
from cl_bench.tasks.sources.reading import DroppedRowError, Reader, Reading, Row, row_id

_CALCULATOR = re.compile(r"<<[^<>\n]*>>")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")


def without_calculator_marks(text: str) -> str:
    """A worked answer of GSM8K without the calculator's marks ``<<…>>``."""
    return _CALCULATOR.sub("", text)


def without_thousands_commas(text: str) -> str:
    """A text whose numbers have no commas between thousands; other commas stay."""
    return _THOUSANDS.sub("", text)


def read_gsm8k(row: Row, reading: Reading) -> Example:
    """A row of GSM8K; the calculator's marks ``<<…>>`` are taken out of the worked answer."""
    worked, mark, answer = row["answer"].rpartition("####")
    if not mark:
        raise DroppedRowError("worked answer without its last line")
    number = without_thousands_commas(answer.strip())
    return Example(
        task=reading.task,
        id=row_id(row, row["question"]),
        messages=reading.chat(row["question"]),
        demonstration=without_calculator_marks(worked).rstrip() + f"\n#### {number}",
        answer=number,
        meta={"question": row["question"]},
    )


def read_svamp(row: Row, reading: Reading) -> Example:
    """A row of SVAMP: the body and its question are one text; the published equation is the worked answer."""
    number = _plain_number(row.get("Answer"))
    if number is None:
        raise DroppedRowError("answer is no number")
    body = row["Body"].strip()
    question = f"{body}{'' if body.endswith(('.', ',', '?', '!', ';', ':')) else '.'} {row['Question'].strip()}"
    equation = re.sub(r"(\d)\.0\b", r"\1", str(row.get("Equation") or "")).replace("( ", "(").replace(" )", ")")
    return Example(
        task=reading.task,
        id=row_id({"id": row["ID"], **row} if row.get("ID") else row, question),
        messages=reading.chat(question),
        demonstration=(f"{equation} = {number}\n" if equation else "") + f"#### {number}",
        answer=number,
        meta={"question": question, "type": str(row.get("Type", ""))},
    )


def _plain_number(value: Any) -> str | None:
    """The value in plain digits, without zeros after the point: "2.0" is "2"; None where it is no finite number."""
    try:
        number = Decimal(str(value).strip())
    except InvalidOperation:
        return None
    if isinstance(value, bool) or not number.is_finite():
        return None
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def read_math(row: Row, reading: Reading) -> Example:
    r"""A row of MATH; its answer is the column ``answer``, or the last ``\boxed{…}`` of the solution."""
    answer = str(row.get("answer") or last_boxed(row["solution"]) or "").strip()
    if not answer:
        raise DroppedRowError("solution without a boxed answer")
    return Example(
        task=reading.task,
        id=row_id(row, row["problem"]),
        messages=reading.chat(row["problem"]),
        demonstration=row["solution"],
        answer=answer,
        meta={
            "question": row["problem"],
            "subject": str(row.get("subject") or row.get("type") or ""),
            "level": str(row.get("level", "")),
        },
    )


GSM8K = Reader(read_gsm8k, score_number, {"question": "str", "answer": "str"})
SVAMP = Reader(read_svamp, score_number, {"Body": "str", "Question": "str"})
MATH = Reader(read_math, score_math, {"problem": "str", "solution": "str"}, packages=("math-verify",))
