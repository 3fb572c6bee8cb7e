"""What the readers of public data sets share: how a row becomes an example, or why it is none of the task."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cl_bench.tasks.base import Example, Message, Score
from cl_bench.tasks.scoring.options import LETTERS

Row = Mapping[str, Any]


class DroppedRowError(Exception):
    """A row that is no example of the task; its text is the reason under which it is counted."""


class OtherKindError(DroppedRowError):
    """A row of the data set that is meant for another task; it does not count as one of this task's rows."""


@dataclass(frozen=True, slots=True)
class Reading:
    """For whom rows are read.

    Attributes:
        task: Name of the task.
        system: System turn before every question, or None.
        columns: Columns that the task file names, by what they hold.
        remarks: What is worth saying about rows that are kept, counted.
    """

    task: str
    system: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    remarks: Counter[str] = field(default_factory=Counter)

    def chat(self, question: str) -> tuple[Message, ...]:
        """The question as the user's turn, after the system turn where there is one."""
        user = {"role": "user", "content": question}
        return (user,) if self.system is None else ({"role": "system", "content": self.system}, user)


@dataclass(frozen=True, slots=True)
class Reader:
    """How the rows of one kind of data set become examples.

    Attributes:
        read: Makes an example of a row, options in their published order; raises DroppedRowError.
        score: The scorer.
        fields: Fields that every row must have, with their types' names; those of ``columns`` are added.
        stop: Strings that end a response.
        executes_code: Whether the scorer runs programs that a model wrote.
        packages: Distributions whose version decides verdicts.
    """

    read: Callable[[Row, Reading], Example]
    score: Callable[[Example, str], Score]
    fields: Mapping[str, str] = field(default_factory=dict)
    stop: tuple[str, ...] = ()
    executes_code: bool = False
    packages: tuple[str, ...] = ()


def row_id(row: Row, *content: Any) -> str:
    """The row's own id, or a hash of its content where it has none."""
    if "id" in row:
        return str(row["id"])
    return hashlib.sha256(json.dumps(content, ensure_ascii=False).encode()).hexdigest()[:16]


def lettered(question: str, options: Sequence[str]) -> str:
    """A question with its options on lines of their own, each after its letter."""
    lines = [f"{letter}: {option}" for letter, option in zip(LETTERS, options, strict=False)]
    return "\n".join([question, "", *lines])


def tagged(reasoning: str, answer: str) -> str:
    """A worked answer in the form that the prompts of the science tasks ask for."""
    return f"<reasoning>\n{reasoning}\n</reasoning>\n<answer>\n{answer}\n</answer>"


def choice_demonstration(letter: str, option: str) -> str:
    """A worked answer made from the gold letter, for rows that publish none."""
    return tagged(f"The right option is {letter}: {option}", letter)


def worked_answer(row: Row, column: str) -> str | None:
    """The row's own worked answer: a text, or lines to be joined; None where it has none."""
    value = row.get(column)
    if isinstance(value, list):
        value = "\n".join(str(line) for line in value)
    return str(value) if value else None
