from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from cl_bench.harness.errors import DataError
from cl_bench.tasks.sources import editions as module
from cl_bench.tasks.sources.base import DataOptions
from cl_bench.tasks.sources.editions import Edition, check_counts, edition_rows, find_edition
from cl_bench.tasks.sources.locate import AbsentDataError, DatasetSpec
from tests.tasks.sources.rows import Row, training_row, write_hub_folder, write_jsonl

TWO = Edition((DatasetSpec("o/n", {"train": "n_train.jsonl", "test": "n_test.jsonl"}),), "two files")
ONE = Edition((DatasetSpec("o/n", {"test": "n.jsonl"}),), "one file", remark="one file", stand_in=True)
SUBJECTS = ("algebra", "geometry", "number_theory")
MANY = Edition(
    (
        *(DatasetSpec("o/many", {"train": "many.jsonl"}, config=subject) for subject in SUBJECTS),
        DatasetSpec("o/test", {"test": "test.jsonl"}),
    )
)
ROWS = [{"q": "1"}, {"q": "2"}]


def options(root: Path | None) -> DataOptions:
    return DataOptions("hub", root)


def test_the_first_edition_that_is_there_is_taken_in_either_layout(tmp_path: Path) -> None:
    for layout in ("flat", "hub"):
        root = tmp_path / layout
        write_jsonl(root / "n.jsonl", ROWS) if layout == "flat" else write_hub_folder(
            root, "o/n", {"default": {"test": ROWS}}
        )
        assert find_edition("task", (TWO, ONE), options(root)) == ONE
    for name in ("n_train", "n_test"):
        write_jsonl(tmp_path / "flat" / f"{name}.jsonl", ROWS)
    write_hub_folder(tmp_path / "hub", "o/n", {"default": {"train": ROWS, "test": ROWS}})
    for layout in ("flat", "hub"):
        assert find_edition("task", (TWO, ONE), options(tmp_path / layout)) == TWO


def test_absent_data_says_what_was_looked_for_in_each_edition(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "n_train.jsonl", ROWS)
    with pytest.raises(AbsentDataError, match="data of the task mine is not in") as caught:
        find_edition("mine", (TWO, ONE), options(tmp_path))
    assert "two files: " in caught.value.why and "n_test.jsonl" in caught.value.why
    assert "one file: " in caught.value.why and "n.jsonl" in caught.value.why
    with pytest.raises(AbsentDataError, match="o/n is not in"):
        find_edition("mine", (TWO,), options(tmp_path))
    write_hub_folder(tmp_path, "o/n", {"default": {"prompt": ROWS}})
    with pytest.raises(AbsentDataError, match="data of the task mine is not in") as caught:
        find_edition("mine", (TWO, ONE), options(tmp_path))
    assert "no split 'train' (it has prompt)" in caught.value.why and "the split train" in caught.value.hint


def test_a_folder_that_lacks_a_split_or_configuration_is_not_the_data_set(tmp_path: Path) -> None:
    write_hub_folder(tmp_path, "o/n", {"default": {"train": ROWS}})
    with pytest.raises(AbsentDataError, match="no split 'test'"):
        find_edition("task", (TWO,), options(tmp_path))
    configured = replace(TWO, parts=(replace(TWO.parts[0], config="main"),))
    with pytest.raises(AbsentDataError, match="no configuration 'main'"):
        find_edition("task", (configured,), options(tmp_path))
    (tmp_path / "o/n/README.md").write_text("---\nconfigs: [\n---\n")
    with pytest.raises(DataError, match="no YAML") as caught:
        find_edition("task", (TWO, ONE), options(tmp_path))
    assert not isinstance(caught.value, AbsentDataError)


def test_a_folder_without_front_matter_is_read_by_its_names(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "o/n/data/train-0.jsonl", ROWS)
    with pytest.raises(AbsentDataError, match="no files named after test"):
        find_edition("task", (TWO,), options(tmp_path))
    write_jsonl(tmp_path / "o/n/data/test-0.jsonl", ROWS)
    assert find_edition("task", (TWO,), options(tmp_path)) == TWO


def test_the_hub_is_asked_for_the_first_edition(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.setenv("CL_BENCH_CACHE", str(tmp_path))
    assert find_edition("task", (TWO, ONE), options(None)) == TWO
    with pytest.raises(AbsentDataError, match="on this machine"):
        find_edition("task", (TWO, ONE), replace(options(None), offline=True))


def test_a_stand_in_is_never_taken_from_the_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write_jsonl(tmp_path / "n.jsonl", ROWS)
    monkeypatch.setattr(module, "comes_from_hub", lambda part, options: True)
    with pytest.raises(AbsentDataError):
        find_edition("task", (TWO, ONE), options(tmp_path))


def subject_rows() -> dict[str, list[Row]]:
    return {
        subject: [training_row(10 * place + n, subject) for n in range(3)] for place, subject in enumerate(SUBJECTS)
    }


def test_configurations_are_read_one_after_another_and_a_flat_file_once(tmp_path: Path) -> None:
    rows = subject_rows()
    mixed = [part[place] for place in range(3) for part in rows.values()]
    write_jsonl(tmp_path / "flat" / "many.jsonl", mixed)
    write_hub_folder(tmp_path / "hub", "o/many", {name: {"train": part} for name, part in rows.items()})
    write_hub_folder(tmp_path / "hub", "o/test", {"default": {"test": ROWS}})
    write_jsonl(tmp_path / "flat" / "test.jsonl", ROWS)
    found = {}
    for layout in ("flat", "hub"):
        there = options(tmp_path / layout)
        edition = find_edition("task", (MANY,), there)
        assert edition_rows(edition, "test", there, {}) == ROWS
        found[layout] = edition_rows(edition, "train", there, {"problem": "str"})
    by_id = sorted((row for part in rows.values() for row in part), key=lambda row: str(row["id"]))
    assert found["flat"] == found["hub"] == by_id


def test_a_sample_may_lack_some_configurations(tmp_path: Path) -> None:
    rows: Mapping[str, list[Row]] = subject_rows()
    write_hub_folder(tmp_path, "o/many", {"geometry": {"train": rows["geometry"]}})
    write_hub_folder(tmp_path, "o/test", {"default": {"test": ROWS}})
    edition = find_edition("task", (MANY,), options(tmp_path))
    assert [part.config for part in edition.parts] == ["geometry", None]
    assert edition_rows(edition, "train", options(tmp_path), {}) == rows["geometry"]


def test_an_id_in_two_configurations_is_refused(tmp_path: Path) -> None:
    row = training_row(1)
    write_hub_folder(tmp_path, "o/many", {"geometry": {"train": [row]}, "algebra": {"train": [row]}})
    write_hub_folder(tmp_path, "o/test", {"default": {"test": ROWS}})
    edition = find_edition("task", (MANY,), options(tmp_path))
    with pytest.raises(DataError, match="field `id`: 'training-1'"):
        edition_rows(edition, "train", options(tmp_path), {})


COUNTED = replace(
    TWO,
    parts=(replace(TWO.parts[0], revision="abc"),),
    expected_rows={"train": 5, "test": 2},
    mismatch="the later version has 9",
)


@pytest.mark.parametrize(("train", "from_hub"), [(4, True), (6, True), (6, False)])
def test_another_number_of_rows_than_the_data_sets_is_an_error(
    monkeypatch: pytest.MonkeyPatch, train: int, from_hub: bool
) -> None:
    monkeypatch.setattr(module, "comes_from_hub", lambda part, options: from_hub)
    with pytest.raises(DataError, match=f"task mine has {train} train rows instead of 5") as caught:
        check_counts("mine", COUNTED, {"train": train, "test": 2}, options(None))
    assert caught.value.why == "the later version has 9" and "abc" in caught.value.hint


def test_a_local_sample_is_a_remark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "comes_from_hub", lambda part, options: False)
    remarks = check_counts("mine", COUNTED, {"train": 4, "test": 2}, options(None))
    assert remarks == ["4 of the 5 train rows are there (two files)"]
