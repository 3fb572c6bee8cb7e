"""``cl-bench score``: predictions by id, and a run's own responses."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from cl_bench.harness.cli import exit_code_of
from cl_bench.harness.commands.output_file import check_output
from cl_bench.harness.errors import UsageError
from cl_bench.harness.registry import Registry
from cl_bench.tasks.base import Example
from cl_bench.tasks.sources.base import DataOptions
from tests.tasks.sources.rows import Row, program_row, science_row, write_jsonl


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_jsonl(
        tmp_path / "science_chemistry.jsonl", (row_with_gold(number, "ABCD"[number % 4]) for number in range(12))
    )
    return tmp_path


def row_with_gold(number: int, letter: str) -> Row:
    options = [str(number + difference) for difference in (1, 2, 3)]
    options.insert("ABCD".index(letter), str(number))
    return science_row(number, answerKey=letter, choices={"text": options, "label": list("ABCD")})


def gold(root: Path) -> dict[str, str]:
    """Letters as published, by id."""
    lines = (root / "science_chemistry.jsonl").read_text().splitlines()
    return {row["id"]: row["answerKey"] for row in map(json.loads, lines)}


def written(root: Path, texts: dict[str, str]) -> Path:
    path = root / "predictions.jsonl"
    path.write_text("".join(json.dumps({"id": name, "text": text}) + "\n" for name, text in texts.items()))
    return path


def score(root: Path, texts: dict[str, str], *more: str) -> tuple[int, ...]:
    path = written(root, texts)
    return (
        exit_code_of(["score", "--task", "chemistry", "--predictions", str(path), "--data-root", str(root), *more]),
    )


def counts(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    out = capsys.readouterr().out.strip().splitlines()
    assert len(out) == 1
    found: dict[str, Any] = json.loads(out[0])
    return found


@pytest.mark.parametrize("form", ["**{}**", "({})", "Answer: {}", "The answer is {}", "<answer>{}</answer>"])
def test_letters_refer_to_the_published_order(root: Path, form: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert score(root, {name: form.format(letter) for name, letter in gold(root).items()}, "--json") == (0,)
    asked = {"task": "chemistry", "n": 12, "correct": 12, "parsed": 12, "format_ok": 0}
    assert counts(capsys) == asked


def test_letters_of_our_own_prompts_refer_to_the_permuted_order(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    task = Registry().task("chemistry", DataOptions("hub", root))
    texts = {example.id: f"<answer>{example.answer}</answer>" for example in task.scorable()}
    assert score(root, texts, "--json", "--option-order", "permuted") == (0,)
    assert counts(capsys)["correct"] == 12


def test_a_row_without_a_prediction_is_wrong_and_named(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = gold(root)
    left_out = texts.popitem()[0]
    assert score(root, texts, "--json") == (0,)
    captured = capsys.readouterr()
    assert json.loads(captured.out)["n"] == 12
    assert json.loads(captured.out)["correct"] == 11
    assert left_out in captured.err


def test_rows_that_ask_the_same_are_all_scored(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = root / "science_chemistry.jsonl"
    first = json.loads(path.read_text().splitlines()[0])
    path.write_text(path.read_text() + json.dumps(first | {"id": "again"}) + "\n")
    assert score(root, gold(root), "--json") == (0,)
    assert (found := counts(capsys))["n"] == 13 and found["correct"] == 13


def test_an_unknown_id_is_refused(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert score(root, gold(root) | {"nobody": "A"}) == (2,)
    assert "nobody" in capsys.readouterr().err


def test_a_doubled_id_is_refused_with_its_line(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(root, gold(root))
    path.write_text(path.read_text() + path.read_text().splitlines()[3] + "\n")
    arguments = ["score", "--task", "chemistry", "--predictions", str(path), "--data-root", str(root)]
    assert exit_code_of(arguments) == 2
    assert "line 13" in capsys.readouterr().err


@pytest.mark.parametrize("line", ['{"id": "x"}', '{"id": 3, "text": "A"}', '{"id": "x", "text": null}', "[]", "{"])
def test_a_broken_line_is_refused_with_its_number(root: Path, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = root / "broken.jsonl"
    path.write_text(line + "\n")
    assert exit_code_of(["score", "--task", "chemistry", "--predictions", str(path), "--data-root", str(root)]) == 2
    assert "line 1" in capsys.readouterr().err


def test_the_output_file_has_a_score_for_every_row(root: Path) -> None:
    texts = gold(root)
    first = next(iter(texts))
    texts[first] = "no idea"
    out = root / "scores.jsonl"
    assert score(root, texts, "--output", str(out)) == (0,)
    rows = {row["id"]: row for row in map(json.loads, out.read_text().splitlines())}
    assert set(rows) == set(texts)
    assert rows[first] == {"id": first, "correct": False, "parsed": None, "format_ok": False}


def test_rows_of_one_split_alone(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    task = Registry().task("chemistry", DataOptions("hub", root, option_order="as-published"))
    texts = {example.id: str(example.answer) for example in task.test()}
    assert score(root, texts, "--json", "--split", "test") == (0,)
    assert counts(capsys)["n"] == len(texts)


def test_the_lab_is_scored_where_no_data_root_is_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows: list[Example] = list(Registry().task("math", DataOptions()).test())
    path = written(tmp_path, {row.id: str(row.demonstration) for row in rows})
    assert exit_code_of(["score", "--task", "math", "--predictions", str(path), "--split", "test", "--json"]) == 0
    found = counts(capsys)
    assert found["correct"] == found["n"] == len(rows)


def split_of(root: Path, split: str) -> list[Example]:
    task = Registry().task("chemistry", DataOptions("hub", root))
    return list({"train": task.train, "dev": task.dev, "test": task.test}[split]())


def test_predictions_of_other_splits_are_told_from_those_of_no_row(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert score(root, gold(root) | {"nobody": "A"}, "--split", "test") == (2,)
    said = capsys.readouterr().err
    train, dev, test = (split_of(root, split) for split in ("train", "dev", "test"))
    assert f"{len(train) + len(dev) + 1} of 13 predictions" in said and "the test split of chemistry" in said
    assert f"{len(train)} are rows of train, such as {train[0].id!r}" in said and "of dev, such as" in said
    assert "1 is not of this task, such as 'nobody'" in said
    assert f"has {len(test)} rows, such as {test[0].id!r}" in said
    assert "leave --split out" in said and "cl-bench data rows chemistry" in said


def test_rows_that_the_task_leaves_out_are_named_so(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = root / "science_chemistry.jsonl"
    broken = science_row(99, answerKey="E")
    path.write_text(path.read_text() + json.dumps(broken) + "\n")
    assert score(root, gold(root)) == (2,)
    said = capsys.readouterr().err
    assert "1 is left out of the task (gold letter without an option), such as 'row-99'" in said
    assert "not of this task" not in said


def test_rows_that_a_mixture_does_not_take_are_named_so(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("biology", "material", "physics"):
        write_jsonl(root / f"science_{name}.jsonl", (science_row(number) for number in range(100, 130)))
    name = "science-mixture"
    assert exit_code_of(["data", "rows", name, "--data-root", str(root)]) == 0
    taken = [json.loads(line)["id"] for line in capsys.readouterr().out.splitlines()]
    parts = {f"physics/row-{number}" for number in range(100, 130)}
    other = next(iter(sorted(parts - set(taken))))
    path = written(root, dict.fromkeys([*taken, other], "A"))
    assert exit_code_of(["score", "--task", name, "--predictions", str(path), "--data-root", str(root)]) == 2
    assert f"left out of the task (not among the rows that the mixture takes of this part), such as {other!r}" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize("text", ["\ud800", "B \udfff", "\ud83d answer B"])
def test_half_a_surrogate_pair_is_scored_as_any_other_text(
    root: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = gold(root)
    first = next(iter(texts))
    out = root / "scores.jsonl"
    assert score(root, texts | {first: text}, "--json", "--output", str(out)) == (0,)
    assert counts(capsys)["n"] == 12
    assert len([json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]) == 12


def test_half_a_surrogate_pair_that_was_read_is_written_as_an_escape(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = list(Registry().task("tool-use", DataOptions()).test())
    out = tmp_path / "scores.jsonl"
    path = written(tmp_path, {row.id: "get(x='\ud800')" for row in rows})
    arguments = ["score", "--task", "tool-use", "--predictions", str(path), "--split", "test"]
    assert exit_code_of([*arguments, "--output", str(out), "--json"]) == 0
    assert len([json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]) == len(rows)


def test_an_output_that_is_an_input_is_refused_and_untouched(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = gold(root)
    predictions, data = written(root, texts), root / "science_chemistry.jsonl"
    (root / "link.jsonl").symlink_to(data)
    before = {path: path.read_bytes() for path in (predictions, data)}
    for path in (predictions, data, root / "link.jsonl", root / ".." / root.name / predictions.name):
        assert score(root, texts, "--output", str(path)) == (2,)
    assert {path: path.read_bytes() for path in (predictions, data)} == before


def test_nothing_is_written_into_the_run_that_is_scored(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    with pytest.raises(UsageError, match="in which nothing is changed"):
        check_output(tmp_path / "run" / "scores.json", fixed=tmp_path / "run")
    assert not any((tmp_path / "run").iterdir())
    check_output(tmp_path / "scores.json", fixed=tmp_path / "run")


@pytest.mark.parametrize("output", [".", "absent/scores.jsonl", "science_chemistry.jsonl/scores.jsonl", "pipe"])
def test_an_output_that_cannot_be_written_is_refused_before_the_work(
    root: Path, output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(root / "pipe")
    before = sorted(root.rglob("*"))
    path = written(root, gold(root))
    arguments = ["score", "--task", "no-such-task", "--predictions", str(path), "--output", str(root / output)]
    assert exit_code_of(arguments) == 2
    said = capsys.readouterr().err
    assert f"--output {root / output}" in said and ".tmp-" not in said
    assert sorted(found for found in root.rglob("*") if found != path) == before


def test_the_table_names_chance_and_order_and_the_remarks_go_to_stderr(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert score(root, gold(root)) == (0,)
    captured = capsys.readouterr()
    assert "letters refer to the options as published" in captured.out
    assert any(line.split()[:2] == ["chance", "25.0"] for line in captured.out.splitlines())
    assert "task chemistry: 12 of the 3,542 rows of its kind are there" in captured.err


def test_programs_are_not_run_unasked_and_no_sequence_is_spoken_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_jsonl(tmp_path / "mbpp_train.jsonl", (program_row(number) for number in range(20)))
    path = written(tmp_path, {"program-1": "x"})
    for command in (["score", "--task", "coding", "--predictions", str(path)], ["validate", "task", "coding"]):
        assert exit_code_of([*command, "--data-root", str(tmp_path)]) == 2
        said = capsys.readouterr().err
        assert "--allow-code-execution" in said and "sequence" not in said


@pytest.mark.parametrize("arguments", [[], ["--task", "math"], ["--predictions", "x.jsonl"], ["RUN", "--task", "math"]])
def test_half_a_request_is_refused(arguments: list[str]) -> None:
    assert exit_code_of(["score", *arguments]) == 2
