"""What a stage trains on, and what of it is evaluated too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cl_bench.harness.measure.contamination import EvaluatedItems, Item, TrainingRow
from cl_bench.harness.spec import StageSpec
from cl_bench.harness.stage_data import make_stage, training_rows
from cl_bench.methods.base import Stage
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


def test_all_texts_of_a_stage_are_training_data() -> None:
    turns = ({"role": "system", "content": "Be brief."}, {"role": "user", "content": "What?"})
    prompt = ({"role": "user", "content": "Ask: Who? A: x"},)
    own, replayed = (
        Example("one", "a", turns, "So."),
        Example("old", "b", prompt, None, None, ("x", "y"), {"question": "Who?"}),
    )
    stage = Stage(1, "one", [own, replayed], [], {})
    ledger: list[dict[str, Any]] = [
        {"id": "a", "text": "first", "reasons": ["wrong_answer"], "tokens": [1, 2], "ended": "eos"},
        {"id": "a", "text": None, "texts": ["second", "third"], "hinted": True},
        {"id": "elsewhere", "text": "alone"},
    ]
    first, second, third = training_rows(stage, ledger)
    assert first == TrainingRow("What?", (), ("What?", "So.", "first", "wrong_answer", "eos", "second", "third"))
    assert second == TrainingRow("Who?", ("x", "y"), ("Ask: Who? A: x",))
    assert third == TrainingRow("", (), ("alone",))


def test_repeats_are_found_in_rows_demonstrations_and_generated_texts() -> None:
    rows = [Example("toy", f"toy-{i}", ({"role": "user", "content": f"What is {i} plus {i}?"},)) for i in range(6)]
    items = {
        "toy": [Item.of(row) for row in rows],
        "suite": [Item("s", f"Question: {rows[1].question}\nAnswer:"), Item("t", "What else could it be?")],
    }
    quoting = {"id": rows[0].id, "text": f"So what is it? {rows[4].question.upper()}\nIt is 20."}

    def found(stage: Stage, generated: Sequence[Mapping[str, Any]] = ()) -> dict[str, set[str]]:
        return {c: set(o.any) for c, o in EvaluatedItems(items).overlap(training_rows(stage, generated)).items()}

    trained = {row.id for row in rows[:2]}
    assert found(toy_stage(rows[:2])) == {"toy": trained, "suite": {"s"}}
    assert found(toy_stage(rows[:2]), [quoting]) == {"toy": trained | {rows[4].id}, "suite": {"s"}}
    assert found(toy_stage([])) == {"toy": set(), "suite": set()}
