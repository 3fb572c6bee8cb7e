from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cl_bench.harness.errors import DataError
from cl_bench.tasks.sources.base import DataOptions
from cl_bench.tasks.sources.locate import AbsentDataError, DatasetSpec, data_identity, load_rows, locate, located_files
from cl_bench.tasks.sources.prepare import prepare
from cl_bench.tasks.sources.wanted import Need, wanted_sets
from tests.tasks.sources.fake_hub import FakeHub, commit_of, repository
from tests.tasks.sources.rows import math_row, write_hub_folder, write_jsonl

SPEC = DatasetSpec(
    "owner/name",
    {"train": "a_train.jsonl", "test": "a_test.jsonl"},
    config="main",
    fields={"question": "str", "answer": "str"},
)

ROWS = {"train": [math_row(1), math_row(2)], "test": [math_row(3)]}


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


def prepare_it(root: Path, spec: DatasetSpec, files: dict[str, bytes] | None = None) -> str:
    """Prepare a data set in a folder from a hub that serves it; returns its commit."""
    hub = FakeHub()
    commit = hub.publish(spec.path, files or repository({"main": ROWS, "other": ROWS}), spec.revision)
    (outcome,) = prepare(wanted_sets([Need("task", spec)]), root, hub=hub)
    assert outcome.state == "downloaded", outcome.detail
    return commit


@pytest.fixture()
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache; the folder in it where runs look for prepared data."""
    monkeypatch.setenv("CL_BENCH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "data"


def test_prepared_data_comes_before_the_hub(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    prepare_it(cache, SPEC)
    located = locate(SPEC, DataOptions("hub"))
    assert (located.kind, located.root, located.prepared) == ("folder", cache / "owner" / "name", True)
    assert load_rows(SPEC, "train", DataOptions("hub")) == ROWS["train"]


def test_offline_is_served_from_what_was_prepared_without_a_library_that_could_reach_the_network(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare_it(cache, SPEC)
    # None in their place: an import of them fails.
    for library in ("datasets", "huggingface_hub", "lm_eval"):
        monkeypatch.setitem(sys.modules, library, None)
    options = DataOptions("hub", offline=True)
    assert load_rows(SPEC, "test", options) == ROWS["test"]
    assert set(data_identity(SPEC, options)) == {"sha256"}
    with pytest.raises(AbsentDataError, match="cl-bench data prepare owner/absent"):
        load_rows(DatasetSpec("owner/absent", SPEC.files), "test", options)


def test_identity_is_of_the_bytes_wherever_they_lie(cache: Path, tmp_path: Path) -> None:
    prepare_it(cache, SPEC)
    shutil.copytree(cache, tmp_path / "copy")
    (tmp_path / "copy" / "prepared.json").unlink()
    (tmp_path / "copy" / "owner" / "name" / "NOTES.txt").write_text("beside the data", encoding="utf-8")
    (tmp_path / "flat").mkdir()
    for split, name in SPEC.files.items():
        shutil.copyfile(cache / "owner" / "name" / "main" / f"{split}.jsonl", tmp_path / "flat" / name)
    prepared = data_identity(SPEC, DataOptions("hub"))
    places = (cache, tmp_path / "copy", tmp_path / "flat")
    assert [data_identity(SPEC, DataOptions("hub", place)) for place in places] == [prepared] * 3
    swapped = DatasetSpec(SPEC.path, {"train": "a_test.jsonl", "test": "a_train.jsonl"}, fields=SPEC.fields)
    assert data_identity(swapped, DataOptions("hub", tmp_path / "flat")) != prepared
    one_split = [DatasetSpec(SPEC.path, {split: "a_test.jsonl"}) for split in ("train", "test")]
    assert len({str(data_identity(spec, DataOptions("hub", tmp_path / "flat"))) for spec in one_split}) == 2
    with (tmp_path / "copy" / "owner" / "name" / "main" / "test.jsonl").open("a", encoding="utf-8") as file:
        file.write("\n")  # the same rows, other bytes
    assert data_identity(SPEC, DataOptions("hub", tmp_path / "copy")) != prepared


def test_another_revision_than_the_one_asked_for_is_not_used(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = prepare_it(cache, SPEC)
    other = replace(SPEC, revision=commit_of(99))
    with pytest.raises(AbsentDataError, match=f"is revision {commit}, and {commit_of(99)} is asked for"):
        locate(other, DataOptions("hub", offline=True))
    with pytest.raises(AbsentDataError, match=f"is revision {commit}"):
        locate(other, DataOptions("hub", cache))
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    located = locate(other, DataOptions("hub"))
    assert located.kind == "hub" and commit in located.remark
    assert data_identity(other, DataOptions("hub"))["revision"] == commit_of(99)
    assert locate(replace(SPEC, revision=commit), DataOptions("hub")).prepared


@pytest.mark.parametrize("what", ["bytes", "length", "absence"])
def test_a_damaged_prepared_file_is_named_with_the_command_that_mends_it(cache: Path, what: str) -> None:
    prepare_it(cache, SPEC)
    file = cache / "owner" / "name" / "main" / "train.jsonl"
    if what == "absence":
        file.unlink()
    else:
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace("Ana", "Eve") if what == "bytes" else text + "\n", encoding="utf-8")
    for attempt in (locate, data_identity):
        for options, command in ((DataOptions("hub"), "owner/name$"), (DataOptions("hub", cache), "owner/name$")):
            with pytest.raises(
                DataError, match=rf"train\.jsonl is not the file(.|\n)*data prepare {command}"
            ) as caught:
                attempt(SPEC, options)
            assert not isinstance(caught.value, AbsentDataError)


def test_a_damaged_record_is_named(cache: Path) -> None:
    prepare_it(cache, SPEC)
    (cache / "prepared.json").write_text('{"data_sets": 1}', encoding="utf-8")
    with pytest.raises(DataError, match=r"prepared\.json cannot be read"):
        locate(SPEC, DataOptions("hub"))


def test_a_preparation_that_was_not_finished_is_not_taken_for_whole(tmp_path: Path) -> None:
    write_hub_folder(tmp_path, "owner/name", {"main": ROWS})
    (tmp_path / ".partial" / "owner" / "name").mkdir(parents=True)
    with pytest.raises(AbsentDataError, match=r"not finished(.|\n)*cl-bench data prepare owner/name --to"):
        locate(SPEC, DataOptions("hub", tmp_path))


def test_the_readme_of_a_snapshot_decides_which_file_is_which_split(tmp_path: Path) -> None:
    folder = tmp_path / "owner" / "name"
    write_jsonl(folder / "data" / "train.jsonl", ROWS["test"])
    write_jsonl(folder / "data" / "test.jsonl", ROWS["train"])
    declared = "- {split: train, path: data/test.jsonl}\n  - {split: test, path: data/train.jsonl}"
    (folder / "README.md").write_text(
        f"---\nconfigs:\n- config_name: main\n  data_files:\n  {declared}\n---\n", encoding="utf-8"
    )
    options = DataOptions("hub", tmp_path)
    assert [load_rows(SPEC, split, options) for split in ("train", "test")] == [ROWS["train"], ROWS["test"]]
    with pytest.raises(DataError, match="no configuration 'other'"):
        load_rows(replace(SPEC, config="other"), "train", options)


def parquet_snapshot(root: Path, rows: dict[str, list[list[Any]]]) -> Path:
    """A snapshot as the hub's own converter makes it: numbered parquet files below the configuration's name."""
    from datasets import Dataset

    folder, lines = root / "owner" / "name", ["---", "configs:"]
    for config in ("first", "main"):
        lines += [f"- config_name: {config}", "  data_files:"]
        for split, shards in rows.items():
            lines += [f"  - split: {split}", f"    path: {config}/{split}-*"]
            for number, shard in enumerate(shards):
                path = folder / config / f"{split}-{number:05}-of-{len(shards):05}.parquet"
                path.parent.mkdir(parents=True, exist_ok=True)
                Dataset.from_list(shard).to_parquet(str(path))
    (folder / "README.md").write_text("\n".join([*lines, "---", ""]), encoding="utf-8")
    return folder


def test_a_snapshot_with_parquet_files_loads_in_order_and_has_an_identity(tmp_path: Path) -> None:
    shards = {"train": [[math_row(2), math_row(1)], [math_row(7)]], "test": [[math_row(3)]]}
    folder = parquet_snapshot(tmp_path, shards)
    options = DataOptions("hub", tmp_path)
    assert load_rows(SPEC, "train", options) == [math_row(2), math_row(1), math_row(7)]
    identity = data_identity(SPEC, options)
    names = [path.name for path in located_files(SPEC, "train", locate(SPEC, options))]
    assert names == ["train-00000-of-00002.parquet", "train-00001-of-00002.parquet"]
    # Another configuration's files are none of this one's.
    shutil.copyfile(folder / "first" / "test-00000-of-00001.parquet", folder / "first" / names[0])
    assert data_identity(SPEC, options) == identity
    first, second = (folder / "main" / name for name in names)
    held = first.read_bytes()
    shutil.copyfile(second, first)
    second.write_bytes(held)
    assert data_identity(SPEC, options) != identity


@pytest.mark.parametrize("ending", ["parquet", "json", "csv"])
def test_rows_are_those_of_the_files_and_not_of_a_folder_of_the_same_name(tmp_path: Path, ending: str) -> None:
    from datasets import Dataset

    spec = DatasetSpec("owner/name", {"test": "x.jsonl"}, "main", fields={"question": "str"})
    for number in (1, 2):
        file = tmp_path / str(number) / "owner" / "name" / f"test.{ending}"
        file.parent.mkdir(parents=True)
        getattr(Dataset.from_list([math_row(number)]), f"to_{ending}")(str(file))
        declared = f"---\nconfigs:\n- config_name: main\n  data_files: [{{split: test, path: test.{ending}}}]\n---\n"
        (file.parent / "README.md").write_text(declared, encoding="utf-8")
    folders = [DataOptions("hub", tmp_path / number) for number in ("1", "2")]
    assert [load_rows(spec, "test", options) for options in folders] == [[math_row(1)], [math_row(2)]]
    shutil.copytree(tmp_path / "2", tmp_path / "1", dirs_exist_ok=True)
    assert load_rows(spec, "test", folders[0]) == [math_row(2)]


def test_rows_of_parquet_files_are_checked_when_loaded(tmp_path: Path) -> None:
    parquet_snapshot(tmp_path, {"train": [[math_row(1)]], "test": [[{"id": "x", "question": "q", "answer": 5}]]})
    for attempt in (lambda o: load_rows(SPEC, "test", o), lambda o: data_identity(SPEC, o)):
        with pytest.raises(DataError, match="test row 0, field `answer`: not a str"):
            attempt(DataOptions("hub", tmp_path))


def test_a_truncated_parquet_file_is_no_data_set(tmp_path: Path) -> None:
    folder = parquet_snapshot(tmp_path, {"train": [[math_row(1)]], "test": [[math_row(2)]]})
    file = folder / "main" / "test-00000-of-00001.parquet"
    file.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(DataError, match="cannot be loaded"):
        load_rows(SPEC, "test", DataOptions("hub", tmp_path))


def test_an_id_that_comes_in_two_files_of_a_split_is_refused(tmp_path: Path) -> None:
    folder = write_hub_folder(tmp_path, "owner/name", {"main": {"train": [math_row(1)], "test": [math_row(3)]}})
    shutil.copyfile(folder / "main" / "train.jsonl", folder / "main" / "train-2.jsonl")
    readme = (folder / "README.md").read_text(encoding="utf-8")
    (folder / "README.md").write_text(readme.replace("main/train.jsonl", "main/train*.jsonl"), encoding="utf-8")
    with pytest.raises(DataError, match=r"2 files, row 1, field `id`: 'math-1' was used in row 0"):
        load_rows(SPEC, "train", DataOptions("hub", tmp_path))
