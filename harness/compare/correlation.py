"""Shift against what was forgotten and learned: correlations over points, with the checks that a claim has to pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from cl_bench.harness.compare.points import Point, Points
from cl_bench.harness.compare.regression import Quadratic, group_slopes, quadratic, within_groups, without_each
from cl_bench.harness.measure.correlation import (
    ClusterIntervals,
    Correlation,
    clustered,
    correlate,
    partial_pearson,
    resamples,
)
from cl_bench.harness.measure.metrics import measure
from cl_bench.harness.measure.scores import Measure, UndefinedMetricError
from cl_bench.harness.measure.statistics.intervals import Interval

Outcome = Literal["retention_change", "gain"]
Kind = Literal["primary", "secondary"]
RUNS, TASKS = "whole runs", "model x task"
BUDGET, ACQUISITION = "log(learning rate x steps)", "gain"
CURVED = 0.05
"""P value of the quadratic term below which the relation is not called linear."""
PERCENTILE_POINTS = 100
"""Fewest points of the plain percentile interval; of 30 independent ones its nominal 95 % cover 92 to 93 %."""
_FEWEST_POINTS = 3


@dataclass(frozen=True, slots=True)
class Linearity:
    """Whether a line describes the points that have room to fall.

    Attributes:
        floor_points: Points left out: most of their retention cells score what guessing scores.
        curve: The parabola's fit, or None.
        reason: Why there is none.
    """

    floor_points: int
    curve: Quadratic | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Relation:
    """Shift against one outcome over one set of points.

    Attributes:
        kind: Primary: adaptations of the untouched model. Secondary: all rows, each against the untouched model.
        outcome: What shift is related to.
        points: The points that have both.
        left_out: Number of rows that have not, by reason.
        pearson: Pearson's r.
        pearson_p: Its two-sided p value if the points were independent: a cross-check, no evidence.
        spearman: Spearman's rho.
        slope: Least-squares slope, per nat.
        intercept: Least-squares intercept.
        percentile: Plain percentile interval of r over points as if they were independent: for comparison with other
            programs; None for fewer than ``PERCENTILE_POINTS``, of which it covers too little.
        intervals: Cluster bootstrap intervals, by what a cluster is: whole runs, or model x task.
        within_methods: Slope with the methods' means taken off (method fixed effects).
        within_pearson: Pearson's r of the same.
        by_method: Each method's own slope; None for fewer than three points.
        without_method: Pearson's r without each method.
        controlled: Partial correlation by control.
        linearity: The quadratic term, points on the floor left out.
        claim: Whether the interval over whole runs supports a claim about these models and tasks.
        beyond: Whether the interval over model x task supports one about others too.
        reasons: Why there is no claim, or what limits it.
    """

    kind: Kind
    outcome: Outcome
    points: tuple[Point, ...]
    left_out: Mapping[str, int]
    pearson: Measure
    pearson_p: float | None
    spearman: Measure
    slope: Measure
    intercept: Measure
    percentile: Interval | None
    intervals: Mapping[str, ClusterIntervals]
    within_methods: Measure
    within_pearson: Measure
    by_method: Mapping[str, float | None]
    without_method: Mapping[str, float | None]
    controlled: Mapping[str, Measure]
    linearity: Linearity
    claim: bool
    beyond: bool
    reasons: tuple[str, ...]


def relations(points: Points) -> tuple[Relation, ...]:
    """Primary and secondary relations of shift with retention change and with gain; secondary where there are more."""
    kinds: list[Kind] = ["primary"]
    if any(not point.primary for point in points.points):
        kinds.append("secondary")
    outcomes: tuple[Outcome, ...] = ("retention_change", "gain")
    return tuple(relate(points, kind, outcome) for kind in kinds for outcome in outcomes)


def relate(points: Points, kind: Kind, outcome: Outcome) -> Relation:
    """Relate shift to one outcome.

    Args:
        points: All points.
        kind: Which of them.
        outcome: ``retention_change`` or ``gain``.
    """
    chosen = [point for point in points.points if kind == "secondary" or point.primary]
    used = tuple(point for point in chosen if _outcome(point, outcome).value is not None)
    missing = Counter(_outcome(point, outcome).reason for point in chosen if _outcome(point, outcome).value is None)
    x, y = _values(used, outcome)
    methods = [point.method for point in used]
    intervals = {RUNS: _clustered(used, x, y, _run), TASKS: _clustered(used, x, y, _task)}
    found, undefined = _correlation(x, y)
    r = _of(found, undefined, lambda of: of.pearson)
    within = measure(lambda: within_groups(x, y, methods)[0])
    without = without_each(x, y, methods)
    claim, beyond, reasons = _verdict(r, within, without, intervals)
    return Relation(
        kind=kind,
        outcome=outcome,
        points=used,
        left_out=dict(Counter(points.left_out) + missing),
        pearson=r,
        pearson_p=None if found is None else found.pearson_p,
        spearman=_of(found, undefined, lambda of: of.spearman),
        slope=_of(found, undefined, lambda of: of.slope),
        intercept=_of(found, undefined, lambda of: of.intercept),
        percentile=found.pearson_interval if found is not None and found.n >= PERCENTILE_POINTS else None,
        intervals=intervals,
        within_methods=within,
        within_pearson=measure(lambda: within_groups(x, y, methods)[1]),
        by_method=group_slopes(x, y, methods),
        without_method=without,
        controlled=_controlled(used, outcome),
        linearity=_linearity(used, outcome),
        claim=claim,
        beyond=beyond,
        reasons=reasons,
    )


def _verdict(
    r: Measure, within: Measure, without: Mapping[str, float | None], intervals: Mapping[str, ClusterIntervals]
) -> tuple[bool, bool, tuple[str, ...]]:
    """Whether there is a claim about these models and tasks, whether one beyond them, and why not."""
    if r.value is None:
        return False, False, (f"undefined: {r.reason}",)
    against = []
    if within.value is None:
        against.append(f"no slope within methods: {within.reason}")
    elif within.value * r.value < 0:
        against.append("the sign changes within methods")
    turning = [method for method, rest in without.items() if rest is not None and rest * r.value < 0]
    if turning:
        against.append(f"the sign changes without {' or without '.join(turning)}")
    lacking = {name: _lacking(found) for name, found in intervals.items()}
    claim = not against and not lacking[RUNS]
    beyond = claim and not lacking[TASKS]
    reasons = [*against, *(f"over {name}, {why}" for name, why in lacking.items() if why)]
    return claim, beyond, tuple(reasons)


def _lacking(found: ClusterIntervals) -> str:
    if found.pearson is None:
        return found.reason
    low, high = found.pearson
    return "the interval holds 0" if low <= 0 <= high else ""


def _clustered(
    points: Sequence[Point], x: list[float], y: list[float], cluster: Callable[[Point], str]
) -> ClusterIntervals:
    names = [cluster(point) for point in points]
    try:
        return clustered(x, y, names)
    except UndefinedMetricError as error:
        return ClusterIntervals(len(set(names)), None, None, str(error))


def _controlled(points: Sequence[Point], outcome: Outcome) -> dict[str, Measure]:
    found = {BUDGET: measure(lambda: _partial(points, outcome, [_log_budget]))}
    if outcome != "gain":
        found[ACQUISITION] = measure(lambda: _partial(points, outcome, [_gain]))
        found[f"{BUDGET} and {ACQUISITION}"] = measure(lambda: _partial(points, outcome, [_log_budget, _gain]))
    return found


def _partial(points: Sequence[Point], outcome: Outcome, controls: Sequence[Callable[[Point], Measure]]) -> float:
    for point in points:
        for control in controls:
            if control(point).value is None:
                raise UndefinedMetricError(f"{point.method}: {control(point).reason}")
    x, y = _values(points, outcome)
    return partial_pearson(x, y, [[_number(control(point)) for point in points] for control in controls])


def _linearity(points: Sequence[Point], outcome: Outcome) -> Linearity:
    kept = [point for point in points if outcome == "gain" or not point.at_floor]
    x, y = _values(kept, outcome)
    try:
        return Linearity(len(points) - len(kept), quadratic(x, y))
    except UndefinedMetricError as error:
        return Linearity(len(points) - len(kept), None, str(error))


def _correlation(x: list[float], y: list[float]) -> tuple[Correlation | None, str]:
    if len(x) < _FEWEST_POINTS:
        return None, f"{len(x)} points; a correlation needs {_FEWEST_POINTS}"
    try:
        return correlate(x, y, resamples(len(x))), ""
    except UndefinedMetricError as error:
        return None, str(error)


def _of(found: Correlation | None, reason: str, value: Callable[[Correlation], float]) -> Measure:
    return Measure(None, reason) if found is None else Measure(value(found))


def _values(points: Sequence[Point], outcome: Outcome) -> tuple[list[float], list[float]]:
    return [point.shift for point in points], [_number(_outcome(point, outcome)) for point in points]


def _outcome(point: Point, outcome: Outcome) -> Measure:
    return point.retention_change if outcome == "retention_change" else point.gain


def _number(found: Measure) -> float:
    assert found.value is not None
    return found.value


def _log_budget(point: Point) -> Measure:
    return point.log_budget


def _gain(point: Point) -> Measure:
    return point.gain


def _run(point: Point) -> str:
    return point.run_cluster


def _task(point: Point) -> str:
    return point.task_cluster
