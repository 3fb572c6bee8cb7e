"""Preparing data from and beside what lies on this machine."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from cl_bench.harness.errors import ClBenchError, DataError, UsageError
from cl_bench.tasks.sources.base import DataOptions
from cl_bench.tasks.sources.locate import DatasetSpec, data_identity, load_rows
from cl_bench.tasks.sources.prepare import prepare
from cl_bench.tasks.sources.prepared import PreparedSet, read_record
from cl_bench.tasks.sources.wanted import Need, wanted_sets
from tests.tasks.sources.fake_hub import FakeHub, commit_of, lines
from tests.tasks.sources.preparing import OTHER, PATH, ROWS, SPEC, at, have, states, two_data_sets
from tests.tasks.sources.rows import math_row, write_hub_folder, write_jsonl


@pytest.fixture()
def hub() -> FakeHub:
    """A hub with two data sets; the first has two configurations."""
    return two_data_sets()


def test_files_of_somebody_else_are_never_touched(tmp_path: Path, hub: FakeHub) -> None:
    folder = write_hub_folder(tmp_path, PATH, {"main": {"train": [math_row(70)]}})
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    (outcome,) = have(tmp_path, hub, SPEC)
    assert outcome.state == "failed" and "in the way" in outcome.detail
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    (folder / "README.md").unlink()
    (outcome,) = have(tmp_path, hub, SPEC)
    assert outcome.state == "failed" and "train.jsonl is in the way" in outcome.detail


def test_a_lost_record_is_made_again_without_a_download(tmp_path: Path, hub: FakeHub) -> None:
    have(tmp_path, hub, SPEC)
    (tmp_path / "prepared.json").write_text("{", encoding="utf-8")
    with pytest.raises(DataError, match=r"prepared\.json cannot be read(.|\n)*remove it"):
        have(tmp_path, hub, SPEC)
    (tmp_path / "prepared.json").unlink()
    hub.calls.clear()
    assert states(have(tmp_path, hub, SPEC)) == ["downloaded"]
    assert hub.downloads() == ["README.md"]


def test_files_published_elsewhere_are_copied_from_the_data_root(tmp_path: Path, hub: FakeHub) -> None:
    files = DatasetSpec("tools/files", {"train": "a.jsonl", "test": "b.jsonl"}, on_hub=False)
    write_jsonl(tmp_path / "mine" / "a.jsonl", [math_row(1)])
    write_jsonl(tmp_path / "mine" / "b.jsonl", [math_row(2)])
    root = tmp_path / "root"
    outcomes = have(root, hub, files, OTHER, data_root=tmp_path / "mine")
    assert states(outcomes) == ["copied", "downloaded"]
    assert outcomes[0].rows == {"a.jsonl": 1, "b.jsonl": 1}
    for options in (at(root), DataOptions("hub", tmp_path / "mine")):
        assert load_rows(files, "test", options) == [math_row(2)]
    assert data_identity(files, at(root)) == data_identity(files, DataOptions("hub", tmp_path / "mine"))
    assert states(have(root, hub, files, OTHER)) == ["present", "present"]
    (root / "a.jsonl").unlink()
    (outcome,) = have(root, hub, files)
    assert outcome.state == "absent" and "a.jsonl: it is missing" in outcome.detail
    assert states(have(root, hub, files, data_root=tmp_path / "mine")) == ["copied"]


def test_a_hub_shaped_data_root_saves_the_download(tmp_path: Path, hub: FakeHub) -> None:
    write_hub_folder(tmp_path / "mine", PATH, {"main": ROWS, "second": ROWS})
    root, pinned = tmp_path / "root", replace(SPEC, revision=commit_of(5))
    assert states(have(root, hub, pinned, data_root=tmp_path / "mine", offline=True)) == ["copied"]
    assert hub.calls == []
    assert load_rows(pinned, "train", at(root)) == ROWS["train"]
    assert not (root / PATH / "second").exists()
    (entry,) = read_record(root)
    assert (entry.commit, entry.revision, entry.origin) == (None, commit_of(5), str(tmp_path / "mine"))
    absent = replace(SPEC, config="main", files={"validation": "v.jsonl"}, revision=commit_of(5))
    assert states(have(root, None, absent, data_root=tmp_path / "mine", offline=True)) == ["absent"]


def test_offline_never_asks(tmp_path: Path, hub: FakeHub) -> None:
    outcomes = have(tmp_path, hub, SPEC, OTHER, offline=True)
    assert states(outcomes) == ["absent", "absent"]
    assert all("offline" in outcome.detail for outcome in outcomes)
    assert hub.calls == []


def test_where_nothing_is_prepared_nothing_is_left(tmp_path: Path, hub: FakeHub) -> None:
    have(tmp_path / "a" / "b", hub, SPEC, offline=True)
    hub.gated = {PATH}
    have(tmp_path / "a" / "b", hub, SPEC)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "mine").mkdir()
    have(tmp_path / "mine", hub, SPEC, offline=True)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"] and not any((tmp_path / "mine").iterdir())
    have(tmp_path / "mine", hub, OTHER)
    assert sorted(path.name for path in (tmp_path / "mine").iterdir()) == ["owner", "prepared.json"]


def test_offline_says_the_same_of_what_was_never_fetched_and_of_another_split(tmp_path: Path, hub: FakeHub) -> None:
    have(tmp_path, hub, SPEC)
    other = replace(SPEC, files={"validation": "v.jsonl"})
    outcomes = have(tmp_path, hub, other, OTHER, offline=True)
    assert {outcome.detail for outcome in outcomes} == {"not fetched: the hub must not be asked (offline)"}


def test_what_is_optional_may_be_absent(tmp_path: Path) -> None:
    spec = DatasetSpec("tools/files", {"train": "a.jsonl"}, on_hub=False)
    optional = prepare(wanted_sets([Need("suite", spec, optional=True)]), tmp_path)
    needed = prepare(wanted_sets([Need("suite", spec, optional=True), Need("task", spec)]), tmp_path)
    assert [outcome.is_missed for outcome in (*optional, *needed)] == [False, True]
    hub = FakeHub(network=False)
    on_hub = replace(spec, on_hub=True)
    (failed,) = prepare(wanted_sets([Need("suite", on_hub, optional=True)]), tmp_path, hub=hub)
    assert failed.state == "failed" and not failed.is_missed


def test_a_folder_is_prepared_by_one_process_at_a_time(tmp_path: Path, hub: FakeHub) -> None:
    def call_again(line: str) -> None:
        with pytest.raises(ClBenchError, match="another process is preparing data"):
            have(tmp_path, hub, OTHER)
        calls.append(line)

    calls: list[str] = []
    have(tmp_path, hub, SPEC, note=call_again)
    assert calls
    with pytest.raises(UsageError, match="same folder"):
        have(tmp_path, hub, SPEC, data_root=tmp_path)


def test_names_that_lead_out_of_the_folder_are_ignored(tmp_path: Path) -> None:
    hub = FakeHub()
    hub.publish(PATH, {"test.jsonl": lines(ROWS["test"]), "../../test.jsonl": b"{}\n"})
    (outcome,) = have(tmp_path / "root", hub, DatasetSpec(PATH, {"test": "x.jsonl"}))
    assert outcome.rows == {"test": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["root"]


def test_damage_is_found_in_the_files_that_matter(tmp_path: Path) -> None:
    hashes = {name: {"size": 1, "sha256": hashlib.sha256(b"x").hexdigest()} for name in ("a", "b")}
    entry = PreparedSet.model_validate(
        {"path": PATH, "kind": "files", "origin": "y", "fetched": "2030-01-01", "files": hashes}
    )
    (tmp_path / "a").write_bytes(b"x")
    assert entry.damage(tmp_path, {"a"}) == {}
    assert entry.damage(tmp_path, {"a", "b"}) == {"b": "it is missing"}
    (tmp_path / "b").write_bytes(b"y")
    assert "recorded hash" in entry.damage(tmp_path, {"b"})["b"]
