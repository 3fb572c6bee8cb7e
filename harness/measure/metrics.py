"""Continual-learning metrics by names: pure functions over a matrix of scores; each gives a value or says why not.

R[i, t] is the score on task t after stage i; row ``base`` is the untouched model. Definitions follow Lopez-Paz and
Ranzato (1706.08840) for average accuracy, BWT and FWT (with the untouched model as FWT's baseline), and Chaudhry et
al. (1801.10112) for forgetting and intransigence. All work for any real scores, negative ones included. A sequence may
visit a task more than once: "first" and "last" learned below are then different stages. A metric of ``above_chance``
scores (``Scores.above_chance``) is its chance-adjusted variant.

Every function raises ``UndefinedMetricError`` with the reason where its value is not defined.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Literal

from cl_bench.harness.measure.matrix import BASE_ROW
from cl_bench.harness.measure.scores import Measure, Scores, UndefinedMetricError, mean

Past = Literal["own", "all", "every", "diagonal"]
"""Where forgetting looks for the score to compare the final one with.

``own``: the best from the task's own (first) stage to the one before last. ``all``: the best of all stages before the
last. ``every``: the best of all stages, the last included, never negative then (as in mammoth). ``diagonal``: the score
when the task was first learned (as in avalanche).
"""
NEAR_BASE = 0.02
"""How far a retention cell may lie from the untouched model's to count as near it."""
_ROUNDING = 1e-9


def acquisition(scores: Scores, stage: str) -> float:
    """R[stage, t] for the task that the stage trained on (their mean where it trained on several)."""
    return mean((scores.at(stage, task) for task in scores.learned[stage]), f"task is learned in stage {stage}")


def gain(scores: Scores, stage: str) -> float:
    """Acquisition minus the untouched model's score on the same task."""
    gains = (scores.at(stage, task) - scores.at(BASE_ROW, task) for task in scores.learned[stage])
    return mean(gains, f"task is learned in stage {stage}")


def mean_over_stages(scores: Scores, measure: Callable[[Scores, str], float]) -> float:
    """Mean of a stage's measure over all stages."""
    scores.final  # noqa: B018 - raises without stages
    return mean((measure(scores, stage) for stage in scores.stages), "stage")


def average_accuracy(scores: Scores) -> float:
    """Mean over tasks of R[last stage, t]."""
    final = scores.final
    return mean((scores.at(final, task) for task in scores.tasks), "task is learned in this run")


def average_incremental_accuracy(scores: Scores) -> float:
    """Mean over stages of the mean over the tasks learned so far of R[stage, t]."""

    def so_far(position: int, stage: str) -> float:
        tasks = [task for task in scores.tasks if scores.first_learned(task) <= position]
        return mean((scores.at(stage, task) for task in tasks), f"task is learned up to stage {stage}")

    scores.final  # noqa: B018 - raises without stages
    return mean((so_far(position, stage) for position, stage in enumerate(scores.stages)), "stage")


def task_backward_transfer(scores: Scores, task: str) -> float:
    """R[last stage, t] - R[stage that last learned t, t]."""
    _check_learned_before_the_last(scores, task)
    return scores.at(scores.final, task) - scores.at(scores.stages[scores.last_learned(task)], task)


def backward_transfer(scores: Scores) -> float:
    """BWT: mean over earlier tasks of R[last stage, t] - R[stage that last learned t, t]."""
    return mean((task_backward_transfer(scores, task) for task in scores.earlier_tasks()), "earlier task")


def task_forward_transfer(scores: Scores, task: str) -> float:
    """R[the stage before t is first learned, t] - R[base, t]."""
    first = scores.first_learned(task)
    if first == 0:
        raise UndefinedMetricError(f"{task} is learned in the first stage")
    return scores.at(scores.stages[first - 1], task) - scores.at(BASE_ROW, task)


def forward_transfer(scores: Scores) -> float:
    """FWT: mean over tasks not of the first stage of R[the stage before t is first learned, t] - R[base, t]."""
    later = [task for task in scores.tasks if scores.first_learned(task) > 0]
    if not later:
        raise UndefinedMetricError(
            "all tasks are learned in the first stage" if scores.tasks else "the run has no stages"
        )
    return mean((task_forward_transfer(scores, task) for task in later), "later task")


def task_forgetting(scores: Scores, task: str, past: Past = "own") -> float:
    """An earlier score on a task minus its final score; negative where the task still improved.

    Args:
        scores: The run.
        task: A task that is not trained on in the last stage.
        past: Which earlier score.
    """
    _check_learned_before_the_last(scores, task)
    first = scores.first_learned(task)
    rows = {
        "own": scores.stages[first:-1],
        "all": scores.stages[:-1],
        "every": scores.stages,
        "diagonal": scores.stages[first : first + 1],
    }[past]
    return max(scores.at(row, task) for row in rows) - scores.at(scores.final, task)


def forgetting(scores: Scores, past: Past = "own") -> float:
    """Mean of ``task_forgetting`` over the tasks learned before the last stage."""
    return mean((task_forgetting(scores, task, past) for task in scores.earlier_tasks()), "earlier task")


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


def joint_scores(joint: Scores) -> dict[str, float]:
    """Final scores of a run that trains on all tasks at once: what ``intransigence`` compares with, by task.

    A task without a finite score is left out.
    """
    found = {task: joint.matrix.value(joint.final, task) for task in joint.tasks if joint.final in joint.matrix.rows}
    return {task: value for task, value in found.items() if value is not None and math.isfinite(value)}


def intransigence(scores: Scores, joint: Mapping[str, float | None]) -> float:
    """Mean over tasks of joint training's score minus R[stage that first learned t, t].

    Args:
        scores: The run.
        joint: Score of joint training by task (``joint_scores``); None or a number that is not finite: there is none.
    """
    reference = {task: score for task, score in joint.items() if score is not None and math.isfinite(score)}
    missing = [task for task in scores.tasks if task not in reference]
    if missing or not scores.tasks:
        raise UndefinedMetricError(f"no joint reference for {', '.join(missing) or 'any task'}")
    learned = {task: scores.at(scores.stages[scores.first_learned(task)], task) for task in scores.tasks}
    return mean((reference[task] - score for task, score in learned.items()), "task")


def retention(scores: Scores, row: str) -> float:
    """Mean of the retention benchmarks that the untouched model has a value for, after a stage."""
    return mean((scores.at(row, column.name) for column in scores.retention_columns()), "benchmark")


def retention_change(scores: Scores, row: str) -> float:
    """Retention after a stage minus the untouched model's."""
    return retention(scores, row) - retention(scores, BASE_ROW)


def retention_near_base(scores: Scores, row: str, tau: float = NEAR_BASE) -> float:
    """Share of the row's retention cells that lie within ``tau`` of the untouched model's.

    Args:
        scores: The run.
        row: A row.
        tau: Largest distance, as a fraction; a benchmark whose one item weighs more cannot be judged by it.
    """
    near = [_is_near_base(scores, row, column.name, tau) for column in scores.retention_columns()]
    return mean(near, "benchmark")


def measure(compute: Callable[[], float], remark: str = "") -> Measure:
    """A metric's value with a remark on what it leaves out, or the reason why it is undefined."""
    try:
        return Measure(compute(), remark)
    except UndefinedMetricError as error:
        return Measure(None, str(error))


def _is_near_base(scores: Scores, row: str, column: str, tau: float) -> bool:
    cells = scores.cell(row, column), scores.cell(BASE_ROW, column)
    n = min(cell.counts.get("n", scores.matrix.column(column).n) for cell in cells)
    if n < 1 or 1 / n > tau:
        raise UndefinedMetricError(f"{column} has {n:g} items: one of them weighs more than {tau:g}")
    return abs(scores.at(row, column) - scores.at(BASE_ROW, column)) <= tau + _ROUNDING


def _check_learned_before_the_last(scores: Scores, task: str) -> None:
    if scores.last_learned(task) == len(scores.stages) - 1:
        raise UndefinedMetricError(f"{task} is learned in the last stage")
