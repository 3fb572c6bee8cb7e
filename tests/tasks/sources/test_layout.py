from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cl_bench.harness.errors import DataError, UsageError
from cl_bench.tasks.sources.layout import lay_out
from tests.tasks.sources.rows import (
    competition_row,
    math_row,
    program_row,
    science_row,
    svamp_row,
    training_row,
    write_jsonl,
)


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path_factory.mktemp("datasets"))
    yield


def loaded(folder: Path, config: str | None, split: str) -> list[object]:
    from datasets import load_dataset

    return list(load_dataset(str(folder), config, split=split))


def test_a_flat_folder_becomes_what_the_library_loads_like_the_hub(tmp_path: Path) -> None:
    flat, root = tmp_path / "flat", tmp_path / "root"
    rows = {name: [science_row(n, domain=name) for n in range(3)] for name in ("chemistry", "biology")}
    for name, part in rows.items():
        write_jsonl(flat / f"science_{name}.jsonl", part)
    write_jsonl(flat / "gsm8k_train.jsonl", [math_row(1)])
    write_jsonl(flat / "gsm8k_test.jsonl", [math_row(2)])
    (flat / "notes.txt").write_text("no data")
    assert lay_out(flat, root) == [root / "hicai-zju/SciKnowEval", root / "openai/gsm8k"]
    assert loaded(root / "hicai-zju/SciKnowEval", "Chemistry", "test") == rows["chemistry"]
    assert loaded(root / "hicai-zju/SciKnowEval", "Biology", "test") == rows["biology"]
    assert loaded(root / "openai/gsm8k", "main", "train") == [math_row(1)]
    assert sorted(path.name for path in root.rglob("*") if path.is_file()) == sorted(
        ["README.md", "README.md", "test.jsonl", "test.jsonl", "test.jsonl", "train.jsonl"]
    )


def test_a_file_of_several_configurations_is_divided(tmp_path: Path) -> None:
    flat, root = tmp_path / "flat", tmp_path / "root"
    subjects = {"Counting & Probability": "counting_and_probability", "Number Theory": "number_theory"}
    rows = [training_row(n, name) for n, name in enumerate([*subjects, *subjects])]
    write_jsonl(flat / "math_train.jsonl", rows)
    write_jsonl(flat / "math500.jsonl", [competition_row(100)])
    lay_out(flat, root)
    for name, config in subjects.items():
        assert loaded(root / "EleutherAI/hendrycks_math", config, "train") == [r for r in rows if r["type"] == name]
    write_jsonl(flat / "math_train.jsonl", [training_row(1, "Algebra"), training_row(2, "Cooking")])
    with pytest.raises(DataError, match="does not say which configuration"):
        lay_out(flat, tmp_path / "other")
    assert not any(path.is_file() and "hendrycks" in str(path) for path in (tmp_path / "other").rglob("*"))


def test_an_edition_is_laid_out_when_all_its_files_are_there(tmp_path: Path) -> None:
    flat = tmp_path / "flat"
    write_jsonl(flat / "svamp.jsonl", [svamp_row(1)])
    write_jsonl(flat / "svamp_test.jsonl", [svamp_row(2)])
    lay_out(flat, tmp_path / "one")
    assert loaded(tmp_path / "one/ChilleD/SVAMP", None, "test") == [svamp_row(1)]
    write_jsonl(flat / "svamp_train.jsonl", [svamp_row(3)])
    lay_out(flat, tmp_path / "two")
    assert loaded(tmp_path / "two/ChilleD/SVAMP", None, "test") == [svamp_row(2)]
    assert loaded(tmp_path / "two/ChilleD/SVAMP", None, "train") == [svamp_row(3)]


def test_tasks_and_suites_share_a_data_set(tmp_path: Path) -> None:
    flat, root = tmp_path / "flat", tmp_path / "root"
    names = {"mbpp_train": 601, "mbpp_validation": 511, "mbpp": 11, "mbpp_fewshot": 2}
    for name, number in names.items():
        write_jsonl(flat / f"{name}.jsonl", [program_row(number)])
    lay_out(flat, root)
    found = {
        split: loaded(root / "google-research-datasets/mbpp", "full", split)[0]["task_id"]  # type: ignore[index]
        for split in ("train", "validation", "test", "prompt")
    }
    assert found == {"train": 601, "validation": 511, "test": 11, "prompt": 2}


def test_nothing_half_written_and_nothing_overwritten(tmp_path: Path) -> None:
    flat, root = tmp_path / "flat", tmp_path / "root"
    flat.mkdir()
    with pytest.raises(DataError, match="no file that a task or suite names"):
        lay_out(flat, root)
    write_jsonl(flat / "svamp.jsonl", [svamp_row(1)])
    (root / "ChilleD/SVAMP").mkdir(parents=True)
    with pytest.raises(UsageError, match="ChilleD/SVAMP already"):
        lay_out(flat, root)
    (flat / "svamp.jsonl").write_text("{broken\n")
    with pytest.raises(DataError, match=r"svamp\.jsonl, line 1"):
        lay_out(flat, tmp_path / "other")
    assert not any(path.is_file() for path in (tmp_path / "other").rglob("*"))
