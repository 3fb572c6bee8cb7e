"""The document ``metrics.json``: every metric of a run, of each of its rows and of each task, a value or a reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cl_bench.harness.measure import metrics as m
from cl_bench.harness.measure.matrix import BASE_ROW, Matrix
from cl_bench.harness.measure.metrics import measure
from cl_bench.harness.measure.null_forgetting import (
    RESAMPLES,
    backward_transfer_under_no_change,
    forgetting_under_no_change,
)
from cl_bench.harness.measure.scores import Measure, Scores, UndefinedMetricError
from cl_bench.harness.measure.statistics.power import detectable_change
from cl_bench.harness.planned_stages import learned_columns
from cl_bench.harness.run_directory import RunView

METRICS_VERSION = 2
NEEDS_JOINT = "it takes a run of joint training to compare with: see cl-bench compare"


def run_metrics(matrix: Matrix, learned: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """The document ``metrics.json``.

    Args:
        matrix: The run's matrix; not changed.
        learned: Columns that each stage trained on, in order, planned stages included.
    """
    scores = Scores(matrix, learned)
    adjusted, left_out = scores.above_chance(), _left_out(matrix)
    rows = (BASE_ROW, *scores.stages)
    return {
        "schema_version": METRICS_VERSION,
        "parameters": {"near_base": m.NEAR_BASE, "resamples": RESAMPLES},
        "metrics": _to_json(_of_run(scores, adjusted, left_out)),
        "stages": {row: _to_json(_of_row(scores, adjusted, row, left_out)) for row in rows},
        "tasks": {task: _to_json(_of_task(scores, task)) for task in _sequence_tasks(scores)},
    }


def current_metrics(view: RunView) -> Mapping[str, Any]:
    """The run's ``metrics.json``, or the same from its matrix where it is absent or written by an earlier version."""
    if view.metrics.get("schema_version") == METRICS_VERSION:
        return view.metrics
    return run_metrics(view.matrix, learned_columns(view.spec))


def _of_run(scores: Scores, adjusted: Scores, left_out: str) -> dict[str, Measure]:
    final = scores.final if scores.stages else BASE_ROW
    found = {
        "acquisition": measure(lambda: m.mean_over_stages(scores, m.acquisition)),
        "gain": measure(lambda: m.mean_over_stages(scores, m.gain)),
        **_retention(scores, adjusted, final, left_out),
        "retention_change_detectable": measure(lambda: _detectable_change(scores, final), left_out),
        "average_accuracy": measure(lambda: m.average_accuracy(scores)),
        "average_incremental_accuracy": measure(lambda: m.average_incremental_accuracy(scores)),
        "backward_transfer": measure(lambda: m.backward_transfer(scores)),
        "backward_transfer_under_no_change": backward_transfer_under_no_change(scores),
        "forward_transfer": measure(lambda: m.forward_transfer(scores)),
        "forgetting": measure(lambda: m.forgetting(scores)),
        "forgetting_under_no_change": forgetting_under_no_change(scores),
        "forgetting_all_past": measure(lambda: m.forgetting(scores, "all")),
        "forgetting_diagonal": measure(lambda: m.forgetting(scores, "diagonal")),
        "intransigence": Measure(None, NEEDS_JOINT),
    }
    above: dict[str, Callable[[], float]] = {
        "acquisition": lambda: m.mean_over_stages(adjusted, m.acquisition),
        "gain": lambda: m.mean_over_stages(adjusted, m.gain),
        "average_accuracy": lambda: m.average_accuracy(adjusted),
        "backward_transfer": lambda: m.backward_transfer(adjusted),
        "forward_transfer": lambda: m.forward_transfer(adjusted),
        "forgetting": lambda: m.forgetting(adjusted),
    }
    return found | {f"{name}_above_chance": measure(compute) for name, compute in above.items()}


def _of_row(scores: Scores, adjusted: Scores, row: str, left_out: str) -> dict[str, Measure]:
    found = _retention(scores, adjusted, row, left_out)
    if row == BASE_ROW:
        return found
    trained = {
        "acquisition": measure(lambda: m.acquisition(scores, row)),
        "acquisition_above_chance": measure(lambda: m.acquisition(adjusted, row)),
        "gain": measure(lambda: m.gain(scores, row)),
        "gain_above_chance": measure(lambda: m.gain(adjusted, row)),
    }
    return trained | found


def _retention(scores: Scores, adjusted: Scores, row: str, left_out: str) -> dict[str, Measure]:
    return {
        "retention": measure(lambda: m.retention(scores, row), left_out),
        "retention_above_chance": measure(lambda: m.retention(adjusted, row), left_out),
        "retention_change": measure(lambda: m.retention_change(scores, row), left_out),
        "retention_change_above_chance": measure(lambda: m.retention_change(adjusted, row), left_out),
        "retention_near_base": measure(lambda: m.retention_near_base(scores, row), left_out),
    }


def _of_task(scores: Scores, task: str) -> dict[str, Measure]:
    def own() -> str:
        return scores.stages[scores.first_learned(task)]

    return {
        "acquisition": measure(lambda: scores.at(own(), task)),
        "gain": measure(lambda: scores.at(own(), task) - scores.at(BASE_ROW, task)),
        "final": measure(lambda: scores.at(scores.final, task)),
        "backward_transfer": measure(lambda: m.task_backward_transfer(scores, task)),
        "forward_transfer": measure(lambda: m.task_forward_transfer(scores, task)),
        "forgetting": measure(lambda: m.task_forgetting(scores, task)),
        "forgetting_all_past": measure(lambda: m.task_forgetting(scores, task, "all")),
        "forgetting_diagonal": measure(lambda: m.task_forgetting(scores, task, "diagonal")),
    }


def _sequence_tasks(scores: Scores) -> tuple[str, ...]:
    """Every task of the sequence; one that is evaluated and that no stage trains on is among them."""
    return tuple(dict.fromkeys((*scores.tasks, *(column.name for column in scores.matrix.of_kind("sequence")))))


def _detectable_change(scores: Scores, final: str) -> float:
    """Smallest mean retention change that the items could show, if the answers of the two rows were independent."""
    variances = []
    for column in scores.retention_columns():
        for row in (BASE_ROW, final):
            share, n = scores.at(row, column.name), scores.cell(row, column.name).counts.get("n", 0)
            if n < 1 or not 0 <= share <= 1:
                raise UndefinedMetricError(f"{row}/{column.name} is no share of a known number of items")
            variances.append(share * (1 - share) / n)
    if not any(variances):
        raise UndefinedMetricError("every benchmark is all right or all wrong in both rows: no spread to judge by")
    return detectable_change(sum(variances) ** 0.5 / len(scores.retention_columns()))


def _left_out(matrix: Matrix) -> str:
    if BASE_ROW not in matrix.rows:
        return ""
    absent = {
        column.name: matrix.cell(BASE_ROW, column.name).reason
        for column in matrix.of_kind("retention")
        if matrix.value(BASE_ROW, column.name) is None
    }
    return "; ".join(f"without {name}: {reason}" for name, reason in absent.items())


def _to_json(measures: Mapping[str, Measure]) -> dict[str, Any]:
    return {name: found.to_json() for name, found in measures.items()}
