"""What holds for every matrix: order and names of tasks, affine changes of scores, one more task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cl_bench.harness.measure import metrics
from cl_bench.harness.measure.metrics import measure
from cl_bench.harness.measure.scores import Scores
from tests.measure.matrices import make_matrix

DIFFERENCES: dict[str, Callable[[Scores], float]] = {
    "gain": lambda scores: metrics.mean_over_stages(scores, metrics.gain),
    "backward_transfer": metrics.backward_transfer,
    "forward_transfer": metrics.forward_transfer,
    "forgetting": metrics.forgetting,
    "forgetting_all_past": lambda scores: metrics.forgetting(scores, "all"),
    "forgetting_every": lambda scores: metrics.forgetting(scores, "every"),
    "forgetting_diagonal": lambda scores: metrics.forgetting(scores, "diagonal"),
    "intransigence": lambda scores: metrics.intransigence(scores, joint(scores)),
}
LEVELS: dict[str, Callable[[Scores], float]] = {
    "acquisition": lambda scores: metrics.mean_over_stages(scores, metrics.acquisition),
    "average_accuracy": metrics.average_accuracy,
    "average_incremental_accuracy": metrics.average_incremental_accuracy,
}
ALL = {**DIFFERENCES, **LEVELS}


@dataclass(frozen=True)
class Numbers:
    """Scores [base and stages][tasks], and the task that each stage trains on, by number; tasks may come again."""

    rows: list[list[float]]
    trained: list[int]

    @property
    def tasks(self) -> int:
        return len(self.rows[0])


@st.composite
def runs(draw: st.DrawFn) -> Numbers:
    tasks = draw(st.integers(1, 4))
    repeats = draw(st.lists(st.integers(0, tasks - 1), max_size=2))
    trained = draw(st.permutations([*range(tasks), *repeats]))
    score = st.floats(-3, 3, allow_subnormal=False)
    rows = [[draw(score) for _ in range(tasks)] for _ in range(len(trained) + 1)]
    return Numbers(rows, list(trained))


def build(numbers: Numbers, names: list[str] | None = None, columns: list[int] | None = None) -> Scores:
    """The run, with names for its tasks and its columns in an order."""
    named = names or [f"t{task}" for task in range(numbers.tasks)]
    order = columns or list(range(numbers.tasks))
    stages = [f"stage {place}" for place in range(len(numbers.trained))]
    rows = {
        row: [values[task] for task in order]
        for row, values in zip(["base", *stages], numbers.rows, strict=True)
    }  # fmt: skip
    learned = {stage: (named[task],) for stage, task in zip(stages, numbers.trained, strict=True)}
    return Scores(make_matrix(rows, [named[task] for task in order]), learned)


def joint(scores: Scores) -> dict[str, float]:
    """A joint reference that moves with the scores."""
    return {task: scores.at(scores.final, task) for task in scores.tasks}


def all_of(scores: Scores, functions: dict[str, Callable[[Scores], float]] = ALL) -> dict[str, float | None]:
    return {name: measure(partial(compute, scores)).value for name, compute in functions.items()}


@settings(max_examples=60, deadline=None)
@given(runs(), st.randoms(use_true_random=False))
def test_names_and_order_of_columns_change_nothing(numbers: Numbers, random: object) -> None:
    names = [f"x{task}" for task in range(numbers.tasks)]
    columns = list(range(numbers.tasks))
    random.shuffle(names)  # type: ignore[attr-defined]
    random.shuffle(columns)  # type: ignore[attr-defined]
    assert all_of(build(numbers, names, columns)) == pytest.approx(all_of(build(numbers)), abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(runs(), st.floats(0.1, 4), st.floats(-3, 3))
def test_affine_changes_scale_differences_and_move_levels(numbers: Numbers, scale: float, shift: float) -> None:
    moved = Numbers([[scale * value + shift for value in row] for row in numbers.rows], numbers.trained)
    before, after = build(numbers), build(moved)
    expected = {name: None if value is None else scale * value for name, value in all_of(before, DIFFERENCES).items()}
    assert all_of(after, DIFFERENCES) == pytest.approx(expected, abs=1e-9)
    levels = {name: None if value is None else scale * value + shift for name, value in all_of(before, LEVELS).items()}
    assert all_of(after, LEVELS) == pytest.approx(levels, abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(runs(), st.floats(-3, 3))
def test_a_task_more_at_the_end_leaves_each_tasks_own_numbers_alone(numbers: Numbers, score: float) -> None:
    added = Numbers(
        [[*row, score] for row in [*numbers.rows, numbers.rows[-1]]], [*numbers.trained, numbers.tasks]
    )  # fmt: skip
    before, after = build(numbers), build(added)
    for stage in before.stages:
        assert metrics.acquisition(after, stage) == metrics.acquisition(before, stage)
        assert metrics.gain(after, stage) == metrics.gain(before, stage)
    for task in before.tasks:
        if before.last_learned(task) < len(before.stages) - 1:
            assert metrics.task_backward_transfer(after, task) == metrics.task_backward_transfer(before, task)
            # The last row is a copy: the best of the rows before it may now be the one that was last.
            assert metrics.task_forgetting(after, task) == max(metrics.task_forgetting(before, task), 0)
    assert not set(after.earlier_tasks()) ^ set(before.tasks)


@settings(max_examples=60, deadline=None)
@given(runs())
def test_kinds_of_forgetting_are_ordered(numbers: Numbers) -> None:
    scores = build(numbers)
    found = all_of(scores)
    if found["forgetting"] is None:
        assert found["forgetting_all_past"] is None and found["backward_transfer"] is None
        return
    assert found["forgetting_diagonal"] is not None and found["forgetting_all_past"] is not None
    assert found["forgetting_diagonal"] <= found["forgetting"] + 1e-12
    assert found["forgetting"] <= found["forgetting_all_past"] + 1e-12
    assert found["forgetting_every"] == pytest.approx(
        sum(max(metrics.task_forgetting(scores, task, "all"), 0) for task in scores.earlier_tasks())
        / len(scores.earlier_tasks())
    )


@settings(max_examples=60, deadline=None)
@given(runs())
def test_a_matrix_that_is_read_keeps_its_numbers(numbers: Numbers) -> None:
    scores = build(numbers)
    before = scores.matrix.to_json()
    all_of(scores)
    all_of(scores.above_chance())
    assert scores.matrix.to_json() == before
