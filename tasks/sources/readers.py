"""Readers: how the rows of each public data set become examples, and which scorer they take."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cl_bench.tasks.base import Example, Message, Score
from cl_bench.tasks.scoring.choice import LETTERS, score_choice
from cl_bench.tasks.scoring.exact import score_exact
from cl_bench.tasks.scoring.number import score_number
from cl_bench.tasks.scoring.tool_calls import STOP, canonical, gold_calls, score_tool_calls

Row = Mapping[str, Any]


class DroppedRowError(Exception):
    """A row that is no example of the task; its text is the reason under which it is counted."""


@dataclass(frozen=True, slots=True)
class Reader:
    """How rows become examples.

    Attributes:
        read: Makes an example of (task name, row, system prompt, columns); raises DroppedRowError.
        score: The scorer.
        fields: Fields that every row must have, with their types' names; those of ``columns`` are added.
        stop: Strings that end a response.
    """

    read: Callable[[str, Row, str | None, Mapping[str, str]], Example]
    score: Callable[[Example, str], Score]
    fields: Mapping[str, str] = field(default_factory=dict)
    stop: tuple[str, ...] = ()


def _chat(question: str, system: str | None) -> tuple[Message, ...]:
    user = {"role": "user", "content": question}
    return (user,) if system is None else ({"role": "system", "content": system}, user)


def row_id(row: Row, *content: Any) -> str:
    """The row's own id, or a hash of its content where it has none."""
    if "id" in row:
        return str(row["id"])
    return hashlib.sha256(json.dumps(content, ensure_ascii=False).encode()).hexdigest()[:16]


def lettered(question: str, options: Sequence[str]) -> str:
    """A question with its options on lines of their own, each after its letter."""
    lines = [f"{letter}: {option}" for letter, option in zip(LETTERS, options, strict=False)]
    return "\n".join([question, "", *lines])


def choice_demonstration(letter: str, option: str) -> str:
    """A worked answer made from the gold letter; data sets of this kind publish no reasoning."""
    return f"<reasoning>\nThe right option is {letter}: {option}\n</reasoning>\n<answer>\n{letter}\n</answer>"


def read_sciknoweval(task: str, row: Row, system: str | None, columns: Mapping[str, str]) -> Example:
    """A row of SciKnowEval: level L3 with four options; other rows are dropped."""
    kinds = row["type"] if isinstance(row["type"], list) else [row["type"]]
    if row["details"].get("level") != "L3":
        raise DroppedRowError("other level than L3")
    if "mcq-4-choices" not in kinds:
        raise DroppedRowError("other type than four choices")
    options = [str(option) for option in row["choices"]["text"]]
    letter = str(row["answerKey"])
    if len(set(options)) < len(options):
        raise DroppedRowError("two equal options")
    if letter not in LETTERS[: len(options)]:
        raise DroppedRowError("gold letter without an option")
    return Example(
        task=task,
        id=row_id(row, row["question"], options),
        messages=_chat(lettered(row["question"], options), system),
        demonstration=choice_demonstration(letter, options[LETTERS.index(letter)]),
        answer=letter,
        choices=tuple(options),
        meta={"question": row["question"], "subtask": row["details"].get("subtask", "")},
    )


def read_toolalpaca(task: str, row: Row, system: str | None, columns: Mapping[str, str]) -> Example:
    """A row of ToolAlpaca in the schema of SDFT; rows whose gold arguments are no JSON are dropped."""
    try:
        gold = gold_calls(row["golden_answer"])
    except (ValueError, KeyError, TypeError) as error:
        raise DroppedRowError("gold call is not readable") from error
    response = row.get("golden_response")
    if not response:
        response = [
            line
            for call in row["golden_answer"]
            for line in (f"Action: {call['Action']}", f"Action Input: {call['Action_Input']}")
        ]
    return Example(
        task=task,
        id=row_id(row, row["prompt"]),
        messages=_chat(row["prompt"], system),
        demonstration="\n".join(response),
        answer=canonical(gold),
        meta={"question": row.get("instruction", row["prompt"]), "api": row.get("name", "")},
    )


def read_gsm8k(task: str, row: Row, system: str | None, columns: Mapping[str, str]) -> Example:
    """A row of GSM8K; the calculator's marks ``<<…>>`` are taken out of the worked answer."""
    worked, mark, answer = row["answer"].rpartition("####")
    if not mark:
        raise DroppedRowError("worked answer without its last line")
    number = answer.strip().replace(",", "")
    demonstration = re.sub(r"<<.*?>>", "", worked).rstrip() + f"\n#### {number}"
    return Example(
        task=task,
        id=row_id(row, row["question"]),
        messages=_chat(row["question"], system),
        demonstration=demonstration,
        answer=number,
        meta={"question": row["question"]},
    )


def read_columns(task: str, row: Row, system: str | None, columns: Mapping[str, str]) -> Example:
    """A row of any data set whose columns the task file names: question, answer, demonstration, choices."""
    question, answer = str(row[columns["question"]]), str(row[columns["answer"]])
    options = [str(option) for option in row[columns["choices"]]] if "choices" in columns else None
    if options is not None and answer not in LETTERS[: len(options)]:
        if answer not in options:
            raise DroppedRowError("gold answer without an option")
        answer = LETTERS[options.index(answer)]
    demonstration = str(row[columns["demonstration"]]) if "demonstration" in columns else None
    return Example(
        task=task,
        id=row_id(row, question, options),
        messages=_chat(question if options is None else lettered(question, options), system),
        demonstration=demonstration,
        answer=answer,
        choices=None if options is None else tuple(options),
        meta={"question": question},
    )


_SCIKNOWEVAL_FIELDS = {
    "question": "str",
    "choices": "dict",
    "choices.text": "list",
    "answerKey": "str",
    "type": "str or list",
    "details": "dict",
}
_TOOLALPACA_FIELDS = {"prompt": "str", "instruction": "str", "golden_answer": "list"}

READERS: Mapping[str, Reader] = {
    "sciknoweval": Reader(read_sciknoweval, score_choice, _SCIKNOWEVAL_FIELDS),
    "toolalpaca": Reader(read_toolalpaca, score_tool_calls, _TOOLALPACA_FIELDS, stop=(STOP,)),
    "gsm8k": Reader(read_gsm8k, score_number, {"question": "str", "answer": "str"}),
    "columns-choice": Reader(read_columns, score_choice),
    "columns-number": Reader(read_columns, score_number),
    "columns-exact": Reader(read_columns, score_exact),
}
"""Readers by the ``kind`` that task files name."""
