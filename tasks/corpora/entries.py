"""What the registry says about one corpus."""

from __future__ import annotations

from dataclasses import asdict
from datetime import date
from typing import Any, Literal

from pydantic import ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

from cl_bench.tasks.sources.locate import DatasetSpec

_STRICT = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True, config=_STRICT)
class AnswerSource:
    r"""Where a row's final answer is; one of these.

    Attributes:
        column: A column that holds it.
        after: The last place of this mark in the demonstration; the answer is the rest of that line.
        boxed: The last ``\boxed{…}`` of the demonstration.
        index: A column with the place of the right option, from 0.
        letter: A column with the letter of the right option.
    """

    column: str | None = None
    after: str | None = None
    boxed: bool = False
    index: str | None = None
    letter: str | None = None

    @model_validator(mode="after")
    def _one(self) -> AnswerSource:
        if sum(bool(value) for value in asdict(self).values()) != 1:
            raise ValueError("an answer comes from one of column, after, boxed, index and letter")
        return self


@dataclass(frozen=True, slots=True, config=_STRICT)
class Columns:
    """How a row becomes a chat; columns inside others are written ``outer.inner``.

    Attributes:
        question: Columns of the user's turn, joined by an empty line; empty ones are left out.
        response: Columns of the demonstration, likewise.
        messages: Instead of both, a column with chat turns.
        choices: Columns of the options, or one column with their list.
        answer: Where the final answer is, or None.
        strip: What is taken out of the demonstration: the calculator's marks ``<<…>>``, or None.
    """

    question: tuple[str, ...] = ()
    response: tuple[str, ...] = ()
    messages: str | None = None
    choices: tuple[str, ...] = ()
    answer: AnswerSource | None = None
    strip: Literal["calculator-marks"] | None = None

    @model_validator(mode="after")
    def _complete(self) -> Columns:
        if (self.messages is None) != bool(self.question):
            raise ValueError("either `messages` or `question` is needed")
        named = self.answer is not None and bool(self.answer.index or self.answer.letter)
        if bool(self.choices) != named:
            raise ValueError("`choices` and an answer by index or letter go together")
        if self.messages is None and not (self.response or self.choices):
            raise ValueError("beside `question`, `response` or `choices` is needed")
        return self


@dataclass(frozen=True, slots=True, config=_STRICT)
class Corpus:
    """One corpus.

    Attributes:
        path: Its id on the hub.
        split: The split that is trained on.
        columns: How its rows become chats.
        columns_status: Whether the names of the columns were seen, or are from memory.
        domain: What it is about.
        status: ``named`` by the source, or ``inferred``.
        config: Its configuration, or None.
        revision: Commit on the hub, or None: not pinned.
        created: Month or day of publication (``YYYY-MM``, ``YYYY-MM-DD``), or None: unknown.
        licence: Its licence, or None: not looked up.
        remark: What else is worth knowing.
    """

    path: str
    split: str
    columns: Columns
    columns_status: Literal["verified", "from memory"]
    domain: Literal["math", "code", "science", "medicine", "general"]
    status: Literal["named", "inferred"]
    config: str | None = None
    revision: str | None = Field(default=None, pattern="^[0-9a-f]{40}$")
    created: str | None = Field(default=None, pattern=r"^\d{4}-(0[1-9]|1[0-2])(-\d{2})?$")
    licence: str | None = None
    remark: str = ""

    @model_validator(mode="after")
    def _a_day(self) -> Corpus:
        if self.created is not None and len(self.created) > len("YYYY-MM"):
            date.fromisoformat(self.created)
        return self

    @property
    def created_status(self) -> Literal["known", "unknown"]:
        """Whether the date of publication is known."""
        return "unknown" if self.created is None else "known"

    @property
    def flat_name(self) -> str:
        """Name of its file in a flat folder."""
        return f"{self.path.rpartition('/')[2].lower()}.jsonl"

    def data_set(self) -> DatasetSpec:
        """Where its rows are, for ``tasks.sources.locate``; the one split is called ``train``."""
        return DatasetSpec(
            self.path, {"train": self.flat_name}, self.config, self.revision, splits={"train": self.split}
        )

    def as_dict(self) -> dict[str, Any]:
        """The entry as JSON values, with ``created_status``."""
        return {**asdict(self), "created_status": self.created_status}
