"""A matrix of scores together with what each stage trained on: what metrics are computed from."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cl_bench.harness.measure.matrix import BASE_ROW, Cell, Column, Matrix


class UndefinedMetricError(Exception):
    """A metric has no value; the message says why."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A metric's value, or the reason why it has none.

    Attributes:
        value: The value, or None.
        reason: Why there is none; what was left out where there is one.
        range: The middle 95 % of a simulated value; None for what was not simulated.
    """

    value: float | None
    reason: str = ""
    range: tuple[float, float] | None = None

    def to_json(self) -> dict[str, Any]:
        """``{"value": x}``, with ``reason`` and ``range`` where there are any."""
        document: dict[str, Any] = {"value": self.value}
        if self.reason:
            document["reason"] = self.reason
        if self.range is not None:
            document["range"] = list(self.range)
        return document


@dataclass(frozen=True)
class Scores:
    """A matrix together with what each stage trained on.

    Attributes:
        matrix: The measured values.
        learned: Columns trained on by stage, in order: ``{"chemistry": ("chemistry",)}``.
    """

    matrix: Matrix
    learned: Mapping[str, Sequence[str]]

    @property
    def stages(self) -> tuple[str, ...]:
        """Names of the stages in order; a planned stage that was never evaluated is among them."""
        return tuple(self.learned)

    @property
    def tasks(self) -> tuple[str, ...]:
        """Distinct tasks in the order they are first learned."""
        return tuple(dict.fromkeys(task for tasks in self.learned.values() for task in tasks))

    @property
    def final(self) -> str:
        """The last stage. Raises ``UndefinedMetricError`` for a run without stages."""
        if not self.learned:
            raise UndefinedMetricError("the run has no stages")
        return self.stages[-1]

    def first_learned(self, task: str) -> int:
        """Position of the stage that first trains on the task. Raises ``UndefinedMetricError`` where none does."""
        return self.trained_at(task)[0]

    def last_learned(self, task: str) -> int:
        """Position of the stage that last trains on the task. Raises ``UndefinedMetricError`` where none does."""
        return self.trained_at(task)[-1]

    def trained_at(self, task: str) -> list[int]:
        """Positions of the stages that train on the task, ascending. Raises ``UndefinedMetricError`` without any."""
        positions = [position for position, stage in enumerate(self.stages) if task in self.learned[stage]]
        if not positions:
            raise UndefinedMetricError(f"no stage trains on {task}")
        return positions

    def cell(self, row: str, column: str) -> Cell:
        """A measured cell. Raises ``UndefinedMetricError`` with the reason where there is no finite value."""
        if row not in self.matrix.rows:
            raise UndefinedMetricError(f"row {row} was not evaluated")
        try:
            cell = self.matrix.cell(row, column)
        except KeyError as error:
            raise UndefinedMetricError(f"{column} is not evaluated in this run") from error
        if cell.value is None:
            raise UndefinedMetricError(f"{row}/{column}: {cell.reason}")
        if not math.isfinite(cell.value):
            raise UndefinedMetricError(f"{row}/{column}: the score is {cell.value}, no finite number")
        return cell

    def at(self, row: str, column: str) -> float:
        """A measured value. Raises ``UndefinedMetricError`` with the cell's reason where there is none."""
        value = self.cell(row, column).value
        assert value is not None
        return value

    def earlier_tasks(self) -> tuple[str, ...]:
        """Tasks that are not trained on in the last stage. Raises ``UndefinedMetricError`` where there are none."""
        tasks = tuple(task for task in self.tasks if self.last_learned(task) < len(self.stages) - 1)
        if not tasks:
            raise UndefinedMetricError("no task was learned before the last stage")
        return tasks

    def retention_columns(self) -> tuple[Column, ...]:
        """Retention benchmarks measured on the untouched model, the same for every row.

        Raises:
            UndefinedMetricError: There are none, or the untouched model was not evaluated.
        """
        columns = self.matrix.of_kind("retention")
        if not columns:
            raise UndefinedMetricError("the run has no retention suite")
        if BASE_ROW not in self.matrix.rows:
            raise UndefinedMetricError(f"row {BASE_ROW} was not evaluated")
        measured = tuple(column for column in columns if self.matrix.value(BASE_ROW, column.name) is not None)
        if not measured:
            raise UndefinedMetricError("no retention benchmark could be measured on the untouched model")
        return measured

    def above_chance(self) -> Scores:
        """The same run with every score s of a column of chance c as (s - c) / (1 - c): 0 guesses, 1 is perfect."""
        matrix = Matrix(self.matrix.columns)
        for row in self.matrix.rows:
            matrix.add_row(row)
            for column in self.matrix.columns:
                matrix.set(row, column.name, _above_chance(self.matrix.cell(row, column.name), column.chance))
        return Scores(matrix, self.learned)


def mean(values: Iterable[float], of_what: str) -> float:
    """Arithmetic mean.

    Args:
        values: The numbers.
        of_what: What is averaged, for the message.

    Raises:
        UndefinedMetricError: There are none.
    """
    numbers = list(values)
    if not numbers:
        raise UndefinedMetricError(f"no {of_what}")
    return math.fsum(numbers) / len(numbers)


def _above_chance(cell: Cell, chance: float) -> Cell:
    if cell.value is None:
        return cell
    if not chance < 1:
        return Cell(None, f"guessing scores {chance}: nothing lies above chance")
    return replace(cell, value=(cell.value - chance) / (1 - chance))
