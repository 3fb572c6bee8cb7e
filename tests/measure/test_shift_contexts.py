"""Which prompts shift is measured on, and whose answers come from the cache."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import cl_bench.tasks.retention
from cl_bench.harness.cache import Cache, key_fields
from cl_bench.harness.context import sampler_for
from cl_bench.harness.errors import DataError
from cl_bench.harness.measure.contamination import Item
from cl_bench.harness.measure.matrix import Column
from cl_bench.harness.measure.run_evaluation import TaskColumn
from cl_bench.harness.measure.shift import answers as answers_module
from cl_bench.harness.measure.shift.answers import Answers, AnswersKey
from cl_bench.harness.measure.shift.contexts import PromptSet, PromptSets, ShiftPrompt
from cl_bench.harness.measure.suite import SuiteRunner
from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.harness.spec import RunSpec
from cl_bench.methods.base import Precision
from cl_bench.tasks.base import Example, Score, Task
from cl_bench.tasks.lab.task import LabTask
from cl_bench.tasks.retention.suites import load_suite
from cl_bench.tasks.sources.base import DataOptions
from tests.support import tiny_model

OPTIONS = DataOptions(source="lab")
SUITE = Path(cl_bench.tasks.retention.__file__).parent / "lab.yaml"


def spec_of(split: str = "test", suite: Sequence[Mapping[str, Any]] = (), precision: str = "fp32") -> RunSpec:
    """What the panel reads of a run's specification."""
    parts = SimpleNamespace(
        precision=Precision("fp32", cast(Any, precision)),
        evaluation=SimpleNamespace(system_prompt=None, split=split),
        evaluation_batch_size=16,
        suite=SimpleNamespace(tasks=tuple(suite)) if suite else None,
    )
    return cast(RunSpec, parts)


def column_of(task: Task, examples: Sequence[Example], kind: str = "sequence") -> TaskColumn:
    name = task.name if kind == "sequence" else f"{task.name}/{kind}"
    return TaskColumn(Column(name, cast(Any, kind), 0.0, len(examples), "accuracy"), task, tuple(examples))


def suite_entries(rows: int | None = 20) -> list[dict[str, Any]]:
    return [{**entry.to_dict(), "rows": rows, "identity": {}} for entry in load_suite(SUITE, "fast")]


def suite_items(entries: Sequence[Mapping[str, Any]], split: Any) -> dict[str, list[Item]]:
    rows = SuiteRunner(entries, OPTIONS, split=split).rows()
    return {name: [Item(row.id, row.question) for row in own] for name, own in rows.items()}


def sets_of(
    tasks: Sequence[Task], split: str = "test", entries: Sequence[Mapping[str, Any]] = (), rows: int = 40
) -> tuple[PromptSets, list[TaskColumn], dict[str, list[Item]]]:
    columns = [column_of(task, task.split(cast(Any, split))[:rows]) for task in tasks]
    if split == "test":
        columns += [column_of(task, task.ood()[:5], "ood") for task in tasks]
    items = {item.column.name: [Item.of(example) for example in item.examples] for item in columns}
    items |= suite_items(entries, split) if entries else {}
    train = {index: task.train()[:12] for index, task in enumerate(tasks, start=1)}
    return PromptSets(spec_of(split, entries), columns, items, OPTIONS, train.__getitem__), columns, items


@pytest.fixture(scope="module")
def lab() -> ChatModel:
    return tiny_model(0, context_length=400)


@pytest.mark.parametrize("split", ["test", "dev"])
def test_no_prompt_is_an_item_of_a_scored_column(split: str, lab: ChatModel) -> None:
    tasks = [LabTask("chemistry"), LabTask("biology")]
    sets, columns, items = sets_of(tasks, split, suite_entries())
    scored = {(name, item.id) for name, own in items.items() for item in own}
    scored |= {(column.task.name, example.id) for column in columns for example in column.examples}
    questions = {lab.prompt_ids([{"role": "user", "content": item.question}]) for own in items.values() for item in own}
    for found in (sets.new_task(lab, ["chemistry"]), sets.new_task(lab, ["biology"]), sets.general(lab)):
        assert len(found.prompts) == sets.size == 10
        assert len({(prompt.column, prompt.id) for prompt in found.prompts}) == 10
        assert not {(prompt.column, prompt.id) for prompt in found.prompts} & scored
        assert not {prompt.ids for prompt in found.prompts} & questions


def test_general_prompts_are_spread_evenly_over_the_suite(lab: ChatModel) -> None:
    sets, _, _ = sets_of([LabTask("chemistry")], entries=suite_entries(), rows=100)
    counts: dict[str, int] = {}
    for prompt in sets.general(lab).prompts:
        counts[prompt.column] = counts.get(prompt.column, 0) + 1
    assert len(counts) == len(suite_entries()) and max(counts.values()) - min(counts.values()) <= 1
    assert sum(counts.values()) == 25


def test_a_joint_stage_asks_all_its_tasks(lab: ChatModel) -> None:
    sets, _, _ = sets_of([LabTask("chemistry"), LabTask("biology")])
    columns = [prompt.column for prompt in sets.new_task(lab, ["chemistry", "biology"]).prompts]
    assert (columns.count("chemistry"), columns.count("biology")) == (5, 5)


def test_at_most_64_prompts_and_always_a_few(lab: ChatModel) -> None:
    assert sets_of([LabTask("chemistry")], rows=300)[0].size == 64
    assert sets_of([LabTask("chemistry")], rows=2)[0].size == 4


def test_without_free_rows_there_is_a_reason(lab: ChatModel) -> None:
    task = LabTask("chemistry")
    everything = [column_of(task, task.dev())]
    sets = PromptSets(spec_of("dev"), everything, {}, OPTIONS, lambda index: ())
    assert sets.new_task(lab, ["chemistry"]) == PromptSet(
        "new task", "new task/chemistry", (), "no dev row of chemistry is left to ask: all of them are scored"
    )
    assert sets.general(lab).reason == "the run has no retention suite"
    assert sets.training(lab, 1).reason == "the stage has no rows"


def test_a_suite_whose_dev_rows_are_all_scored_has_none(lab: ChatModel) -> None:
    entries = suite_entries(rows=None)
    sets, _, _ = sets_of([LabTask("chemistry")], "dev", entries)
    assert sets.general(lab).prompts == ()
    assert "is scored" in sets.general(lab).reason


class Questions(Task):
    """A task with a dev row that asks what a test row asks, under another id."""

    name = "questions"

    def train(self) -> Sequence[Example]:
        return ()

    def dev(self) -> Sequence[Example]:
        return [self._row("d1", "What is two plus two?"), self._row("d2", "What is one plus one?")]

    def test(self) -> Sequence[Example]:
        return [self._row("t1", "What is two plus two?")]

    def score(self, example: Example, text: str) -> Score:
        return Score(False, None, False)

    def _row(self, id_: str, question: str) -> Example:
        return Example(self.name, id_, ({"role": "user", "content": question},))


def test_a_scored_question_is_not_asked_under_another_id(lab: ChatModel) -> None:
    task = Questions()
    sets = PromptSets(spec_of(), [column_of(task, task.test())], {}, OPTIONS, lambda index: ())
    assert [prompt.id for prompt in sets.new_task(lab, ["questions"]).prompts] == ["d2"]


def test_case_and_spaces_make_no_other_item_of_a_scored_question(lab: ChatModel) -> None:
    task = Questions()
    retold = dataclasses.replace(
        task.test()[0], id="t9", messages=({"role": "user", "content": " WHAT is  two\nplus two? "},)
    )
    sets = PromptSets(spec_of(), [column_of(task, [retold])], {}, OPTIONS, lambda index: ())
    assert [prompt.id for prompt in sets.new_task(lab, ["questions"]).prompts] == ["d2"]
    of_suite = {"elsewhere": [Item("e1", "what is TWO plus two?")]}
    sets = PromptSets(spec_of(), [column_of(task, [])], of_suite, OPTIONS, lambda index: ())
    assert [prompt.id for prompt in sets.new_task(lab, ["questions"]).prompts] == ["d2"]


def test_worked_examples_before_a_scored_question_do_not_hide_it(lab: ChatModel) -> None:
    task = Questions()
    row = task.test()[0]
    shown = ({"role": "user", "content": "What is 1?"}, {"role": "assistant", "content": "1"})
    column = column_of(task, [dataclasses.replace(row, messages=(*shown, *row.messages))])
    sets = PromptSets(spec_of(), [column], {}, OPTIONS, lambda index: ())
    assert [prompt.id for prompt in sets.new_task(lab, ["questions"]).prompts] == ["d2"]


def test_rows_that_cannot_be_read_are_a_reason_and_no_error_of_this_stage(lab: ChatModel) -> None:
    def absent(*_: Any) -> Any:
        raise DataError("the file is gone")

    task = Questions()
    column = column_of(task, task.test())
    cast(Any, task).dev = absent
    sets = PromptSets(spec_of(), [column], {}, OPTIONS, absent)
    assert sets.new_task(lab, ["questions"]).reason == "dev rows cannot be read: the file is gone"
    assert sets.training(lab, 2).reason == "the stage's rows cannot be read: the file is gone"


def prompts(model: ChatModel, ids: Sequence[str] = ("a", "b", "c"), longest: int = 6) -> PromptSet:
    found = [
        ShiftPrompt("toy", id_, model.prompt_ids([{"role": "user", "content": f"say {id_}"}]), longest) for id_ in ids
    ]
    return PromptSet("general", f"general-{longest}", tuple(found))


def test_answers_have_temperature_one_and_a_seed_that_is_not_the_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    real = sampler_for

    def spy(model: ChatModel, precision: Precision, *_: Any) -> Any:
        sampler = real(model, precision)
        generate = sampler.generate

        def record(asked: Any, settings: Any) -> Any:
            seen.append(([prompt.seed for prompt in asked], settings))
            return generate(asked, settings)

        cast(Any, sampler).generate = record
        return sampler

    monkeypatch.setattr(answers_module, "sampler_for", spy)
    model = tiny_model(0)
    specs = [spec_of(), spec_of()]
    cast(Any, specs[1]).seed = 7
    drawn = [Answers(spec, None, None).draw(model, [prompts(model)]) for spec in specs]
    assert drawn[0] == drawn[1]
    assert [settings.temperature for _, settings in seen] == [1.0, 1.0]
    assert seen[0][0] == seen[1][0] and len(set(seen[0][0])) == 3


@pytest.mark.parametrize(("precision", "passes"), [("fp32", [5]), ("bf16", [3, 2])])
def test_sets_share_batches_only_where_rows_do_not_influence_each_other(
    precision: str, passes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    def counting(model: ChatModel, chosen: Precision, *_: Any) -> Any:
        sampler = sampler_for(model, chosen)
        generate = sampler.generate

        def count(asked: Any, settings: Any) -> Any:
            seen.append(len(asked))
            return generate(asked, settings)

        cast(Any, sampler).generate = count
        return sampler

    monkeypatch.setattr(answers_module, "sampler_for", counting)
    model = tiny_model(0)
    other = dataclasses.replace(prompts(model, ("x", "y")), key="other")
    Answers(spec_of(precision=precision), None, None).draw(model, [prompts(model), other])
    assert seen == passes


def test_an_answer_does_not_depend_on_what_else_is_asked() -> None:
    model = tiny_model(0)
    one, other = prompts(model), prompts(model, ("x", "y"), 4)
    for precision in ("fp32", "bf16"):
        answers = Answers(spec_of(precision=precision), None, None)
        together = answers.draw(model, [one, other])
        assert together == {**answers.draw(model, [one]), **answers.draw(model, [other])}


def test_a_prompt_without_room_has_no_answer() -> None:
    model = tiny_model(0, context_length=40)
    long = ShiftPrompt("toy", "long", tuple(range(3, 43)), 6)
    found = PromptSet("general", "g", (*prompts(model).prompts, long))
    drawn = Answers(spec_of(), None, None).draw(model, [found])["g"]
    assert drawn[-1] == () and all(drawn[:-1])


def no_sampler(*_: Any) -> Any:
    raise AssertionError("nothing should be generated")


def test_the_untouched_models_answers_come_from_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, cache = tiny_model(0), Cache(tmp_path)
    drawn = Answers(spec_of(), cache, lambda _: ("w", "t")).of_base(model, [prompts(model)])
    monkeypatch.setattr(answers_module, "sampler_for", no_sampler)
    again = Answers(spec_of(), cache, lambda _: ("w", "t"))
    assert again.of_base(model, [prompts(model)]) == drawn
    with pytest.raises(AssertionError, match="nothing should"):
        Answers(spec_of(), cache, lambda _: ("other", "t")).of_base(model, [prompts(model)])
    with pytest.raises(AssertionError, match="nothing should"):
        again.of_base(model, [prompts(model, longest=5)])


def test_every_field_of_the_key_counts() -> None:
    key = AnswersKey("w", "t", "p", {"temperature": 1.0}, "fp32", "local", "v", {"batch_size": 16})
    other = AnswersKey("w2", "t2", "p2", {"temperature": 0.5}, "bf16", "remote", "v2", {"batch_size": 8})
    for name in key_fields(AnswersKey):
        flipped = dataclasses.replace(key, **{name: getattr(other, name)})
        assert flipped.digest() != key.digest(), name
    with pytest.raises(ValueError, match="empty"):
        dataclasses.replace(key, weights="")
