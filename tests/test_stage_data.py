"""What a stage trains on, and what of it is evaluated too."""

from __future__ import annotations

from collections.abc import Sequence

from cl_bench.harness.spec import StageSpec
from cl_bench.harness.stage_data import make_stage, overlap
from cl_bench.tasks.base import Example, Score, Task
from tests.support import toy_examples, toy_score, toy_stage
from tests.test_store import make_spec


class ToyTask(Task):
    """Sums as training rows."""

    def __init__(self, name: str, count: int) -> None:
        self.name, self._rows = name, [Example(name, e.id, e.messages, e.demonstration) for e in toy_examples(count)]

    def train(self) -> Sequence[Example]:
        return self._rows

    def dev(self) -> Sequence[Example]:
        return self._rows[:2]

    def test(self) -> Sequence[Example]:
        return ()

    def score(self, example: Example, text: str) -> Score:
        return toy_score(example, text)


TASKS = {"one": ToyTask("one", 6), "two": ToyTask("two", 4)}


def test_union_holds_a_task_once_and_tasks_with_equal_ids_apart() -> None:
    parts = [StageSpec(task="one", name="one"), StageSpec(task="two", name="two"), StageSpec(task="one", name="one-2")]
    stage = make_stage(make_spec(), 1, "joint", parts, TASKS)
    assert len(stage.examples) == 10 and len(stage.dev) == 4
    assert len({example.key for example in stage.examples}) == 10


def test_epochs_hold_for_a_union_only_where_all_parts_say_the_same() -> None:
    def overrides(*epochs: float | None) -> dict[str, float]:
        parts = [StageSpec(task=t, name=t, epochs=n) for t, n in zip(("one", "two"), epochs, strict=True)]
        return dict(make_stage(make_spec(), 1, "joint", parts, TASKS).overrides)

    assert overrides(3, 3) == {"epochs": 3}
    assert overrides(3, None) == overrides(3, 2) == overrides(None, None) == {}


def test_overlap_counts_trained_questions_and_those_inside_generated_texts() -> None:
    rows = toy_examples(6)
    evaluated = {"toy": [row.question for row in rows], "suite": [f"Question: {rows[1].question}\nAnswer:", "else?"]}
    generated: list[dict[str, str | None]] = [
        {"text": f"So what is  {rows[4].question.upper()}\nIt is 20."},
        {"text": None},
    ]
    assert overlap(toy_stage(rows[:2]), (), evaluated) == {"toy": 2, "suite": 1}
    assert overlap(toy_stage(rows[:2]), generated, evaluated) == {"toy": 3, "suite": 1}
