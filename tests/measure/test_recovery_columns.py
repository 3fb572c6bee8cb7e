"""Columns as probes ask them again: tasks through the sampler, benchmarks through lm-eval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch

from cl_bench.harness.errors import DataError
from cl_bench.harness.generation.local import LocalSampler
from cl_bench.harness.measure.evaluation import TaskRows, evaluate_together, evaluation_settings
from cl_bench.harness.measure.items.benchmark_column import ProbedBenchmark, probed_benchmark
from cl_bench.harness.measure.items.openings import Frame
from cl_bench.harness.measure.items.task_column import ProbedTask, probed_task, whole_text
from cl_bench.harness.measure.matrix import Column
from cl_bench.harness.measure.run_evaluation import TaskColumn
from cl_bench.harness.measure.suite import SuiteRunner
from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.harness.spec import EvaluationSpec, RunSpec, SuiteSpec
from cl_bench.tasks.base import Example, Score, Task
from cl_bench.tasks.sources.base import DataOptions
from tests import support
from tests.measure.items_run import run_spec, sample

LAB = DataOptions("lab")


def example(name: str, question: str, answer: str = "b", choices: tuple[str, ...] | None = None) -> Example:
    return Example("toy", name, ({"role": "user", "content": question},), answer=answer, choices=choices)


class Toy(Task):
    """Right is what contains the answer; every text that was scored is remembered."""

    name = "toy"
    max_new_tokens = 6

    def __init__(self, rows: Sequence[Example], dev: Sequence[Example] = ()) -> None:
        self._rows, self._dev, self.scored = rows, dev, list[str]()

    def train(self) -> Sequence[Example]:
        return ()

    def dev(self) -> Sequence[Example]:
        return self._dev

    def test(self) -> Sequence[Example]:
        return self._rows

    def score(self, example: Example, text: str) -> Score:
        self.scored.append(text)
        return Score(str(example.answer) in text, text or None, True)


def probed(task: Toy, spec: RunSpec | None = None) -> ProbedTask:
    found = TaskColumn(Column("toy", "sequence", 0.0, len(task.test()), "accuracy"), task, tuple(task.test()))
    column = probed_task(spec or run_spec([("toy", "toy")]), [found], "toy")
    assert column is not None
    return column


@pytest.fixture(scope="module")
def ending() -> ChatModel:
    """A random model most of whose answers end."""
    return support.tiny_model(seed=3, ends=8.0, context_length=200)


def test_answers_go_on_from_the_opening(tiny_model: ChatModel) -> None:
    task = Toy([example("a", "one?"), example("b", "two?", answer="so it")])
    column = probed(task)
    column.answers(tiny_model, ["a", "b"], "so it")
    assert [text[:5] for text in task.scored] == ["so it", "so it"]
    opening = tiny_model.tokenizer("so it", add_special_tokens=False)["input_ids"]
    prompt = tiny_model.prompt_ids(task.test()[0].messages)
    ids = [*prompt, *opening]
    with torch.no_grad():
        for _ in range(task.max_new_tokens):
            ids.append(int(tiny_model.model(torch.tensor([ids])).logits[0, -1].argmax()))
            if ids[-1] == tiny_model.end_id:
                break
    assert task.scored[0] == tiny_model.decode(ids[len(prompt) :])
    assert column.answers(tiny_model, ["b"], "so it") == {"b": True}


def test_answers_without_an_opening_are_those_of_evaluation(ending: ChatModel) -> None:
    rows = [example(str(number), f"{number}?", answer="a") for number in range(6)]
    task = Toy(rows)
    settings = evaluation_settings(task, 128)
    result = evaluate_together(ending, [TaskRows("toy", task, rows)], LocalSampler(ending), settings)["toy"]
    found = probed(task).answers(ending, [row.id for row in rows])
    assert found == {row["id"]: row["correct"] for row in result.samples}


def test_rows_that_the_opening_makes_too_long_are_absent(tiny_model: ChatModel) -> None:
    task = Toy([example("short", "?"), example("long", "x" * 125)])
    assert set(probed(task).answers(tiny_model, ["short", "long"])) == {"short", "long"}
    assert set(probed(task).answers(tiny_model, ["short", "long"], "so " * 20)) == {"short"}


def test_other_data_and_other_prompts_are_refused(tiny_model: ChatModel) -> None:
    task = Toy([example("a", "one?")])
    settings = evaluation_settings(task, 8)
    rows = [TaskRows("toy", task, task.test())]
    recorded = evaluate_together(tiny_model, rows, LocalSampler(tiny_model), settings)["toy"].samples
    probed(task).check(tiny_model, recorded)
    with pytest.raises(DataError, match="not those that the run evaluated"):
        probed(task).check(tiny_model, [sample("z", True)])
    with pytest.raises(DataError, match="another prompt"):
        probed(Toy([example("a", "changed?")])).check(tiny_model, recorded)


def test_an_opening_gives_away_what_nothing_said_does_not_answer() -> None:
    column = probed(Toy([example("a", "one?", "blue"), example("any", "say anything", "")]))
    assert column.right_by("it is") == {"any"}, "such an item is right whatever is said"
    assert not column.gives_away("it is") and column.gives_away("it is blue")


@pytest.mark.parametrize("lettered", [False, True])
def test_options_are_ranked_in_the_form_of_the_answer(tiny_model: ChatModel, lettered: bool) -> None:
    options = ("red", "green", "blue")
    lines = "which?\nA: red\nB: green\nC: blue"
    rows = [
        example(str(gold), lines if lettered else "which?", "ABC"[gold] if lettered else options[gold], options)
        for gold in range(3)
    ]
    found = probed(Toy([*rows, example("open", "which?")])).ranks_gold_first(
        tiny_model, ["0", "1", "2", "open"], Frame("it is ", ".")
    )
    assert set(found) == {"0", "1", "2"}, "an item without options is absent"
    assert sum(found.values()) == 1, "the same prompt has one likeliest option, whichever is right"


def test_lessons_are_right_finished_and_of_other_items(ending: ChatModel) -> None:
    dev = [example(f"dev-{number}", f"{number} and {number}?", answer="") for number in range(12)]
    test = [example("dev-3", "its id is a dev row's"), example("t", "  5 AND 5? ")]
    column = probed(Toy(test, dev))
    lessons = column.lessons(ending, 32)
    names = {row.example_id for row in lessons}
    assert names and names <= {row.id for row in dev}
    assert not names & {"dev-3", "dev-5"}, "neither an id nor a question of a scored item"
    assert all(row.completion_ids[-1] == ending.end_id for row in lessons)
    assert len(column.lessons(ending, 2)) <= 2
    wrong = [replace(row, answer="never said") for row in dev]
    assert probed(Toy(test, wrong)).lessons(ending, 32) == []


def test_what_stands_after_a_stop_string_is_cut(tiny_model: ChatModel) -> None:
    from cl_bench.harness.generation.base import Completion, GenerationSettings

    def ids(text: str) -> tuple[int, ...]:
        return tuple(tiny_model.tokenizer(text, add_special_tokens=False)["input_ids"])

    settings = GenerationSettings(8, stop=("\n",))
    cut = Completion(ids(" is 7\n"), "is 7", "stop", ())
    assert whole_text(tiny_model, ids("it"), cut, settings) == "it is 7"
    assert whole_text(tiny_model, ids("a\nb"), Completion(ids("c"), "c", "eos", ()), settings) == "a\nbc"


def lab_benchmark(skill: str, split: Any = "test", rows: int = 12) -> ProbedBenchmark:
    entry = {
        "name": f"lab-{skill}",
        "source": "lab-skill",
        "task": skill,
        "metric": "acc",
        "chance": 0.0,
        "rows": rows,
        "identity": {},
    }
    spec = run_spec([("toy", "toy")]).model_copy(
        update={"suite": SuiteSpec(name="s", tasks=(entry,)), "evaluation": EvaluationSpec(split=split)}
    )
    found = probed_benchmark(spec, LAB, f"lab-{skill}")
    assert found is not None and probed_benchmark(spec, LAB, "lab-other") is None
    return found


@pytest.fixture(scope="module")
def lab() -> ChatModel:
    """The smallest lab model."""
    from cl_bench.harness.models.load import load_chat_model, resolve_model

    return load_chat_model(resolve_model("lab-s", offline=True))


def recorded_by(column: ProbedBenchmark, model: ChatModel) -> list[dict[str, Any]]:
    runner = SuiteRunner([column._entry], LAB, batch_size=128)
    return runner.run(model, LocalSampler(model))[column.name].samples


@pytest.mark.parametrize("skill", ["pick", "home"])
def test_a_benchmark_is_asked_as_it_was(lab: ChatModel, skill: str) -> None:
    column = lab_benchmark(skill)
    recorded = recorded_by(column, lab)
    column.check(lab, recorded)
    ids = [row["id"] for row in recorded][:7]
    assert column.answers(lab, ids) == {row["id"]: row["correct"] for row in recorded[:7]}
    with pytest.raises(DataError, match="not those that the run evaluated"):
        column.check(lab, [sample("z", True)])
    column.check(lab, [row | {"prompt_hash": "other"} for row in recorded])
    with pytest.raises(DataError, match="another prompt"):
        column.answers(lab, ids)


def test_a_benchmarks_answers_begin_with_the_opening(lab: ChatModel) -> None:
    column = lab_benchmark("pick")
    samples, asked = column._asked(column._runner, lab, "So the answer is")
    assert all(str(row["response"]).startswith("So the answer is ") for row in samples)
    assert not asked.unfit and len(asked.noted) == len(samples)
    _, crowded = column._asked(column._runner, lab, "So " * 4000)
    assert len(crowded.unfit) == len(samples)
    assert column.answers(lab, [row["id"] for row in samples], "So " * 4000) == {}
    gold = lab_benchmark("pick")._runner.rows()["lab-pick"][0].document["answer"]
    assert column.gives_away(f"So the answer is {gold}.") and not column.gives_away("So the answer")


@pytest.mark.parametrize("skill", ["pick", "home"])
@pytest.mark.parametrize("split", ["test", "dev"])
def test_lessons_of_a_benchmark_are_its_right_answers_to_other_rows(lab: ChatModel, skill: str, split: str) -> None:
    column = lab_benchmark(skill, split)
    scored = {row.id for row in column._rows}
    lessons = column.lessons(lab, 6)
    assert 0 < len(lessons) <= 6
    assert not {row.example_id for row in lessons} & scored
    assert all(row.completion_ids[-1] == lab.end_id for row in lessons)
    texts = [lab.decode(row.completion_ids) for row in lessons]
    assert all("answer is" in text for text in texts)


def test_a_lesson_of_a_benchmark_asks_no_item_in_other_letters_or_spaces(lab: ChatModel) -> None:
    column = lab_benchmark("pick")
    lessons = [row.example_id for row in column.lessons(lab, 6)]
    rows = {row.id: row for row in column._make_runner("dev", None, whole=True).rows()["lab-pick"]}
    copied = replace(rows[lessons[0]], id="elsewhere", question=f"  {rows[lessons[0]].question.upper()} ")
    column._rows = [*column._rows, copied]
    found = [row.example_id for row in column.lessons(lab, 6)]
    assert found[:5] == lessons[1:], "the copied item alone is left out"
