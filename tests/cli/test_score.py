"""``cl-bench score``: predictions by id, and a run's own responses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cl_bench.harness.cli import exit_code_of
from cl_bench.harness.registry import Registry
from cl_bench.tasks.base import Example
from cl_bench.tasks.sources.base import DataOptions
from tests.tasks.sources.rows import Row, science_row, write_jsonl


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
    assert counts(capsys) == {"task": "chemistry", "n": 12, "correct": 12, "parsed": 12, "format_ok": 0}


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


@pytest.mark.parametrize("arguments", [[], ["--task", "math"], ["--predictions", "x.jsonl"], ["RUN", "--task", "math"]])
def test_half_a_request_is_refused(arguments: list[str]) -> None:
    assert exit_code_of(["score", *arguments]) == 2
