from __future__ import annotations

from pathlib import Path

import pytest

from cl_bench.harness.errors import DataError
from cl_bench.tasks.sources.base import DataOptions
from cl_bench.tasks.sources.locate import AbsentDataError, DatasetSpec, data_identity, load_rows, locate
from tests.tasks.sources.rows import math_row, write_hub_folder, write_jsonl

SPEC = DatasetSpec(
    "owner/name",
    {"train": "a_train.jsonl", "test": "a_test.jsonl"},
    config="main",
    fields={"question": "str", "answer": "str"},
)


def flat(root: Path) -> None:
    write_jsonl(root / "a_train.jsonl", [math_row(1), math_row(2)])
    write_jsonl(root / "a_test.jsonl", [math_row(3)])


def test_flat_files_and_hub_shaped_folder_give_the_same_rows(tmp_path: Path) -> None:
    flat(tmp_path / "flat")
    rows = {"train": [math_row(1), math_row(2)], "test": [math_row(3)]}
    other = {"train": [math_row(8)], "test": [math_row(9)]}
    write_hub_folder(tmp_path / "hub", "owner/name", {"main": rows, "other": other})
    for folder in ("flat", "hub"):
        options = DataOptions("hub", tmp_path / folder)
        assert load_rows(SPEC, "train", options) == rows["train"]
        assert load_rows(SPEC, "test", options) == rows["test"]


def test_splits_may_have_another_name_on_the_hub(tmp_path: Path) -> None:
    write_hub_folder(tmp_path, "owner/name", {"main": {"validation": [math_row(3)]}})
    spec = DatasetSpec("owner/name", {"test": "x.jsonl"}, "main", fields=SPEC.fields, splits={"test": "validation"})
    assert load_rows(spec, "test", DataOptions("hub", tmp_path)) == [math_row(3)]


def test_a_broken_row_in_a_hub_shaped_folder_is_named_with_its_line(tmp_path: Path) -> None:
    broken = {"id": "x", "question": "q"}
    write_hub_folder(tmp_path, "owner/name", {"main": {"train": [math_row(1), broken], "test": [math_row(3)]}})
    for attempt in (lambda o: load_rows(SPEC, "train", o), lambda o: data_identity(SPEC, o)):
        with pytest.raises(DataError, match=r"main/train\.jsonl, line 2, field `answer`: missing"):
            attempt(DataOptions("hub", tmp_path))


def test_absent_data_says_what_was_looked_for(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "a_train.jsonl", [math_row(1)])
    with pytest.raises(AbsentDataError) as caught:
        locate(SPEC, DataOptions("hub", tmp_path))
    assert "owner/name" in str(caught.value) and "a_test.jsonl" in str(caught.value)
    assert "a_train.jsonl" not in str(caught.value)


def test_the_hub_is_never_asked_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    assert locate(SPEC, DataOptions("hub")).kind == "hub"
    with pytest.raises(AbsentDataError, match="not local"):
        locate(SPEC, DataOptions("hub", offline=True))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(AbsentDataError, match="not local"):
        locate(SPEC, DataOptions("hub"))
    files_only = DatasetSpec("owner/name", {"test": "x.jsonl"}, on_hub=False)
    with pytest.raises(AbsentDataError, match="published as files"):
        locate(files_only, DataOptions("hub"))


def test_identity_follows_content_not_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flat(tmp_path / "one")
    flat(tmp_path / "two")
    one, two = (data_identity(SPEC, DataOptions("hub", tmp_path / name)) for name in ("one", "two"))
    assert one == two
    write_jsonl(tmp_path / "two" / "a_test.jsonl", [math_row(4)])
    assert data_identity(SPEC, DataOptions("hub", tmp_path / "two")) != one
    absent = [data_identity(SPEC, DataOptions("hub", tmp_path / name)) for name in ("three", "four")]
    assert absent[0] == absent[1] == {"absent": "owner/name"}
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    pinned = DatasetSpec("owner/name", SPEC.files, "main", revision="abc")
    assert data_identity(pinned, DataOptions("hub"))["revision"] == "abc"


def test_an_id_used_twice_is_refused_in_whatever_format_the_rows_are(tmp_path: Path) -> None:
    from datasets import Dataset

    folder = tmp_path / "owner" / "name"
    folder.mkdir(parents=True)
    spec = DatasetSpec("owner/name", {"train": "x.jsonl"}, fields=SPEC.fields)
    Dataset.from_list([math_row(1), math_row(2)]).to_parquet(str(folder / "train-0.parquet"))
    assert load_rows(spec, "train", DataOptions("hub", tmp_path)) == [math_row(1), math_row(2)]
    Dataset.from_list([math_row(1), math_row(2), math_row(1)]).to_parquet(str(folder / "train-0.parquet"))
    with pytest.raises(DataError, match=r"train row 2, field `id`: .* was used in row 0 already"):
        load_rows(spec, "train", DataOptions("hub", tmp_path))
