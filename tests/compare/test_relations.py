"""Shift against forgetting where the truth is planted, and the checks that keep a claim from being made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from cl_bench.harness.compare.correlation import (
    ACQUISITION,
    BUDGET,
    PERCENTILE_POINTS,
    RUNS,
    TASKS,
    Kind,
    Outcome,
    Relation,
    relate,
    relations,
)
from cl_bench.harness.compare.points import Point, Points
from cl_bench.harness.measure.scores import Measure

METHODS = ("sft", "dft", "sdft", "isdft")


def point(number: int, shift: float, change: float | None, **fields: object) -> Point:
    """One of many points: a run, a method and a task each."""
    values: dict[str, object] = {
        "run": Path(f"run-{number}"),
        "method": METHODS[number % len(METHODS)],
        "model": "lab-m",
        "task": f"task-{number % 9}",
        "row": "task",
        "primary": True,
        "seed": number,
        "shift": shift,
        "retention_change": Measure(None, "no suite") if change is None else Measure(change),
        "gain": Measure(0.5 + 0.01 * (number % 5)),
        "log_budget": Measure(-5.0 + 0.1 * (number % 3)),
        "at_floor": False,
    }
    return Point(**(values | fields))  # type: ignore[arg-type]


def line(count: int, slope: float = -0.2, noise: float = 0.0, seed: int = 0) -> list[Point]:
    generator = np.random.default_rng(seed)
    shifts = generator.uniform(0.1, 1.0, count)
    return [point(i, x, slope * x + noise * generator.normal()) for i, x in enumerate(shifts)]


def related(points: Sequence[Point], outcome: Outcome = "retention_change", kind: Kind = "primary") -> Relation:
    return relate(Points(tuple(points), {}), kind, outcome)


def test_a_planted_line_is_found_and_claimed() -> None:
    found = related(line(36, noise=0.002))
    assert found.pearson.value is not None and found.pearson.value < -0.99
    assert found.slope.value == pytest.approx(-0.2, abs=0.01) and found.spearman.value < -0.97  # type: ignore[operator]
    assert found.claim and found.beyond and found.reasons == ()
    for name, clusters in ((RUNS, 36), (TASKS, 9)):
        interval = found.intervals[name]
        assert interval.clusters == clusters and interval.pearson is not None and interval.pearson[1] < -0.98
    assert found.within_methods.value == pytest.approx(-0.2, abs=0.01)
    assert all(r is not None and r < -0.98 for r in found.without_method.values())
    assert set(found.without_method) == set(METHODS)
    assert found.controlled[BUDGET].value == pytest.approx(-1, abs=0.01)


def test_permuted_labels_give_no_correlation_and_no_claim() -> None:
    points = line(36, noise=0.002)
    order = np.random.default_rng(5).permutation(36)
    mixed = [point(i, one.shift, points[order[i]].retention_change.value) for i, one in enumerate(points)]
    found = related(mixed)
    interval = found.intervals[RUNS].pearson
    assert interval is not None and interval[0] < 0 < interval[1]
    assert not found.claim and any("holds 0" in reason for reason in found.reasons)


@pytest.mark.parametrize("runs", [7, 8])
def test_fewer_than_eight_clusters_make_no_claim(runs: int) -> None:
    points = [point(i, x.shift, x.retention_change.value, run=Path(f"run-{i % runs}"), task=f"task-{i % 3}")
              for i, x in enumerate(line(48, noise=0.002))]  # fmt: skip
    found = related(points)
    assert found.claim is (runs == 8) and not found.beyond
    assert any("3 clusters; an interval needs 8" in reason for reason in found.reasons)


def test_a_sign_that_changes_within_methods_is_no_claim() -> None:
    generator = np.random.default_rng(0)
    points = []
    for i in range(40):  # methods lie on a falling line, and within each the line rises
        own = 0.05 * generator.normal()
        points.append(point(i, 0.2 * (i % 4) + 0.3 + own, -0.1 * (i % 4) + own))
    found = related(points)
    assert found.pearson.value is not None and found.pearson.value < -0.6
    assert found.within_methods.value is not None and found.within_methods.value > 0.9
    interval = found.intervals[RUNS].pearson
    assert interval is not None and interval[1] < 0
    assert not found.claim and "the sign changes within methods" in found.reasons
    assert all(slope is not None and slope > 0 for slope in found.by_method.values())


def test_one_method_that_carries_a_correlation_shows_when_it_is_left_out() -> None:
    generator = np.random.default_rng(1)
    points = [point(i, 0.2 + 0.02 * generator.normal(), 0.02 * generator.normal()) for i in range(30) if i % 4]
    points += [point(4 * i, 1.0 + 0.02 * generator.normal(), -0.4, method="sft") for i in range(10)]
    found = related(points)
    assert found.pearson.value is not None and found.pearson.value < -0.9
    rest = found.without_method["sft"]
    assert rest is not None and abs(rest) < 0.5


def test_a_sign_that_hangs_on_one_method_is_no_claim() -> None:
    generator = np.random.default_rng(1)
    points = []
    for i in range(30):  # all methods rise, but one that lies far out and low
        x = 0.2 + 0.02 * generator.normal()
        points.append(point(i, x, 0.5 * x + 0.005 * generator.normal(), method=("dft", "sdft")[i % 2]))
    for i in range(30, 40):
        x = 1.0 + 0.2 * generator.normal()
        points.append(point(i, x, -0.4 - 0.8 * (x - 1), method="sft"))
    found = related(points)
    assert found.pearson.value is not None and found.pearson.value < -0.8
    assert found.within_methods.value is not None and found.within_methods.value < 0
    interval = found.intervals[RUNS].pearson
    assert interval is not None and interval[1] < 0
    assert not found.claim and found.reasons[0] == "the sign changes without sft"


def test_what_shift_and_forgetting_both_owe_to_the_budget_goes_with_the_budget() -> None:
    generator = np.random.default_rng(2)
    points = []
    for i in range(60):
        budget, luck = generator.normal(), 0.2 * generator.normal(size=2)
        points.append(point(i, 2 + budget + luck[0], -budget + luck[1], log_budget=Measure(budget)))
    found = related(points)
    assert found.pearson.value is not None and found.pearson.value < -0.9
    without_budget, without_gain = found.controlled[BUDGET].value, found.controlled[ACQUISITION].value
    assert without_budget is not None and abs(without_budget) < 0.35
    assert without_gain is not None and without_gain < -0.9
    assert set(related(points, "gain").controlled) == {BUDGET}


def test_a_missing_control_is_a_reason() -> None:
    points = [*line(20), point(20, 0.5, -0.1, log_budget=Measure(None, "a method without a learning rate"))]
    found = related(points).controlled[BUDGET]
    assert found.value is None and "without a learning rate" in found.reason


@pytest.mark.parametrize(("bend", "curved"), [(0.0, False), (-0.3, True)])
def test_a_curve_is_told_from_a_line(bend: float, curved: bool) -> None:
    generator = np.random.default_rng(3)
    shifts = generator.uniform(0, 1, 50)
    points = [point(i, x, -0.2 * x + bend * x * x + 0.01 * generator.normal()) for i, x in enumerate(shifts)]
    curve = related(points).linearity.curve
    assert curve is not None and (curve.p < 0.05) is curved and curve.curve_share >= curve.line_share
    assert (curve.coefficient < 0) or not curved


def test_points_on_the_floor_bend_no_line() -> None:
    points = line(30, noise=0.002)
    fallen = [point(30 + i, 1.5 + 0.1 * i, -0.2, at_floor=True) for i in range(8)]
    with_floor = related([*points, *(point(30 + i, one.shift, -0.2) for i, one in enumerate(fallen))])
    without = related([*points, *fallen])
    assert with_floor.linearity.curve is not None and with_floor.linearity.curve.p < 0.001
    assert without.linearity.floor_points == 8
    assert without.linearity.curve is not None and without.linearity.curve.p > 0.05


def constant(points: list[Point]) -> list[Point]:
    return [point(i, one.shift, -0.1) for i, one in enumerate(points)]


def few(points: list[Point]) -> list[Point]:
    return points[:2]


def without_retention(points: list[Point]) -> list[Point]:
    return [point(i, one.shift, None) for i, one in enumerate(points)]


@pytest.mark.parametrize(
    ("change", "reason"), [(constant, "variance"), (few, "2 points"), (without_retention, "0 points")]
)
def test_what_has_no_correlation_is_undefined_with_its_reason(
    change: Callable[[list[Point]], list[Point]], reason: str
) -> None:
    found = related(change(line(20)))
    for measure in (found.pearson, found.slope, found.spearman):
        assert measure.value is None and reason in measure.reason
    assert not found.claim and found.reasons and found.reasons[0].startswith("undefined: ")
    assert found.linearity.curve is None and found.linearity.reason


def test_points_of_one_method_a_run_have_no_slope_within_methods() -> None:
    found = related([point(i, one.shift, one.retention_change.value, method=f"method-{i}")
                     for i, one in enumerate(line(20))])  # fmt: skip
    assert found.within_methods.value is None and not found.claim


def test_later_rows_are_in_the_secondary_relation_alone() -> None:
    points = [*line(12), *(point(i, 0.5 + i / 100, -0.3, primary=False) for i in range(12))]
    found = {(one.kind, one.outcome): len(one.points) for one in relations(Points(tuple(points), {}))}
    assert found == {
        ("primary", "retention_change"): 12,
        ("primary", "gain"): 12,
        ("secondary", "retention_change"): 24,
        ("secondary", "gain"): 24,
    }
    assert {one.kind for one in relations(Points(tuple(line(12)), {}))} == {"primary"}


def test_rows_without_an_outcome_are_counted() -> None:
    found = related([*line(12), point(12, 0.4, None)])
    assert len(found.points) == 12 and found.left_out == {"no suite": 1}


def test_rows_of_one_reason_are_counted_together() -> None:
    found = relate(Points((*line(12), point(12, 0.4, None)), {"no suite": 2, "diverged": 1}), "primary", "gain")
    assert found.left_out == {"no suite": 2, "diverged": 1}
    found = relate(Points((*line(12), point(12, 0.4, None)), {"no suite": 2}), "primary", "retention_change")
    assert found.left_out == {"no suite": 3}


def test_the_plain_percentile_interval_needs_as_many_points_as_cover_what_it_says() -> None:
    few, enough = (related(line(count, noise=0.1)) for count in (PERCENTILE_POINTS - 1, PERCENTILE_POINTS))
    assert few.percentile is None and few.intervals[RUNS].pearson is not None
    assert enough.percentile is not None and enough.percentile[0] < (enough.pearson.value or 0) < enough.percentile[1]


def test_labels_permuted_many_times_are_claimed_about_as_often_as_the_level_says() -> None:
    points, generator = line(16, noise=0.002), np.random.default_rng(11)
    changes = [one.retention_change.value for one in points]
    held = 0
    for _ in range(120):
        mixed = [point(i, one.shift, changes[order]) for i, (one, order) in
                 enumerate(zip(points, generator.permutation(16), strict=True))]  # fmt: skip
        interval = related(mixed).intervals[RUNS].pearson
        assert interval is not None
        held += interval[0] <= 0 <= interval[1]
    assert 0.88 <= held / 120 <= 1  # three standard errors below .95
