"""``cl-bench data`` on rows that lie in a folder: which splits are there, and the prompts and ids of a task."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Cli
from tests.tasks.sources.rows import program_row, science_row, write_jsonl

MBPP = "google-research-datasets/mbpp"
PRO = {"question_id": 1, "question": "Which?", "options": ["x", "y"], "answer": "A", "category": "law"}


def test_a_folder_that_lacks_a_split_is_no_local_data_set_of_those_who_read_it(cli: Cli, tmp_path: Path) -> None:
    flat = {"mbpp": 11, "mbpp_fewshot": 2}
    for name, number in flat.items():
        write_jsonl(tmp_path / "flat" / f"{name}.jsonl", [program_row(number)])
    write_jsonl(tmp_path / "flat" / "mmlu_pro.jsonl", [PRO])
    assert cli("data", "layout", "flat", "root").code == 0
    rows = json.loads(cli("data", "list", "coding", "retention-14", "--data-root", "root", "--json").out)
    found = {(row["path"], tuple(row["splits"])): row for row in rows if row["path"] in (MBPP, "TIGER-Lab/MMLU-Pro")}
    assert {key: row["state"] for key, row in found.items()} == {
        (MBPP, ("train", "validation")): "absent",
        (MBPP, ("test", "prompt")): "local",
        ("TIGER-Lab/MMLU-Pro", ("test",)): "local",
        ("TIGER-Lab/MMLU-Pro", ("validation",)): "absent",
    }
    assert "no split 'train'; it has test, prompt" in found[MBPP, ("train", "validation")]["detail"]
    table = cli("data", "list", "coding", "retention-14", "--data-root", "root").out
    assert f"{MBPP} (full): train, validation" in table and f"{MBPP} (full): test, prompt" in table
    assert "absent (optional)" in next(line for line in table.splitlines() if "MMLU-Pro: validation" in line)
    done = cli("validate", "task", "coding", "--data-root", "root", "--allow-code-execution")
    assert done.code == 2 and "no split 'train'" in done.err and "data prepare google-research-datasets" in done.err


def test_rows_are_what_score_takes(cli: Cli, tmp_path: Path) -> None:
    root = tmp_path / "files"
    rows = [science_row(number) for number in range(12)]
    write_jsonl(root / "science_chemistry.jsonl", [*rows, rows[3] | {"id": "again"}])
    done = cli("data", "rows", "chemistry", "--data-root", "files")
    lines = [json.loads(line) for line in done.out.splitlines()]
    assert done.code == 0 and all(list(line) == ["id", "split", "messages", "choices"] for line in lines)
    assert len(lines) == 13 and next(line["split"] for line in lines if line["id"] == "again") is None
    assert {line["split"] for line in lines} == {"train", "dev", "test", None}
    published = {row["id"]: row["choices"]["text"] for row in rows}
    assert all(line["choices"] == published.get(line["id"], published["row-3"]) for line in lines)
    assert all(line["messages"][-1]["content"].endswith("D: " + line["choices"][3]) for line in lines)
    for order in ("as-published", "permuted"):
        options = ("chemistry", "--data-root", "files", "--option-order", order)
        answered = [json.loads(line) for line in cli("data", "rows", *options, "--answers").out.splitlines()]
        write_jsonl(tmp_path / "predictions.jsonl", [{"id": row["id"], "text": row["answer"]} for row in answered])
        scored = cli("score", "--task", *options, "--predictions", "predictions.jsonl", "--json")
        assert json.loads(scored.out)["correct"] == json.loads(scored.out)["n"] == 13
    assert answered[0]["choices"] != lines[0]["choices"] or answered[1]["choices"] != lines[1]["choices"]
    test = cli("data", "rows", "chemistry", "--data-root", "files", "--split", "test", "--limit", "1").out.splitlines()
    assert [json.loads(line)["split"] for line in test] == ["test"]
    lab = cli("data", "rows", "math", "--limit", "2").out.splitlines()
    assert len(lab) == 2 and json.loads(lab[0])["choices"] is None
    assert cli("data", "rows", "gsm8k").code == 2
