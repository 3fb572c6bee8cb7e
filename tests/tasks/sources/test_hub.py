from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cl_bench.harness.errors import DataError
from cl_bench.tasks.base import SPLITS
from cl_bench.tasks.sources.base import DataOptions
from cl_bench.tasks.sources.hub import HubSource, HubTask, MixtureTask
from cl_bench.tasks.sources.locate import DatasetSpec
from tests.tasks.sources.rows import Row, math_row, science_row, tool_row, write_jsonl

SCIENCE = HubSource(
    "sciknoweval", DatasetSpec("o/science", {"test": "science.jsonl"}), system="think", chance=0.25, gold_filter=True
)


def science(root: Path, rows: list[Row], name: str = "science", **options: Any) -> HubTask:
    write_jsonl(root / f"{name}.jsonl", rows)
    source = HubSource("sciknoweval", DatasetSpec("o/science", {"test": f"{name}.jsonl"}), "think", 0.25)
    return HubTask(name, source, DataOptions("hub", root, **options))


def test_science_rows_become_examples_whose_demonstration_is_right_and_of_good_form(tmp_path: Path) -> None:
    task = science(tmp_path, [science_row(n) for n in range(100)])
    assert [len(task.split(split)) for split in SPLITS] == [72, 8, 20, 0]
    everything = [*task.train(), *task.dev(), *task.test()]
    assert len({example.id for example in everything}) == 100
    example = everything[0]
    assert [message["role"] for message in example.messages] == ["system", "user"]
    assert example.question.splitlines()[1:] == [
        "",
        *(f"{a}: {b}" for a, b in zip("ABCD", example.choices or (), strict=True)),
    ]
    assert example.choices is not None and example.answer == "B"
    for row in everything:
        score = task.score(row, row.demonstration or "")
        assert score.correct and score.format_ok
    assert task.chance == 0.25


def test_rows_of_one_question_are_on_one_side_unless_the_papers_split_is_asked_for(tmp_path: Path) -> None:
    rows = [science_row(n, question=f"Question  {n // 10}?") for n in range(100)]
    task = science(tmp_path, rows)
    sides = [{example.meta["question"] for example in task.split(split)} for split in ("train", "dev", "test")]
    assert not sides[0] & sides[1] and not sides[0] & sides[2] and not sides[1] & sides[2]
    paper = science(tmp_path, rows, split="paper")
    assert len(paper.test()) == 20
    assert {e.meta["question"] for e in paper.test()} & {e.meta["question"] for e in paper.train()}
    assert task.identity() != paper.identity()


def test_rows_that_are_no_examples_are_dropped_and_counted(tmp_path: Path) -> None:
    level = {"level": "L2", "task": "t", "subtask": "s", "source": "x"}
    odd = [
        science_row(200, details=level),
        science_row(201, type="filling", answerKey="", choices={"text": [], "label": []}),
        science_row(202, choices={"text": ["1", "1", "2", "3"], "label": list("ABCD")}),
        science_row(203, answerKey="E"),
        science_row(1, id="other id, same row"),
    ]
    task = science(tmp_path, [*(science_row(n) for n in range(20)), *odd])
    assert sum(len(task.split(split)) for split in SPLITS) == 20
    assert task.dropped == {
        "other level than L3": 1,
        "other type than four choices": 1,
        "two equal options": 1,
        "gold letter without an option": 1,
        "repeats an earlier row": 1,
    }
    assert task.identity()["dropped"] == dict(task.dropped)


def test_an_id_that_is_in_the_files_of_two_splits_is_refused(tmp_path: Path) -> None:
    def task(test_numbers: range) -> HubTask:
        write_jsonl(tmp_path / "train.jsonl", [math_row(n) for n in range(20)])
        changed = [math_row(n, question=f"Ben has {n} pens and loses none. How many?") for n in test_numbers]
        write_jsonl(tmp_path / "test.jsonl", changed)
        files = {"train": "train.jsonl", "test": "test.jsonl"}
        return HubTask("math", HubSource("gsm8k", DatasetSpec("o/math", files)), DataOptions("hub", tmp_path))

    assert len(task(range(20, 30)).test()) == 10
    with pytest.raises(DataError, match="two rows with the id 'math-19'") as caught:
        task(range(19, 30)).train()
    assert "train.jsonl" in caught.value.why and "test.jsonl" in caught.value.why


def test_type_may_be_a_list_and_ids_may_be_absent(tmp_path: Path) -> None:
    rows = [science_row(n, type=["mcq-4-choices"]) for n in range(20)]
    for row in rows:
        del row["id"]
    task = science(tmp_path, rows)
    assert len({example.id for split in SPLITS for example in task.split(split)}) == 20
    assert [e.id for e in science(tmp_path, rows).test()] == [e.id for e in task.test()]


def test_gold_ids_restrict_the_rows(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "science.jsonl", [science_row(n) for n in range(40)])
    listed = tmp_path / "gold.txt"
    listed.write_text("\n".join(f"row-{n}" for n in range(20)))
    task = HubTask("science", SCIENCE, DataOptions("hub", tmp_path, gold_ids=listed))
    assert {e.id for split in SPLITS for e in task.split(split)} == {f"row-{n}" for n in range(20)}
    with pytest.raises(DataError, match="gold ids"):
        HubTask("science", SCIENCE, DataOptions("hub", tmp_path, gold_ids=tmp_path / "absent")).train()


def test_a_file_without_usable_rows_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no train rows") as caught:
        science(tmp_path, [science_row(1, type="filling")]).train()
    assert "other type" in caught.value.why


def test_identity_changes_with_content_alone(tmp_path: Path) -> None:
    rows = [science_row(n) for n in range(20)]
    first = science(tmp_path, rows).identity()
    assert science(tmp_path / "elsewhere", rows).identity() == first
    changed = science(tmp_path, [science_row(0, question="Another question?"), *rows[1:]]).identity()
    assert changed["data"] != first["data"]


def test_tool_rows(tmp_path: Path) -> None:
    spec = DatasetSpec("o/tools", {"train": "train.jsonl", "test": "test.jsonl"}, on_hub=False)
    broken = tool_row(50, golden_answer=[{"Action": "getTide", "Action_Input": "{'port': 1}"}])
    write_jsonl(tmp_path / "train.jsonl", [*(tool_row(n) for n in range(20)), broken])
    untold = [tool_row(n) for n in range(100, 105)]
    for row in untold:
        del row["golden_response"]
    write_jsonl(tmp_path / "test.jsonl", untold)
    task = HubTask("tools", HubSource("toolalpaca", spec), DataOptions("hub", tmp_path))
    assert (len(task.train()), len(task.dev()), len(task.test())) == (18, 2, 5)
    assert task.dropped == {"gold call is not readable": 1}
    assert task.stop == ("Observation:",)
    for example in [*task.train(), *task.test()]:
        assert task.score(example, example.demonstration or "").correct
        assert not task.score(example, (example.demonstration or "").replace("Port", "Harbour")).correct


def test_math_rows(tmp_path: Path) -> None:
    spec = DatasetSpec("o/math", {"train": "train.jsonl", "test": "test.jsonl"})
    write_jsonl(tmp_path / "train.jsonl", [math_row(n) for n in range(1, 21)])
    write_jsonl(tmp_path / "test.jsonl", [math_row(n) for n in range(30, 35)])
    task = HubTask("math", HubSource("gsm8k", spec), DataOptions("hub", tmp_path))
    example = task.test()[0]
    assert example.answer == "30000"
    assert example.demonstration == "30*1000=30000 pens.\n#### 30000"
    assert task.score(example, example.demonstration).format_ok
    assert task.score(example, "30,000 pens in all.").correct


def test_any_data_set_through_named_columns(tmp_path: Path) -> None:
    rows = [{"q": f"{n}?", "options": ["x", "y"], "a": "xy"[n % 2], "why": f"because {n}"} for n in range(20)]
    write_jsonl(tmp_path / "rows.jsonl", rows)
    columns = {"question": "q", "choices": "options", "answer": "a", "demonstration": "why"}
    source = HubSource("columns-choice", DatasetSpec("o/n", {"test": "rows.jsonl"}), columns=columns)
    task = HubTask("own", source, DataOptions("hub", tmp_path))
    example = task.test()[0]
    assert example.answer in {"A", "B"} and (example.demonstration or "").startswith("because")
    assert task.score(example, f"The answer is {example.answer}").correct
    write_jsonl(tmp_path / "rows.jsonl", [*rows, {"q": "?", "options": ["x", "y"], "why": "?"}])
    with pytest.raises(DataError, match="line 21, field `a`: missing"):
        HubTask("own", source, DataOptions("hub", tmp_path)).test()


def test_a_mixture_takes_equal_parts_and_all_of_a_small_one(tmp_path: Path) -> None:
    sizes = {"one": 160, "two": 120, "three": 100, "four": 20}
    parts = [
        science(tmp_path, [science_row(n, question=f"{name} {n}?") for n in range(size)], name)
        for name, size in sizes.items()
    ]
    mixture = MixtureTask("mixture", parts)
    quota = len(parts[0].train()) // 4
    counts = [sum(e.meta["part"] == name for e in mixture.train()) for name in sizes]
    assert counts == [quota, quota, quota, len(parts[3].train())]
    assert all(example.task == "mixture" for example in mixture.train())
    assert not {e.id for e in mixture.train()} & {e.id for e in mixture.test()}
    example = mixture.test()[0]
    assert mixture.score(example, example.demonstration or "").correct
    assert len(mixture.identity()["parts"]) == 4 and mixture.chance == 0.25
