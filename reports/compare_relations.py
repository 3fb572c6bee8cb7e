"""Shift against forgetting and learning, as a table: a column a relation, a row a number or a check."""

from __future__ import annotations

from collections.abc import Callable

from cl_bench.harness.compare.comparison import Comparison
from cl_bench.harness.compare.correlation import CURVED, RUNS, TASKS, Linearity, Relation
from cl_bench.harness.measure.correlation import ClusterIntervals
from cl_bench.harness.measure.scores import Measure
from cl_bench.reports.content import MISSING, Grid

OUTCOMES = {"retention_change": "retention change", "gain": "gain"}
"""What shift is related to, by name."""
_NOTES = (
    "x: forward KL from the untouched model on the new task's prompts, nats per token. y: points of 100. first stages: "
    "adaptations of the untouched model, primary; all rows: x and y of every stage against the untouched model.",
    "Intervals: 95 %, bootstrap over clusters (whole runs: these models and tasks; model x task: others too). A "
    "correlation is no cause, and r alone makes no line.",
    "slope within methods: the methods' means taken off. without one method: r when each is left out in turn.",
)
_Show = Callable[[Relation], str]


def relations_grid(comparison: Comparison) -> Grid | None:
    """All relations with their checks; None where no run has a shift."""
    relations = [relation for relation in comparison.relations if relation.points]
    if not relations:
        return None
    controls = list(dict.fromkeys(name for relation in relations for name in relation.controlled))
    lines: dict[str, _Show] = {
        "points": lambda relation: str(len(relation.points)),
        "runs; model x task": lambda relation: "; ".join(str(relation.intervals[n].clusters) for n in (RUNS, TASKS)),
        "Pearson's r": lambda relation: _two(relation.pearson),
        f"r, 95 % over {RUNS}": lambda relation: _pearson(relation.intervals[RUNS]),
        f"r, 95 % over {TASKS}": lambda relation: _pearson(relation.intervals[TASKS]),
        "Spearman's rho": lambda relation: _two(relation.spearman),
        f"rho, 95 % over {RUNS}": lambda relation: _spearman(relation.intervals[RUNS]),
        "slope, points per nat": lambda relation: _points(relation.slope),
        "slope within methods": lambda relation: _points(relation.within_methods),
        "r within methods": lambda relation: _two(relation.within_pearson),
        "methods rising; falling": _signs,
        "r without one method": _without,
        **{f"r, {name} held": _control(name) for name in controls},
        "quadratic term, p": lambda relation: _curve(relation.linearity),
        "line; curve explain": lambda relation: _explained(relation.linearity),
        "claim": _claim,
    }
    header = ("shift and", *(_name(relation) for relation in relations))
    rows = tuple((name, *(show(relation) for relation in relations)) for name, show in lines.items())
    return Grid("Shift and what is forgotten or learned", header, rows, (*_NOTES, *_remarks(relations)))


def _name(relation: Relation) -> str:
    points = "first stages" if relation.kind == "primary" else "all rows"
    return f"{OUTCOMES[relation.outcome]}, {points}"


def _remarks(relations: list[Relation]) -> list[str]:
    remarks = []
    for relation in relations:
        name = _name(relation)
        if relation.reasons:
            remarks.append(f"{name}: {'; '.join(relation.reasons)}.")
        for control, found in relation.controlled.items():
            if found.value is None and relation.pearson.value is not None:
                remarks.append(f"{name}: r with {control} held is undefined: {found.reason}.")
        if relation.linearity.reason and relation.pearson.value is not None:
            remarks.append(f"{name}: no curve: {relation.linearity.reason}.")
        if relation.linearity.floor_points:
            remarks.append(f"{name}: {relation.linearity.floor_points} points on the floor are not in the curve.")
    left_out = relations[0].left_out
    if left_out:
        remarks.append("rows without a point: " + ", ".join(f"{count} {why}" for why, count in left_out.items()) + ".")
    return remarks


def _two(found: Measure) -> str:
    return MISSING if found.value is None else f"{found.value:+.2f}"


def _points(found: Measure) -> str:
    return MISSING if found.value is None else f"{100 * found.value:+.3g}"


def _pearson(found: ClusterIntervals) -> str:
    return _interval(found.pearson)


def _spearman(found: ClusterIntervals) -> str:
    return _interval(found.spearman)


def _interval(interval: tuple[float, float] | None) -> str:
    return MISSING if interval is None else f"[{interval[0]:+.2f}, {interval[1]:+.2f}]"


def _signs(relation: Relation) -> str:
    slopes = [slope for slope in relation.by_method.values() if slope is not None]
    return f"{sum(slope > 0 for slope in slopes)}; {sum(slope < 0 for slope in slopes)}" if slopes else MISSING


def _without(relation: Relation) -> str:
    found = {name: r for name, r in relation.without_method.items() if r is not None}
    if not found:
        return MISSING
    low, high = min(found, key=lambda name: found[name]), max(found, key=lambda name: found[name])
    return f"{found[low]:+.2f} ({low}) to {found[high]:+.2f} ({high})"


def _control(name: str) -> _Show:
    return lambda relation: _two(relation.controlled[name]) if name in relation.controlled else ""


def _curve(found: Linearity) -> str:
    if found.curve is None:
        return MISSING
    shown = "<.001" if found.curve.p < 0.001 else f"{found.curve.p:.3f}"
    return f"{shown}, {'curved' if found.curve.p < CURVED else 'no curve seen'}"


def _explained(found: Linearity) -> str:
    return MISSING if found.curve is None else f"{found.curve.line_share:.2f}; {found.curve.curve_share:.2f}"


def _claim(relation: Relation) -> str:
    if relation.beyond:
        return "for other models and tasks too"
    return "for these models and tasks" if relation.claim else "none"
