"""Ids in the files of two splits, and rows that ask the same with another gold answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cl_bench.harness.errors import DataError
from cl_bench.tasks.sources.base import DataOptions
from cl_bench.tasks.sources.editions import Edition
from cl_bench.tasks.sources.hub import HubTask
from cl_bench.tasks.sources.locate import DatasetSpec
from cl_bench.tasks.sources.task_rows import HubSource
from tests.tasks.sources.rows import Row, competition_row, math_row, program_row, svamp_row, tool_row, write_jsonl

SAID = "3 x training row left out: it is in the test file too"


def without_id(row: Row) -> Row:
    return {name: value for name, value in row.items() if name != "id"}


def task(root: Path, kind: str, train: list[Row], test: list[Row]) -> HubTask:
    write_jsonl(root / "train.jsonl", train)
    write_jsonl(root / "test.jsonl", test)
    spec = DatasetSpec("o/n", {"train": "train.jsonl", "test": "test.jsonl"})
    return HubTask("mine", HubSource(kind, (Edition((spec,)),)), DataOptions("hub", root))


KINDS = [("gsm8k", math_row), ("svamp", svamp_row), ("mbpp", program_row), ("math", competition_row)]


@pytest.mark.parametrize(("kind", "row"), KINDS)
def test_rows_of_both_files_are_left_out_of_training(tmp_path: Path, kind: str, row: Callable[..., Row]) -> None:
    for shape in (dict, without_id):
        found = task(tmp_path, kind, [shape(row(n)) for n in range(3, 23)], [shape(row(n)) for n in range(20, 30)])
        sides = [{example.id for example in found.split(split)} for split in ("train", "dev", "test")]
        assert (len(sides[0] | sides[1]), len(sides[2])) == (17, 10) and not (sides[0] | sides[1]) & sides[2]
        assert found.remarks == (SAID,) and found.dropped == {"is in the test file too": 3}
        assert len(found.scorable()) == 27


@pytest.mark.parametrize(
    ("kind", "train", "test"),
    [
        ("gsm8k", math_row(19), math_row(19, question="Ben has 19 pens and loses none. How many?")),
        ("gsm8k", math_row(19), math_row(19, answer="Wrong.\n#### 5")),
        ("svamp", without_id(svamp_row(19)), without_id(svamp_row(19, Body="Eve had 19 pens and lost 2 of them"))),
        ("mbpp", without_id(program_row(19)), without_id(program_row(19, text="Add."))),
    ],
)
def test_an_id_of_two_rows_that_differ_is_refused(tmp_path: Path, kind: str, train: Row, test: Row) -> None:
    rows = {"gsm8k": math_row, "svamp": svamp_row, "mbpp": program_row}[kind]
    shape = without_id if "id" not in train else dict
    others = [shape(rows(n)) for n in range(20, 60)]
    with pytest.raises(DataError, match="two rows with the id '[a-z]+-19'") as caught:
        task(tmp_path, kind, [train, *others[:20]], [test, *others[20:]]).train()
    assert "train.jsonl" in caught.value.why and "test.jsonl" in caught.value.why
    if "id" not in train:
        with pytest.raises(DataError, match="two rows with the id") as caught:
            task(tmp_path, kind, [train, test, *others[:20]], others[20:]).train()
        assert "test.jsonl" not in caught.value.why


def test_a_question_in_both_files_with_another_gold_stays_in_the_test_file_alone(tmp_path: Path) -> None:
    test = [without_id(math_row(n)) for n in range(20, 30)]
    train = [without_id(math_row(n, answer="Wrong.\n#### 5")) for n in range(3, 23)]
    found = task(tmp_path, "gsm8k", train, test)
    assert len(found.test()) == 10 and found.remarks == (SAID,)


@pytest.mark.parametrize(
    ("kind", "rows", "other"),
    [
        ("gsm8k", math_row, {"answer": "Wrong.\n#### 5"}),
        ("svamp", svamp_row, {"Answer": 5.5}),
        ("math", competition_row, {"answer": "7", "solution": r"$\boxed{7}$"}),
        ("toolalpaca", tool_row, {"golden_answer": [{"Action": "getTide", "Action_Input": "{}"}]}),
    ],
)
def test_rows_that_contradict_each_other_are_both_left_out(
    tmp_path: Path, kind: str, rows: Callable[..., Row], other: Row
) -> None:
    training = [
        *(rows(n) for n in range(3, 23)),
        rows(7, id="other", ID="other", **other),
        rows(8, id="again", ID="again"),
    ]
    found = task(tmp_path, kind, training, [rows(n) for n in range(30, 40)])
    kept = {example.id for split in ("train", "dev") for example in found.split(split)}
    assert len(kept) == 19 and not kept & {rows(7)["id"], "other", "again"}
    assert found.dropped == {
        "gold contradicts that of another row with the same question and options": 2,
        "repeats an earlier row": 1,
    }


def test_gold_answers_of_one_value_do_not_contradict(tmp_path: Path) -> None:
    other = competition_row(8, id="other", answer="4", solution=r"Half of $8$ is $\boxed{4}$.")
    program = program_row(8, id="other", code="def add_8(y):\n  return 0  # nobody runs it")
    for kind, rows, again in (("math", competition_row, other), ("mbpp", program_row, program)):
        found = task(tmp_path, kind, [*(rows(n) for n in range(3, 23)), again], [rows(n) for n in range(30, 40)])
        assert found.dropped == {"repeats an earlier row": 1}
