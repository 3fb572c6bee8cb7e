"""What a comparison says about one run: what it learned and forgot, how far it moved, what it cost."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from cl_bench.harness.files import read_object
from cl_bench.harness.measure.metrics import intransigence, joint_scores, measure
from cl_bench.harness.measure.run_cost import run_cost
from cl_bench.harness.measure.run_metrics import current_metrics
from cl_bench.harness.measure.scores import Measure, Scores
from cl_bench.harness.planned_stages import learned_columns
from cl_bench.harness.run_directory import SHIFT, RunView

Unit = Literal["share", "nats", "pflop", "seconds", "share per pflop", "bytes"]


@dataclass(frozen=True, slots=True)
class MeasureInfo:
    """How a measure is called and read.

    Attributes:
        label: Name in tables.
        unit: What its numbers are.
        definition: One clause.
        difference: Whether it is a difference, shown with its sign.
        tested: Whether methods are compared in it (``cl_bench.harness.compare.differences``).
    """

    label: str
    unit: Unit
    definition: str
    difference: bool = False
    tested: bool = False


MEASURES: dict[str, MeasureInfo] = {
    "acquisition": MeasureInfo("acquired", "share", "score on each task right after learning it, mean over stages"),
    "gain": MeasureInfo("gain", "share", "acquired minus the untouched model's score", True, True),
    "retention_change": MeasureInfo(
        "ret. change",
        "share",
        "retention suite's mean after the last stage minus the untouched model's",
        True,
        True,
    ),
    "backward_transfer": MeasureInfo(
        "BWT", "share", "score at the end minus score when learned, earlier tasks", True, True
    ),
    "forgetting": MeasureInfo(
        "forgetting", "share", "best score since learning minus final score, earlier tasks", True, True
    ),
    "intransigence": MeasureInfo(
        "intransigence", "share", "score of joint training with the same seed minus score when learned", True
    ),
    "shift": MeasureInfo(
        "shift",
        "nats",
        "forward KL per token from the untouched model to the last stage, on that stage's task",
        False,
        True,
    ),
    "pflops": MeasureInfo("FLOP", "pflop", "operations of all adaptations, data generation and teachers included"),
    "seconds": MeasureInfo("seconds", "seconds", "wall time of all adaptations, lost work of resumed ones included"),
}
"""Measures of the table, in order."""
COSTS: dict[str, MeasureInfo] = {
    "gain_per_pflop": MeasureInfo("gain per PFLOP", "share per pflop", "gain for the operations of adaptation", True),
    "retention_change_per_pflop": MeasureInfo(
        "ret. change per PFLOP", "share per pflop", "retention change for the operations of adaptation", True
    ),
    "total_seconds": MeasureInfo("all s", "seconds", "wall time of all processes; what came from a cache took none"),
    "peak_memory": MeasureInfo("peak memory", "bytes", "largest resident set of any of them"),
}
"""Measures of the table of costs besides operations by part."""
_FROM_METRICS = ("acquisition", "gain", "retention_change", "backward_transfer", "forgetting")
_NO_JOINT = "no joint run of the same seed among the runs compared"


@dataclass(frozen=True, slots=True)
class RunMeasures:
    """The measures of one run.

    Attributes:
        measures: Those of ``MEASURES`` and ``COSTS``, each a value or a reason.
        parts: Operations by part (data generation, training, teacher, ...), in units of 1e15; evaluation among them.
        metrics: The run's ``metrics.json``.
    """

    measures: Mapping[str, Measure]
    parts: Mapping[str, float]
    metrics: Mapping[str, Any]


def measures_of(view: RunView, joint: RunView | None) -> RunMeasures:
    """All measures of a run.

    Args:
        view: The run.
        joint: Joint training on the same tasks with the same seed, which intransigence is measured against, or None.
    """
    metrics = current_metrics(view)
    cost = run_cost(view, metrics)
    found = {name: _measure(metrics["metrics"].get(name)) for name in _FROM_METRICS}
    found["intransigence"] = _intransigence(view, joint)
    found["shift"] = _last_shift(view)
    adapted = bool(view.adaptations())
    found["pflops"] = Measure(cost["total"]["adaptation_pflops"]) if adapted else Measure(None, _untrained(view))
    found["seconds"] = _adaptation_seconds(view)
    for name, ratio in cost["per_pflop"].items():
        found[f"{name}_per_pflop"] = _measure(ratio)
    found["total_seconds"] = Measure(cost["seconds"]) if cost["seconds"] else Measure(None, "not recorded")
    peak = cost["peak_memory_bytes"]
    found["peak_memory"] = Measure(float(peak)) if peak else Measure(None, "not recorded")
    return RunMeasures(found, cost["total"]["pflops"], metrics)


def shift_of(view: RunView, row: str) -> Measure:
    """Forward KL from the untouched model to a row, on the prompts of the task that the row was trained on."""
    path = view.stages[row] / SHIFT
    if not path.is_file():
        return Measure(None, f"{row}: no shift was measured")
    document = read_object(path)
    value = document.get("forward_kl_trained")
    if value is None:
        primary = document.get("primary")
        reason = primary.get("reason") if isinstance(primary, Mapping) else None
        return Measure(None, f"{row}: {reason or 'no value was recorded'}")
    if not isinstance(value, int | float) or not math.isfinite(value):
        return Measure(None, f"{row}: the shift is {value}, no finite number")
    return Measure(float(value))


def _last_shift(view: RunView) -> Measure:
    stages = list(learned_columns(view.spec))
    if not stages:
        return Measure(None, "the run has no stages")
    if stages[-1] not in view.stages:
        return Measure(
            None, f"stage {stages[-1]} is not finished: {view.status.get('reason') or view.status.get('state')}"
        )
    return shift_of(view, stages[-1])


def _intransigence(view: RunView, joint: RunView | None) -> Measure:
    if joint is None:
        return Measure(None, _NO_JOINT)
    if joint.directory == view.directory:
        return Measure(None, "joint training is what it is measured against")
    reference = joint_scores(Scores(joint.matrix, learned_columns(joint.spec)))
    return measure(lambda: intransigence(Scores(view.matrix, learned_columns(view.spec)), reference))


def _adaptation_seconds(view: RunView) -> Measure:
    phases = [
        seconds
        for session in view.manifest.get("sessions", [])
        for phase, seconds in session["phase_seconds"].items()
        if phase.rpartition("/")[2] == "adapt"
    ]
    return Measure(sum(phases)) if phases else Measure(None, _untrained(view))


def _untrained(view: RunView) -> str:
    return "no stage was trained" if view.spec.bound != "base" else "the run has no stages"


def _measure(document: Mapping[str, Any] | None) -> Measure:
    """A measure of a JSON document; what is no finite number has no value."""
    if document is None:
        return Measure(None, "not computed by this version")
    value = document.get("value")
    if value is None:
        return Measure(None, document.get("reason", "no value was recorded"))
    if not math.isfinite(value):
        return Measure(None, f"the value is {value}, no finite number")
    return Measure(float(value), document.get("reason", ""))
