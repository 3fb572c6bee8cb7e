"""The contract of a task: examples, splits and one scorer that evaluation, rejection and rewards share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

Message = dict[str, str]
"""One chat turn: ``{"role": "system" | "user" | "assistant", "content": text}``."""

SplitName = Literal["train", "dev", "test", "ood"]
SPLITS: tuple[SplitName, ...] = ("train", "dev", "test", "ood")


@dataclass(frozen=True, slots=True)
class Example:
    """One item of a task.

    Attributes:
        task: Name of the task the example belongs to (``Stage.score`` dispatches on it).
        id: Stable identifier, unique within the task.
        messages: The prompt as chat turns; the last turn is the user's.
        demonstration: Gold worked answer y*, or None where the data set has none.
        answer: Gold final answer in canonical form, or None.
        choices: Answer options for multiple choice, in order, else None.
        meta: What the scorer needs beyond that (JSON values only).
    """

    task: str
    id: str
    messages: tuple[Message, ...]
    demonstration: str | None = None
    answer: str | None = None
    choices: tuple[str, ...] | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str]:
        """Task and id: what names an example where several tasks meet (joint training, replay)."""
        return self.task, self.id

    @property
    def question(self) -> str:
        """Text of the last user turn."""
        return self.messages[-1]["content"]


@dataclass(frozen=True, slots=True)
class Score:
    """Outcome of scoring one response.

    Attributes:
        correct: The lenient reading: is the answer right, in any declared form.
        parsed: The answer that was read from the response, or None.
        format_ok: The response has the form that the prompt asked for; strict accuracy = correct and format_ok.
        unreliable: A reason why the verdict itself cannot be trusted (for example a checker that crashed), else None.
    """

    correct: bool
    parsed: str | None
    format_ok: bool
    unreliable: str | None = None


class Task(ABC):
    """A source of examples with its scorer. Splits are fixed: the same call returns the same rows in the same order."""

    name: str
    version: ClassVar[str] = "1"
    primary_metric: ClassVar[str] = "accuracy"
    chance: float = 0.0
    """Accuracy of guessing, as a fraction."""
    max_new_tokens: int = 256
    """Longest response that evaluation waits for, in tokens."""
    stop: tuple[str, ...] = ()
    """Strings that end a response in evaluation."""
    executes_code: bool = False
    """Whether scoring runs programs that a model wrote; such a task needs the user's leave."""

    @property
    def remarks(self) -> Sequence[str]:
        """What a reader of this task's numbers should know about its rows."""
        return ()

    @abstractmethod
    def train(self) -> Sequence[Example]:
        """Training rows. Raises DataError when the source is absent or broken."""

    @abstractmethod
    def dev(self) -> Sequence[Example]:
        """Rows for choosing settings; disjoint from train and test."""

    @abstractmethod
    def test(self) -> Sequence[Example]:
        """Evaluation rows."""

    def ood(self) -> Sequence[Example]:
        """Out-of-distribution rows (unseen kinds, longer operands); empty where the source has none."""
        return ()

    @abstractmethod
    def score(self, example: Example, text: str) -> Score:
        """Score one response; the same function serves evaluation, rejection and rewards."""

    def split(self, name: SplitName) -> Sequence[Example]:
        """Rows of the split of that name."""
        return {"train": self.train, "dev": self.dev, "test": self.test, "ood": self.ood}[name]()

    def scorable(self) -> Sequence[Example]:
        """All rows that a response can be scored for: those of every split, each id once."""
        rows = {example.id: example for name in SPLITS for example in self.split(name)}
        return list(rows.values())

    def identity(self) -> dict[str, Any]:
        """What fixes the data and the scorer, as JSON: enters the run's hash and the evaluation cache's key."""
        return {"name": self.name, "version": self.version}
