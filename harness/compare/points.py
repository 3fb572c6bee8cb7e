"""Points of shift against forgetting: checkpoints, each with its shift and its changes against the same row 0."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cl_bench.harness.compare.measures import shift_of
from cl_bench.harness.files import canonical_json
from cl_bench.harness.measure.matrix import BASE_ROW, Column, Matrix
from cl_bench.harness.measure.run_metrics import current_metrics
from cl_bench.harness.measure.scores import Measure
from cl_bench.harness.planned_stages import planned_stages
from cl_bench.harness.run_directory import RunView

_FLOOR_SHARE = 0.5
_TWO_ERRORS = 2.0
_TWICE = "the same adaptation as another run's first stage"


@dataclass(frozen=True, slots=True)
class Point:
    """One checkpoint. All numbers compare it with the untouched model.

    Attributes:
        run: Its run directory.
        method: The method's label.
        model: The student.
        task: What the row was trained on.
        row: Name of the row.
        primary: Whether it is an adaptation of the untouched model: a run's first stage.
        seed: The run's seed.
        shift: Forward KL from the untouched model, nats per token, on prompts of the row's task.
        retention_change: Mean retention minus the untouched model's, as a fraction.
        gain: Score on the row's task minus the untouched model's, as a fraction.
        log_budget: Natural logarithm of learning rate times optimizer steps so far, or why there is none.
        at_floor: Whether most retention cells that could fall have fallen to what guessing scores.
    """

    run: Path
    method: str
    model: str
    task: str
    row: str
    primary: bool
    seed: int
    shift: float
    retention_change: Measure
    gain: Measure
    log_budget: Measure
    at_floor: bool

    @property
    def run_cluster(self) -> str:
        """Points of one run stand or fall together."""
        return str(self.run)

    @property
    def task_cluster(self) -> str:
        """Points of one model and task share the untouched model and the evaluated items."""
        return f"{self.model} x {self.task}"


@dataclass(frozen=True, slots=True)
class Points:
    """Points, and what became none.

    Attributes:
        points: In the order of runs and stages.
        left_out: Number of rows by reason.
    """

    points: tuple[Point, ...]
    left_out: Mapping[str, int]


def points_of(views: Sequence[RunView], names: Mapping[Path, str], marked: Iterable[Path] = ()) -> Points:
    """The points of all rows after the untouched model's.

    Two runs whose first stages are the same adaptation (same spec of method, model, task and seed) give one primary
    point, not two.

    Args:
        views: Runs, each once.
        names: Label of each run's method, by directory.
        marked: Runs that are not comparable with the others; they give no points.
    """
    apart = set(marked)
    found: list[Point] = []
    left_out: dict[str, int] = {}
    seen: set[str] = set()
    for view in views:
        for index, (row, parts) in enumerate(planned_stages(view.spec), start=1):
            first = canonical_json([_adaptation(view), parts]) if index == 1 else ""
            shift = _shift(view, row, "not comparable" if view.directory in apart else _TWICE if first in seen else "")
            if shift.value is None:
                left_out[shift.reason] = left_out.get(shift.reason, 0) + 1
                continue
            seen.update({first} - {""})
            found.append(_point(view, names[view.directory], index, row, shift.value))
    return Points(tuple(found), left_out)


def _shift(view: RunView, row: str, reason: str) -> Measure:
    """The row's shift; none, for this reason, where there is a reason."""
    if reason:
        return Measure(None, reason)
    if row not in view.stages:
        return Measure(None, f"the run {view.status.get('state')} before")
    shift = shift_of(view, row)
    return shift if shift.value is not None else Measure(None, shift.reason.removeprefix(f"{row}: "))


def _point(view: RunView, method: str, index: int, row: str, shift: float) -> Point:
    measures: Mapping[str, Any] = current_metrics(view)["stages"].get(row, {})
    rows = [name for name, _ in planned_stages(view.spec)]
    return Point(
        run=view.directory,
        method=method,
        model=view.spec.model.name,
        task="+".join(dict.fromkeys(part.task for part in dict(planned_stages(view.spec))[row])),
        row=row,
        primary=index == 1,
        seed=view.spec.seed,
        shift=shift,
        retention_change=_finite(measures.get("retention_change")),
        gain=_finite(measures.get("gain")),
        log_budget=_log_budget(view, rows[:index]),
        at_floor=_at_floor(view.matrix, row),
    )


def _adaptation(view: RunView) -> dict[str, Any]:
    """What decides a first stage: the spec without what only later stages, other tasks or the suite depend on."""
    payload = view.spec.hash_payload()
    evaluation = ("sequence", "tasks", "suite", "evaluation", "evaluation_batch_size", "eval_every")
    return {name: value for name, value in payload.items() if name not in evaluation}


def _finite(document: Mapping[str, Any] | None) -> Measure:
    value = (document or {}).get("value")
    if value is None:
        return Measure(None, (document or {}).get("reason", "not computed"))
    return Measure(value) if math.isfinite(value) else Measure(None, f"the value is {value}, no finite number")


def _log_budget(view: RunView, rows: Sequence[str]) -> Measure:
    settings = view.spec.method.settings if view.spec.method is not None else {}
    rate, adaptations = settings.get("learning_rate"), view.adaptations()
    if not isinstance(rate, int | float) or rate <= 0:
        return Measure(None, "a method without a learning rate")
    steps = sum(adaptations[row]["steps"] for row in rows if row in adaptations)
    return Measure(math.log(rate * steps)) if steps else Measure(None, "no optimizer step was counted")


def _at_floor(matrix: Matrix, row: str) -> bool:
    """Whether over half of the retention cells that lay above guessing before do not any more."""
    if row not in matrix.rows or BASE_ROW not in matrix.rows:
        return False
    above = [column for column in matrix.of_kind("retention") if _above_guessing(matrix, BASE_ROW, column)]
    fallen = [column for column in above if not _above_guessing(matrix, row, column)]
    return bool(above) and len(fallen) > _FLOOR_SHARE * len(above)


def _above_guessing(matrix: Matrix, row: str, column: Column) -> bool:
    """Whether a cell lies above guessing by more than two standard errors of guessing."""
    cell = matrix.cell(row, column.name)
    n = cell.counts.get("n", column.n)
    if cell.value is None or n < 1:
        return False
    return cell.value > column.chance + _TWO_ERRORS * math.sqrt(column.chance * (1 - column.chance) / n)
