"""What recovery probes ask of a column: answers with a forced opening, ranked options, rows to learn from again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cl_bench.harness.measure.items.causes import Sample

if TYPE_CHECKING:
    from cl_bench.harness.measure.items.openings import Frame
    from cl_bench.harness.models.chat_model import ChatModel
    from cl_bench.methods.training.rows import TrainingRow

MEANINGLESS = "..."
"""Answers the items alone that ask for no particular content, such as to write without commas."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """What one probe found on one column.

    Attributes:
        right: Whether the model is right on each item under the probe, by id; items it does not fit are absent.
        reason: Why the probe cannot be applied to the column; None where it was.
        details: What the probe used (opening, number of rows), as JSON.
    """

    right: Mapping[str, bool] = field(default_factory=dict)
    reason: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


class ProbedColumn(ABC):
    """A column of a run whose items can be asked again.

    Attributes:
        name: Name of the column.
    """

    name: str

    @abstractmethod
    def check(self, model: ChatModel, samples: Sequence[Sample]) -> None:
        """Compare recorded rows with what would be asked now. Raises ``DataError`` where ids or prompts differ."""

    @abstractmethod
    def answers(self, model: ChatModel, ids: Sequence[str], opening: str = "") -> dict[str, bool]:
        """Whether greedy answers are right, by id; items that do not fit the context are absent.

        Args:
            model: The model.
            ids: Items to ask.
            opening: Text that every answer is made to begin with.
        """

    @abstractmethod
    def ranks_gold_first(self, model: ChatModel, ids: Sequence[str], frame: Frame) -> dict[str, bool]:
        """Whether the right option is the likeliest one, by id; items without options are absent.

        Args:
            model: The model.
            ids: Items to ask.
            frame: Text that options stand in.
        """

    @abstractmethod
    def right_by(self, text: str) -> set[str]:
        """Ids of all items of the column for which a text alone is scored as right."""

    def gives_away(self, opening: str) -> bool:
        """Whether an opening alone answers some item that a text without any meaning does not answer."""
        return bool(self.right_by(opening) - self.right_by(MEANINGLESS))

    @abstractmethod
    def lessons(self, base: ChatModel, most: int) -> list[TrainingRow]:
        """The base's own right answers to dev rows, no items of the column, at most so many; fixed by hash."""


@dataclass(frozen=True, slots=True)
class ProbeInput:
    """What a probe works with.

    Attributes:
        column: The column.
        model: The model after the stage; a probe leaves it as it is.
        base: Gives the untouched model, loaded once.
        base_samples: The untouched model's recorded rows of the column.
        ids: Items to probe.
    """

    column: ProbedColumn
    model: ChatModel
    base: Callable[[], ChatModel]
    base_samples: Sequence[Sample]
    ids: Sequence[str]

    @property
    def scored_by_options(self) -> bool:
        """Whether the column is scored by the log-likelihoods of its options, so that nothing is generated."""
        return any(sample.get("loglikelihoods") is not None for sample in self.base_samples)
