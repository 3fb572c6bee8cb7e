from __future__ import annotations

import hashlib
import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from cl_bench.harness.errors import DataError
from cl_bench.tasks.base import SPLITS
from cl_bench.tasks.sources.base import DataOptions
from cl_bench.tasks.sources.editions import Edition
from cl_bench.tasks.sources.hub import HubTask
from cl_bench.tasks.sources.locate import DatasetSpec
from cl_bench.tasks.sources.task_rows import HubSource
from tests.tasks.sources.rows import Row, competition_row, science_row, tool_row, write_jsonl


def source(kind: str, *files: str, **settings: Any) -> HubSource:
    """One data set; the last file is the test split, the one before it the training split."""
    splits = dict(zip(("train", "test")[-len(files) :], files, strict=True))
    return HubSource(kind, (Edition((DatasetSpec("o/n", splits),)),), **settings)


def science(root: Path, rows: list[Row], **options: Any) -> HubTask:
    write_jsonl(root / "science.jsonl", rows)
    described = source("sciknoweval", "science.jsonl", system="think", chance=0.25, gold_filter=True)
    return HubTask("science", described, DataOptions("hub", root, **options))


def everything(task: HubTask) -> list[Any]:
    return [example for split in SPLITS for example in task.split(split)]


def test_science_rows_become_examples_whose_demonstration_is_right_and_of_good_form(tmp_path: Path) -> None:
    task = science(tmp_path, [science_row(n) for n in range(100)])
    assert [len(task.split(split)) for split in SPLITS] == [72, 8, 20, 0]
    examples = everything(task)
    assert len({example.id for example in examples}) == 100
    example = examples[0]
    assert [message["role"] for message in example.messages] == ["system", "user"]
    assert example.question.splitlines()[1:] == [
        "",
        *(f"{a}: {b}" for a, b in zip("ABCD", example.choices or (), strict=True)),
    ]
    for row in examples:
        score = task.score(row, row.demonstration or "")
        assert score.correct and score.format_ok
        assert row.choices["ABCD".index(row.answer)] == row.id.removeprefix("row-")
    assert task.chance == 0.25 and not task.executes_code


def test_the_order_of_options_is_a_setting_that_changes_no_id_and_no_side(tmp_path: Path) -> None:
    rows = [science_row(n) for n in range(100)]
    permuted, published = science(tmp_path, rows), science(tmp_path, rows, option_order="as-published")
    assert {example.answer for example in everything(published)} == {"B"}
    assert {example.answer for example in everything(permuted)} == set("ABCD")
    for split in SPLITS:
        assert [e.id for e in permuted.split(split)] == [e.id for e in published.split(split)]
    assert permuted.identity()["option_order"] == "permuted"
    assert permuted.identity()["data"] != published.identity()["data"]


def test_the_version_of_a_library_that_decides_verdicts_is_in_the_identity(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "problems.jsonl", [competition_row(n) for n in range(10)])
    task = HubTask("math", source("math", "problems.jsonl"), DataOptions("hub", tmp_path))
    assert task.identity()["packages"] == {"math-verify": version("math-verify")}
    assert "packages" not in science(tmp_path, [science_row(n) for n in range(10)]).identity()


def test_rows_of_one_question_are_on_one_side_unless_the_papers_split_is_asked_for(tmp_path: Path) -> None:
    rows = [science_row(n, question=f"Question  {n // 10}?") for n in range(100)]
    task = science(tmp_path, rows)
    sides = [{example.meta["question"] for example in task.split(split)} for split in ("train", "dev", "test")]
    assert not sides[0] & sides[1] and not sides[0] & sides[2] and not sides[1] & sides[2]
    paper = science(tmp_path, rows, split="paper")
    assert len(paper.test()) == 20
    assert {e.meta["question"] for e in paper.test()} & {e.meta["question"] for e in paper.train()}
    assert task.identity() != paper.identity()


def test_the_papers_split_is_of_all_rows_as_published(tmp_path: Path) -> None:
    again = [science_row(n) for n in range(20)]
    rows = [
        *(science_row(n) for n in range(100)),
        *again,
        science_row(3, answerKey="C"),
        science_row(5, type="filling"),
    ]
    for row in rows:
        del row["id"]
    paper, grouped = science(tmp_path, rows, split="paper"), science(tmp_path, rows)
    sides = [{e.meta["question"] for e in (*paper.train(), *paper.dev())}, {e.meta["question"] for e in paper.test()}]
    assert (len(paper.train()) + len(paper.dev()), len(paper.test())) == (round(0.8 * 121), 24)
    assert paper.dropped == {"other type than four choices": 1}
    assert len({e.id for e in everything(paper)}) == len(everything(paper)) == len(paper.scorable()) == 121
    shared = len(sides[0] & sides[1])
    assert shared and paper.remarks == (f"{shared} questions are on both sides of the paper's split, which is by rows",)
    assert len(everything(grouped)) == 99 and grouped.remarks == ()


def test_rows_that_are_no_examples_are_dropped_and_counted(tmp_path: Path) -> None:
    level = {"level": "L2", "task": "t", "subtask": "s", "source": "x"}
    turned = {"text": ["4", "3", "1", "2"], "label": list("ABCD")}
    odd = [
        science_row(200, details=level),
        science_row(201, type="filling", answerKey="", choices={"text": [], "label": []}),
        science_row(202, choices={"text": ["1", "1", "2", "3"], "label": list("ABCD")}),
        science_row(203, choices={"text": ["1", "2", "3"], "label": list("ABC")}),
        science_row(204, answerKey="E"),
        science_row(205, answerKey=""),
        science_row(206, answerKey="AB"),
        science_row(1, id="the same row again"),
        science_row(1, id="the same row, options turned", choices=turned, answerKey="C"),
        science_row(2, id="row 2 with another gold", answerKey="C"),
    ]
    task = science(tmp_path, [*(science_row(n) for n in range(20)), *odd])
    assert {example.id for example in everything(task)} == {f"row-{n}" for n in range(20) if n != 2}
    assert task.dropped == {
        "other level than L3": 1,
        "other type than four choices": 1,
        "two equal options": 1,
        "not 4 options": 1,
        "gold letter without an option": 3,
        "repeats an earlier row": 2,
        "gold contradicts that of another row with the same question and options": 2,
    }
    assert task.identity()["dropped"] == dict(task.dropped)


def test_rows_that_ask_the_same_can_still_be_scored_by_their_id(tmp_path: Path) -> None:
    turned = {"text": ["4", "3", "1", "2"], "label": list("ABCD")}
    again = [science_row(1, id="turned", choices=turned, answerKey="C"), science_row(2, id="other", answerKey="C")]
    for order in ("permuted", "as-published"):
        task = science(tmp_path, [*(science_row(n) for n in range(20)), *again], option_order=order)
        rows = {example.id: example for example in task.scorable()}
        assert set(rows) == {f"row-{n}" for n in range(20)} | {"turned", "other"}
        assert all(task.score(row, f"The answer is {row.answer}").correct for row in rows.values())
    assert (rows["row-2"].answer, rows["other"].answer) == ("B", "C")


def test_type_may_be_a_list_and_ids_may_be_absent(tmp_path: Path) -> None:
    rows = [science_row(n, type=["mcq-4-choices"]) for n in range(20)]
    for row in rows:
        del row["id"]
    task = science(tmp_path, rows)
    assert len({example.id for example in everything(task)}) == 20
    assert [e.id for e in science(tmp_path, rows).test()] == [e.id for e in task.test()]
    assert [e.id for e in science(tmp_path, rows, option_order="as-published").test()] == [e.id for e in task.test()]


def test_gold_ids_restrict_the_rows(tmp_path: Path) -> None:
    listed = tmp_path / "gold.txt"
    listed.write_text("\n".join(["again", *(f"row-{n}" for n in range(1, 20))]))
    rows = [*(science_row(n) for n in range(40)), science_row(0, id="again")]
    task = science(tmp_path, rows, gold_ids=listed)
    # The listed one of two equal rows is kept, whichever comes first.
    assert {e.id for e in everything(task)} == {"again", *(f"row-{n}" for n in range(1, 20))}
    assert task.dropped == {"not in the list of gold ids": 21}
    listed.write_text(" ".join(f"row-{n}" for n in range(1, 11)), encoding="utf-8-sig")
    assert len(everything(science(tmp_path, rows, gold_ids=listed))) == 10
    with pytest.raises(DataError, match="gold ids"):
        science(tmp_path, rows, gold_ids=tmp_path / "absent").train()
    listed.write_text("\n")
    with pytest.raises(DataError, match="gold ids .* lists none"):
        science(tmp_path, rows, gold_ids=listed).train()


def test_listed_ids_that_are_no_rows_are_said(tmp_path: Path) -> None:
    listed = tmp_path / "gold.txt"
    rows = [*(science_row(n) for n in range(40)), science_row(40, answerKey="")]
    listed.write_text("\n".join([*(f"row-{n}" for n in range(20)), "row-40", "row-41", "no-row"]))
    assert science(tmp_path, rows, gold_ids=listed).remarks == ("2 listed ids are no row of this task",)
    listed.write_text("row-41")
    with pytest.raises(DataError, match="no listed id is a row of the task science") as caught:
        science(tmp_path, rows, gold_ids=listed).train()
    assert "first 16 hexadecimal digits" in caught.value.hint


def test_rows_without_ids_are_listed_by_the_hash_that_the_hint_describes(tmp_path: Path) -> None:
    rows = [science_row(n) for n in range(40)]
    for row in rows:
        del row["id"]
    contents = [json.dumps([row["question"], row["choices"]["text"]], ensure_ascii=False) for row in rows[:20]]
    listed = tmp_path / "gold.txt"
    listed.write_text("\n".join(hashlib.sha256(content.encode()).hexdigest()[:16] for content in contents))
    task = science(tmp_path, rows, gold_ids=listed)
    assert {e.meta["question"] for e in everything(task)} == {row["question"] for row in rows[:20]}


def test_a_file_without_usable_rows_is_an_error(tmp_path: Path) -> None:
    task = science(tmp_path, [science_row(1, type="filling")])
    for _ in range(2):  # asking again counts nothing twice
        with pytest.raises(DataError, match="no train rows") as caught:
            task.train()
        assert "'other type than four choices': 1" in caught.value.why


def test_no_split_may_be_empty(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no dev rows") as caught:
        science(tmp_path, [science_row(n) for n in range(5)]).test()
    assert "more rows" in caught.value.hint
    assert [len(science(tmp_path, [science_row(n) for n in range(9)]).split(split)) for split in SPLITS] == [6, 1, 2, 0]


def test_rows_of_another_subject_are_another_kind(tmp_path: Path) -> None:
    rows = [science_row(n, domain=("Chemistry", "Physics")[n % 2]) for n in range(40)]
    write_jsonl(tmp_path / "flat" / "x.jsonl", rows)
    for subject in ("Chemistry", "physics"):
        path = tmp_path / "hub" / "o" / "n" / "data" / subject / f"x_{subject}_test.jsonl"
        write_jsonl(path, [row for row in rows if str(row["domain"]).lower() == subject.lower()])
    for root in ("flat", "hub"):
        described = HubSource(
            "sciknoweval",
            (Edition((DatasetSpec("o/n", {"test": "x.jsonl"}, "Chemistry"),), expected_rows={"test": 20}),),
        )
        task = HubTask("chemistry", described, DataOptions("hub", tmp_path / root))
        assert {example.id for example in everything(task)} == {f"row-{n}" for n in range(0, 40, 2)}
        assert task.dropped == ({"other subject than Chemistry": 20} if root == "flat" else {}) and not task.remarks


def test_remarks_count_the_rows_that_are_kept(tmp_path: Path) -> None:
    wrong = [science_row(n, golden_response="<answer>\nC\n</answer>") for n in range(20)]
    again = [row | {"id": f"again-{place}"} for place, row in enumerate(wrong[:5])]
    contradicted = science_row(7, id="other", answerKey="D", golden_response="<answer>\nC\n</answer>")
    task = science(tmp_path, [*wrong, *again, contradicted])
    assert task.remarks == ("19 x worked answer without the gold answer; the bare gold answer stands in for it",)


def test_identity_changes_with_content_alone(tmp_path: Path) -> None:
    rows = [science_row(n) for n in range(20)]
    first = science(tmp_path, rows).identity()
    assert science(tmp_path / "elsewhere", rows).identity() == first
    changed = science(tmp_path, [science_row(0, question="Another question?"), *rows[1:]]).identity()
    assert changed["data"] != first["data"]
    assert first["test_set"] == {"name": "o/n", "rows": 4}


def test_dev_rows_of_tasks_with_files_come_from_the_training_file(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "train.jsonl", [tool_row(n) for n in range(20)])
    write_jsonl(tmp_path / "test.jsonl", [tool_row(n) for n in range(100, 105)])
    task = HubTask("tools", source("toolalpaca", "train.jsonl", "test.jsonl"), DataOptions("hub", tmp_path))
    assert (len(task.train()), len(task.dev()), len(task.test())) == (18, 2, 5)
    assert {e.id for e in (*task.train(), *task.dev())} == {f"tool-{n}" for n in range(20)}
    assert task.stop == ("Observation:",)
    assert task.identity()["split"] == "files" and "option_order" not in task.identity()


def test_any_data_set_through_named_columns(tmp_path: Path) -> None:
    rows = [{"q": f"{n}?", "options": ["x", "y"], "a": "xy"[n % 2], "why": f"because {n}"} for n in range(20)]
    write_jsonl(tmp_path / "rows.jsonl", rows)
    columns = {"question": "q", "choices": "options", "answer": "a"}
    described = source("columns-choice", "rows.jsonl", columns=columns)
    task = HubTask("own", described, DataOptions("hub", tmp_path))
    for example in everything(task):
        gold = (example.choices or ())["AB".index(example.answer)]
        assert gold == "xy"[int(example.meta["question"].removesuffix("?")) % 2]
        assert task.score(example, f"The answer is {example.answer}").correct
    write_jsonl(tmp_path / "rows.jsonl", [*rows, {"q": "?", "options": ["x", "y"], "why": "?"}])
    with pytest.raises(DataError, match="line 21, field `a`: missing"):
        HubTask("own", described, DataOptions("hub", tmp_path)).test()
    write_jsonl(tmp_path / "rows.jsonl", rows)
    worked = source("columns-exact", "rows.jsonl", columns={"question": "q", "answer": "a", "demonstration": "why"})
    assert (HubTask("own", worked, DataOptions("hub", tmp_path)).test()[0].demonstration or "").startswith("because")
