"""Continual-learning metrics by names: pure functions over a matrix of scores; each gives a value or a reason.

R[i, t] is the score on task t after stage i; row ``base`` is the untouched model. Definitions follow Lopez-Paz and
Ranzato (1706.08840) for average accuracy, BWT and FWT (with the untouched model as FWT's baseline), and Chaudhry et
al. (1801.10112) for forgetting and intransigence. All work for any real scores, negative ones included. A sequence may
visit a task more than once: "first" and "last" learned below are then different stages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from cl_bench.harness.measure.matrix import BASE_ROW, Column, Matrix

METRICS_VERSION = 1


class UndefinedMetricError(Exception):
    """A metric has no value; the message says why."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A metric's value, or the reason why it has none.

    Attributes:
        value: The value, or None.
        reason: Why there is none; what was left out where there is one.
    """

    value: float | None
    reason: str = ""

    def to_json(self) -> dict[str, Any]:
        """``{"value": x}`` or ``{"value": x, "reason": text}``."""
        return {"value": self.value, "reason": self.reason} if self.reason else {"value": self.value}


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
        """The last stage."""
        if not self.learned:
            raise UndefinedMetricError("the run has no stages")
        return self.stages[-1]

    def first_learned(self, task: str) -> int:
        """Position of the stage that first trains on the task."""
        return min(self._positions(task))

    def last_learned(self, task: str) -> int:
        """Position of the stage that last trains on the task."""
        return max(self._positions(task))

    def at(self, row: str, column: str) -> float:
        """A measured value. Raises ``UndefinedMetricError`` with the cell's reason where there is none."""
        if row not in self.matrix.rows:
            raise UndefinedMetricError(f"row {row} was not evaluated")
        try:
            cell = self.matrix.cell(row, column)
        except KeyError as error:
            raise UndefinedMetricError(f"{column} is not evaluated in this run") from error
        if cell.value is None:
            raise UndefinedMetricError(f"{row}/{column}: {cell.reason}")
        return cell.value

    def earlier_tasks(self) -> tuple[str, ...]:
        """Tasks that are not trained on in the last stage. Raises where there are none."""
        tasks = tuple(task for task in self.tasks if self.last_learned(task) < len(self.stages) - 1)
        if not tasks:
            raise UndefinedMetricError("no task was learned before the last stage")
        return tasks

    def _positions(self, task: str) -> list[int]:
        return [position for position, stage in enumerate(self.stages) if task in self.learned[stage]]


def acquisition(scores: Scores, stage: str) -> float:
    """R[stage, t] for the task that the stage trained on (their mean where it trained on several)."""
    return fmean(scores.at(stage, task) for task in scores.learned[stage])


def gain(scores: Scores, stage: str) -> float:
    """Acquisition minus the untouched model's score on the same task."""
    return fmean(scores.at(stage, task) - scores.at(BASE_ROW, task) for task in scores.learned[stage])


def mean_over_stages(scores: Scores, measure: Callable[[Scores, str], float]) -> float:
    """Mean of a stage's measure over all stages."""
    if not scores.stages:
        raise UndefinedMetricError("the run has no stages")
    return fmean(measure(scores, stage) for stage in scores.stages)


def average_accuracy(scores: Scores) -> float:
    """Mean over tasks of R[last stage, t]."""
    final = scores.final
    return fmean(scores.at(final, task) for task in scores.tasks)


def average_incremental_accuracy(scores: Scores) -> float:
    """Mean over stages of the mean over the tasks learned so far of R[stage, t]."""

    def so_far(position: int, stage: str) -> float:
        return fmean(scores.at(stage, task) for task in scores.tasks if scores.first_learned(task) <= position)

    if not scores.stages:
        raise UndefinedMetricError("the run has no stages")
    return fmean(so_far(position, stage) for position, stage in enumerate(scores.stages))


def backward_transfer(scores: Scores) -> float:
    """BWT: mean over earlier tasks of R[last stage, t] - R[stage that last learned t, t]."""
    return fmean(
        scores.at(scores.final, task) - scores.at(scores.stages[scores.last_learned(task)], task)
        for task in scores.earlier_tasks()
    )


def forward_transfer(scores: Scores) -> float:
    """FWT: mean over tasks not of the first stage of R[the stage before t is first learned, t] - R[base, t]."""
    later = [(task, scores.first_learned(task)) for task in scores.tasks if scores.first_learned(task) > 0]
    if not later:
        raise UndefinedMetricError("all tasks are learned in the first stage")
    return fmean(scores.at(scores.stages[first - 1], task) - scores.at(BASE_ROW, task) for task, first in later)


def task_forgetting(scores: Scores, task: str, since_learned: bool = False, with_final: bool = False) -> float:
    """Best earlier score on a task minus its final score; may be negative.

    Args:
        scores: The run.
        task: The task.
        since_learned: Look for the best from the stage that first learned the task on, instead of from the first stage.
        with_final: The last stage may be the best too (never negative then, as in mammoth).
    """
    begin = scores.first_learned(task) if since_learned else 0
    earlier = scores.stages[begin:] if with_final else scores.stages[begin:-1]
    if not earlier:
        raise UndefinedMetricError(f"{task} is first learned in the last stage")
    return max(scores.at(stage, task) for stage in earlier) - scores.at(scores.final, task)


def forgetting(scores: Scores, since_learned: bool = False, with_final: bool = False) -> float:
    """Mean of ``task_forgetting`` over the tasks learned before the last stage."""
    return fmean(task_forgetting(scores, task, since_learned, with_final) for task in scores.earlier_tasks())


def forgetting_matrix(scores: Scores) -> dict[str, dict[str, float]]:
    """R[stage that first learned t, t] - R[stage, t] by stage, for the tasks learned before it (as in avalanche)."""
    return {
        stage: {
            task: scores.at(scores.stages[scores.first_learned(task)], task) - scores.at(stage, task)
            for task in scores.tasks
            if scores.first_learned(task) < position
        }
        for position, stage in enumerate(scores.stages)
    }


def intransigence(scores: Scores, joint: Mapping[str, float]) -> float:
    """Mean over tasks of joint training's score minus R[stage that first learned t, t]."""
    missing = [task for task in scores.tasks if task not in joint]
    if missing or not scores.tasks:
        raise UndefinedMetricError(f"no joint reference for {', '.join(missing) or 'any task'}")
    return fmean(joint[task] - scores.at(scores.stages[scores.first_learned(task)], task) for task in scores.tasks)


def retention(scores: Scores, row: str) -> float:
    """Mean of the retention benchmarks that the untouched model has a value for, after a stage."""
    return fmean(scores.at(row, column.name) for column in retention_columns(scores))


def retention_above_chance(scores: Scores, row: str) -> float:
    """Mean of (score - chance) / (1 - chance) over the same benchmarks: 0 is guessing, 1 is perfect."""
    return fmean(
        (scores.at(row, column.name) - column.chance) / (1 - column.chance) for column in retention_columns(scores)
    )


def retention_change(scores: Scores, row: str) -> float:
    """Retention after a stage minus the untouched model's."""
    return retention(scores, row) - retention(scores, BASE_ROW)


def retention_columns(scores: Scores) -> tuple[Column, ...]:
    """Retention benchmarks measured on the untouched model, the same for every row. Raises where there are none."""
    columns = scores.matrix.of_kind("retention")
    if not columns:
        raise UndefinedMetricError("the run has no retention suite")
    if BASE_ROW not in scores.matrix.rows:
        raise UndefinedMetricError("row base was not evaluated")
    measured = tuple(column for column in columns if scores.matrix.value(BASE_ROW, column.name) is not None)
    if not measured:
        raise UndefinedMetricError("no retention benchmark could be measured on the untouched model")
    return measured


def measure(compute: Callable[[], float], remark: str = "") -> Measure:
    """A metric's value with a remark on what it leaves out, or the reason why it is undefined."""
    try:
        return Measure(compute(), remark)
    except UndefinedMetricError as error:
        return Measure(None, str(error))


def run_metrics(matrix: Matrix, learned: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """The document ``metrics.json``.

    Args:
        matrix: The run's matrix; not changed.
        learned: Columns that each stage trained on, in order, planned stages included.
    """
    scores = Scores(matrix, learned)
    left_out = _left_out(matrix)
    final = scores.final if learned else BASE_ROW
    document = {
        "acquisition": measure(lambda: mean_over_stages(scores, acquisition)),
        "gain": measure(lambda: mean_over_stages(scores, gain)),
        "retention": measure(lambda: retention(scores, final), left_out),
        "retention_above_chance": measure(lambda: retention_above_chance(scores, final), left_out),
        "retention_change": measure(lambda: retention_change(scores, final), left_out),
        "average_accuracy": measure(lambda: average_accuracy(scores)),
        "average_incremental_accuracy": measure(lambda: average_incremental_accuracy(scores)),
        "backward_transfer": measure(lambda: backward_transfer(scores)),
        "forward_transfer": measure(lambda: forward_transfer(scores)),
        "forgetting": measure(lambda: forgetting(scores)),
        "forgetting_since_learned": measure(lambda: forgetting(scores, since_learned=True)),
    }
    stages = {BASE_ROW: _row_measures(scores, BASE_ROW, left_out)}
    stages.update((stage, _row_measures(scores, stage, left_out)) for stage in scores.stages)
    return {
        "schema_version": METRICS_VERSION,
        "metrics": {name: value.to_json() for name, value in document.items()},
        "stages": {row: {name: value.to_json() for name, value in found.items()} for row, found in stages.items()},
    }


def _row_measures(scores: Scores, row: str, left_out: str) -> dict[str, Measure]:
    found = {
        "retention": measure(lambda: retention(scores, row), left_out),
        "retention_above_chance": measure(lambda: retention_above_chance(scores, row), left_out),
        "retention_change": measure(lambda: retention_change(scores, row), left_out),
    }
    if row == BASE_ROW:
        return found
    trained = {
        "acquisition": measure(lambda: acquisition(scores, row)),
        "gain": measure(lambda: gain(scores, row)),
    }
    return {**trained, **found}


def _left_out(matrix: Matrix) -> str:
    if BASE_ROW not in matrix.rows:
        return ""
    absent: Iterable[tuple[str, str]] = (
        (column.name, matrix.cell(BASE_ROW, column.name).reason)
        for column in matrix.of_kind("retention")
        if matrix.value(BASE_ROW, column.name) is None
    )
    return "; ".join(f"without {name}: {reason}" for name, reason in absent)
