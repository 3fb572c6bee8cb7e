"""Every task on real rows, as flat files and laid out like the hub. The rows are not part of the project."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from importlib.resources import files
from math import sqrt
from pathlib import Path

import pytest

from cl_bench.tasks.base import Example, Task
from cl_bench.tasks.baselines import baselines
from cl_bench.tasks.loader import load_task
from cl_bench.tasks.sources.base import DataOptions, OptionOrder
from cl_bench.tasks.sources.editions import Edition
from cl_bench.tasks.sources.hub import HubTask
from cl_bench.tasks.sources.layout import lay_out
from cl_bench.tasks.sources.locate import DatasetSpec
from cl_bench.tasks.sources.readers import READERS
from cl_bench.tasks.sources.splits import normalised
from cl_bench.tasks.sources.task_rows import HubSource

SAMPLE = os.environ.get("CL_BENCH_SAMPLE_ROWS")
pytestmark = pytest.mark.skipif(not SAMPLE, reason="CL_BENCH_SAMPLE_ROWS names no folder with real rows")

FLAT = Path(str(SAMPLE))
TASKS = Path(str(files("cl_bench.tasks")))
SCIENCES = ("chemistry", "biology", "materials", "physics")
MULTIPLE_CHOICE = (*SCIENCES, "science-mixture")
NAMES = (*MULTIPLE_CHOICE, "tool-use", "gsm8k", "svamp", "math")
OTHER_TYPES = ("filling", "true-false", "two-choices")
LETTER_FORMS = ("{}", "**{}**", "({})", "Answer: {}", "The answer is {}.", "Thus.\n<answer>\n{}\n</answer>")
NUMBER_FORMS = ("#### {}", "The answer is {}.", "So there are {} of them.")


def task_of(name: str, root: Path = FLAT, order: OptionOrder = "permuted") -> Task:
    return load_task(TASKS / f"{name}.yaml", DataOptions("hub", root, option_order=order))


def other_types(kind: str) -> HubTask:
    edition = Edition((DatasetSpec("o/n", {"test": "science_other_types.jsonl"}),))
    return HubTask(kind, HubSource(f"sciknoweval-{kind}", (edition,)), DataOptions("hub", FLAT))


def rows_of(task: Task) -> list[Example]:
    return [example for side in (task.train(), task.dev(), task.test()) for example in side]


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    root = tmp_path_factory.mktemp("hub")
    lay_out(FLAT, root)
    yield root


def forms(task: Task, example: Example) -> list[str]:
    """Texts that give the gold answer."""
    answer = example.answer or ""
    if example.choices is not None:
        own = [form.format(answer) for form in LETTER_FORMS]
    elif task.name in ("gsm8k", "svamp"):
        own = [form.format(answer) for form in NUMBER_FORMS]
    elif task.name == "math":
        own = [rf"So it is $\boxed{{{answer}}}$.", f"The answer is ${answer}$."]
    elif task.name in ("filling", "true-false"):
        own = [answer, f"The answer is {answer}"]
    else:
        own = []
    return [example.demonstration or "", *own]


@pytest.mark.parametrize("name", [*NAMES, *OTHER_TYPES])
def test_gold_answers_score_one_and_no_answer_scores_nothing(name: str) -> None:
    task = other_types(name) if name in OTHER_TYPES else task_of(name)
    for example in task.scorable():
        assert task.score(example, example.demonstration or "").format_ok, example.id
        assert not task.score(example, "").correct, example.id
        for text in forms(task, example):
            assert task.score(example, text).correct, (example.id, text)


@pytest.mark.parametrize("name", NAMES)
def test_both_layouts_give_the_same_examples(name: str, hub: Path) -> None:
    flat, folder = task_of(name), task_of(name, hub)
    for split in ("train", "dev", "test"):
        assert list(flat.split(split)) == list(folder.split(split))
    assert flat.identity() == folder.identity()


@pytest.mark.parametrize("name", MULTIPLE_CHOICE)
@pytest.mark.parametrize("order", ["permuted", "as-published"])
def test_shuffled_gold_scores_as_often_as_letters_meet(name: str, order: OptionOrder) -> None:
    task = task_of(name, order=order)
    rows = rows_of(task)
    letters = [str(example.answer) for example in rows]
    expected = sum((count / len(rows)) ** 2 for count in Counter(letters).values())
    random.Random(0).shuffle(letters)
    found = sum(task.score(example, f"The answer is {letter}.").correct
                for example, letter in zip(rows, letters, strict=True)) / len(rows)  # fmt: skip
    assert abs(found - expected) <= 3 * sqrt(expected * (1 - expected) / len(rows))


@pytest.mark.parametrize("name", NAMES)
def test_dev_and_split_test_sides_share_no_question_with_training(name: str) -> None:
    task = task_of(name)
    sides = {split: {normalised(str(example.meta["question"])) for example in task.split(split)}
             for split in ("train", "dev", "test")}  # fmt: skip
    assert all(sides.values())
    assert not sides["dev"] & (sides["train"] | sides["test"])
    if task.identity().get("split") == "group" or name == "science-mixture":
        assert not sides["train"] & sides["test"]


def test_the_order_of_options_takes_the_bias_out_of_the_letters() -> None:
    published, permuted = task_of("physics", order="as-published"), task_of("physics")
    assert Counter(example.answer for example in rows_of(published)).most_common(1)[0][0] == "B"
    biased = baselines(published.train(), rows_of(published))["majority_letter"]
    unbiased = baselines(permuted.train(), rows_of(permuted))["majority_letter"]
    assert biased is not None and unbiased is not None
    assert biased > 0.32 and abs(unbiased - 0.25) < 3 * sqrt(0.25 * 0.75 / len(rows_of(permuted)))


@pytest.mark.parametrize("name", SCIENCES)
def test_a_middle_value_is_right_more_often_than_a_guess(name: str) -> None:
    found = baselines([], rows_of(task_of(name)))["middle_value"]
    assert found is not None and found > 0.25


def test_every_type_of_the_other_rows_has_a_reader() -> None:
    tasks = [other_types(kind) for kind in OTHER_TYPES]
    assert sum(len(task.scorable()) for task in tasks) == len(
        [line for line in (FLAT / "science_other_types.jsonl").read_text(encoding="utf-8").splitlines() if line.strip()]
    )
    assert {f"sciknoweval-{kind}" for kind in OTHER_TYPES} <= set(READERS)
