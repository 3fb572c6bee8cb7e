from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from cl_bench.tasks.sources.base import DataOptions
from cl_bench.tasks.sources.locate import AbsentDataError, DatasetSpec, load_rows, locate
from cl_bench.tasks.sources.prepare import prepare
from cl_bench.tasks.sources.prepared import read_record
from cl_bench.tasks.sources.wanted import Need, wanted_sets
from tests.tasks.sources.fake_hub import FakeHub, commit_of, lines, repository
from tests.tasks.sources.preparing import OTHER, PATH, ROWS, SPEC, at, have, states, two_data_sets
from tests.tasks.sources.rows import math_row


@pytest.fixture()
def hub() -> FakeHub:
    """A hub with two data sets; the first has two configurations."""
    return two_data_sets()


def test_what_is_prepared_is_pinned_recorded_and_used(tmp_path: Path, hub: FakeHub) -> None:
    commit = next(iter(hub.repositories[PATH]))
    (outcome,) = have(tmp_path, hub, SPEC)
    assert (outcome.state, outcome.rows) == ("downloaded", {"train": 2, "test": 1})
    assert hub.downloads() == ["README.md", "main/test.jsonl", "main/train.jsonl"]  # of this configuration only
    (entry,) = json.loads((tmp_path / "prepared.json").read_text(encoding="utf-8"))["data_sets"]
    expected = {"path": PATH, "config": "main", "revision": None, "commit": commit, "licence": "mit", "origin": "hub"}
    assert expected.items() <= entry.items()
    assert set(entry["files"]) == {f"{PATH}/README.md", f"{PATH}/main/train.jsonl", f"{PATH}/main/test.jsonl"}
    for name, file in entry["files"].items():
        data = (tmp_path / name).read_bytes()
        assert file == {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    assert load_rows(SPEC, "train", at(tmp_path)) == ROWS["train"]
    assert not (tmp_path / ".partial").exists()


def test_datasets_loads_the_folder_though_the_first_configuration_is_not_there(tmp_path: Path, hub: FakeHub) -> None:
    from datasets import load_dataset

    have(tmp_path, hub, SPEC)
    loaded = load_dataset(str(tmp_path / PATH), "main", split="test", cache_dir=str(tmp_path / "cache"))
    assert list(loaded) == ROWS["test"]


def test_a_second_call_asks_nobody(tmp_path: Path, hub: FakeHub) -> None:
    have(tmp_path, hub, SPEC, OTHER)
    record = (tmp_path / "prepared.json").read_bytes()
    hub.calls.clear()
    outcomes = have(tmp_path, hub, SPEC, OTHER)
    assert (states(outcomes), hub.calls) == (["present", "present"], [])
    assert outcomes[0].rows == {"train": 2, "test": 1}
    assert (tmp_path / "prepared.json").read_bytes() == record


def test_a_second_configuration_joins_the_first_at_its_commit(tmp_path: Path, hub: FakeHub) -> None:
    have(tmp_path, hub, SPEC)
    hub.publish(PATH, repository({"second": {"test": [math_row(9)]}}))  # main has moved on
    second = replace(SPEC, config="second")
    assert states(have(tmp_path, hub, SPEC, second)) == ["present", "downloaded"]
    assert len({one.commit for one in read_record(tmp_path)}) == 1
    for spec in (SPEC, second):
        assert load_rows(spec, "train", at(tmp_path)) == ROWS["train"]
    assert states(have(tmp_path, hub, SPEC, second)) == ["present", "present"]


def test_tasks_that_share_a_data_set_share_the_download(tmp_path: Path, hub: FakeHub) -> None:
    test_only = DatasetSpec(PATH, {"test": "x_test.jsonl"}, "main")
    needs = [Need("one", SPEC), Need("two", SPEC), Need("three", test_only)]
    outcomes = prepare(wanted_sets(needs), tmp_path, hub=hub)
    assert [outcome.wanted.users for outcome in outcomes] == [["one", "two"], ["three"]]
    assert states(outcomes) == ["downloaded", "present"]
    assert outcomes[1].rows == {"test": 1}
    assert len(hub.downloads()) == 3


@pytest.mark.parametrize("large", [True, False], ids=["sha256", "git"])
@pytest.mark.parametrize("file", ["main/train.jsonl", "README.md"])
def test_a_damaged_file_is_named_and_fetched_again(tmp_path: Path, hub: FakeHub, file: str, large: bool) -> None:
    hub.large = large
    have(tmp_path, hub, SPEC)
    damaged = tmp_path / PATH / file
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[:-1] + b"x")
    hub.calls.clear()
    said: list[str] = []
    (outcome,) = have(tmp_path, hub, SPEC, offline=True, note=said.append)
    assert outcome.state == "absent" and file in outcome.detail and "offline" in outcome.detail
    assert file in said[0] and hub.calls == []
    (outcome,) = have(tmp_path, hub, SPEC)
    assert outcome.state == "downloaded" and file in outcome.detail and "fetched again" in outcome.detail
    assert hub.downloads() == list(dict.fromkeys(["README.md", file]))
    assert damaged.read_bytes() == whole
    assert states(have(tmp_path, hub, SPEC)) == ["present"]


def test_bytes_that_are_not_what_the_hub_says_are_never_taken(tmp_path: Path, hub: FakeHub) -> None:
    hub.wrong = {"main/test.jsonl"}
    for large in (True, False):
        hub.large = large
        outcomes = have(tmp_path, hub, SPEC, OTHER)
        assert states(outcomes)[0] == "failed" and "main/test.jsonl: its bytes" in outcomes[0].detail
        assert outcomes[1].is_there
        assert list(tmp_path.rglob("main/test.jsonl")) == []
        with pytest.raises(AbsentDataError):
            locate(SPEC, at(tmp_path))
    hub.wrong.clear()
    hub.calls.clear()
    assert states(have(tmp_path, hub, SPEC)) == ["downloaded"]
    assert hub.downloads() == ["main/test.jsonl"]  # the others had arrived


def test_an_interrupted_download_is_gone_on_with(tmp_path: Path, hub: FakeHub) -> None:
    hub.cut = {"main/train.jsonl"}
    with pytest.raises(KeyboardInterrupt):
        have(tmp_path, hub, OTHER, SPEC)
    assert [one.path for one in read_record(tmp_path)] == [OTHER.path]
    for options in (at(tmp_path), DataOptions("hub", offline=True)):
        with pytest.raises(AbsentDataError):
            locate(SPEC, options)
    hub.calls.clear()
    assert states(have(tmp_path, hub, OTHER, SPEC)) == ["present", "downloaded"]
    assert hub.downloads() == ["main/train.jsonl"]
    assert load_rows(SPEC, "test", at(tmp_path)) == ROWS["test"]
    assert not (tmp_path / ".partial").exists()


def test_a_full_disk_ends_the_downloads_and_keeps_what_is_whole(tmp_path: Path, hub: FakeHub) -> None:
    hub.publish("owner/third", repository({"default": {"test": [math_row(5)]}}))
    hub.disk = len(lines([math_row(5)])) + 250
    large = [math_row(number) for number in range(100)]
    hub.repositories[PATH] = {commit_of(1): repository({"main": {**ROWS, "train": large}})}
    outcomes = have(tmp_path, hub, OTHER, SPEC, DatasetSpec("owner/third", {"test": "t.jsonl"}))
    assert states(outcomes) == ["downloaded", "failed", "failed"]
    assert all("No space left on device" in outcome.detail for outcome in outcomes[1:])
    assert ("info", "owner/third") not in hub.calls
    hub.disk = None
    assert states(have(tmp_path, hub, OTHER, SPEC)) == ["present", "downloaded"]


def test_without_a_network_it_is_asked_for_once(tmp_path: Path, hub: FakeHub) -> None:
    have(tmp_path, hub, OTHER)
    hub.network = False
    hub.calls.clear()
    third = DatasetSpec("owner/third", {"test": "t.jsonl"})
    outcomes = have(tmp_path, hub, SPEC, OTHER, third)
    assert states(outcomes) == ["failed", "present", "failed"]
    assert "cannot be reached" in outcomes[0].detail and outcomes[2].detail == outcomes[0].detail
    assert hub.calls == [("info", PATH)]


def test_gated_absent_and_unknown_revisions_say_what_to_do_and_stop_nothing(tmp_path: Path, hub: FakeHub) -> None:
    hub.gated = {PATH}
    outcomes = have(
        tmp_path,
        hub,
        SPEC,
        DatasetSpec("owner/nowhere", {"test": "n.jsonl"}),
        OTHER,
        DatasetSpec("tools/files", {"train": "a.jsonl", "test": "b.jsonl"}, on_hub=False),
    )
    assert states(outcomes) == ["gated", "absent", "downloaded", "absent"]
    assert f"datasets/{PATH}" in outcomes[0].detail and "HF_TOKEN" in outcomes[0].detail
    assert "private" in outcomes[1].detail
    assert outcomes[3].detail == "published as files; give --data-root DIR with a.jsonl and b.jsonl"
    (outcome,) = have(tmp_path / "b", hub, replace(OTHER, revision=commit_of(7)))
    assert outcome.state == "absent" and commit_of(7) in outcome.detail
    (outcome,) = have(tmp_path / "c", hub, replace(OTHER, config="absent"))
    assert outcome.state == "failed" and "no configuration 'absent'" in outcome.detail and "default" in outcome.detail


def test_a_pinned_revision_is_the_one_that_is_fetched(tmp_path: Path, hub: FakeHub) -> None:
    old = list(hub.repositories[PATH])[0]
    new = hub.publish(PATH, repository({"main": {**ROWS, "test": [math_row(8)]}}))
    pinned = replace(SPEC, revision=old)
    assert states(have(tmp_path, hub, pinned)) == ["downloaded"]
    assert load_rows(pinned, "test", at(tmp_path)) == ROWS["test"]
    said: list[str] = []
    moved = replace(SPEC, revision=new)
    assert states(have(tmp_path, hub, moved, note=said.append)) == ["downloaded"]
    assert load_rows(moved, "test", at(tmp_path)) == [math_row(8)]
    with pytest.raises(AbsentDataError, match=f"revision {new}"):
        locate(pinned, at(tmp_path))
    # One folder cannot hold two revisions of a data set at once.
    outcomes = have(tmp_path / "both", hub, pinned, moved, SPEC)
    assert states(outcomes) == ["downloaded", "failed", "present"]
    assert "--to" in outcomes[1].detail


def test_a_folder_never_holds_parts_of_two_revisions(tmp_path: Path, hub: FakeHub) -> None:
    old = list(hub.repositories[PATH])[0]
    second = replace(SPEC, config="second", revision=old)
    have(tmp_path, hub, second)
    new = hub.publish(PATH, repository({"second": {"test": [math_row(9)]}, "main": ROWS}))
    said: list[str] = []
    assert states(have(tmp_path, hub, replace(SPEC, revision=new), note=said.append)) == ["downloaded"]
    assert [(one.config, one.commit) for one in read_record(tmp_path)] == [("main", new)]
    assert any(f"(second): {new} takes the place of {old}" in line for line in said)
    assert not (tmp_path / PATH / "second" / "test.jsonl").exists()
    with pytest.raises(AbsentDataError):
        locate(second, DataOptions("hub", offline=True))


def test_files_of_an_older_revision_do_not_stay_among_the_new(tmp_path: Path) -> None:
    hub = FakeHub()
    declared = b"---\nconfigs:\n- config_name: main\n  data_files:\n  - {split: train, path: 'data/*.jsonl'}\n---\n"
    two = {"README.md": declared, "data/a.jsonl": lines([math_row(1)]), "data/b.jsonl": lines([math_row(2)])}
    one = {"README.md": declared, "data/c.jsonl": lines([math_row(3)])}
    spec = DatasetSpec(PATH, {"train": "x.jsonl"}, "main")
    for files, rows in ((two, 2), (one, 1)):
        commit = hub.publish(PATH, files)
        (outcome,) = have(tmp_path, hub, replace(spec, revision=commit))
        assert outcome.rows == {"train": rows}


def test_rows_that_do_not_fit_the_task_are_no_prepared_data(tmp_path: Path, hub: FakeHub) -> None:
    (outcome,) = have(tmp_path, hub, replace(SPEC, fields={"Question": "str"}))
    assert outcome.state == "failed" and "line 1, field `Question`: missing" in outcome.detail
    assert read_record(tmp_path) == ()
    (outcome,) = have(tmp_path, hub, replace(SPEC, files={"validation": "v.jsonl"}))
    assert outcome.state == "failed" and "no split 'validation'" in outcome.detail


def test_a_repository_without_a_readme_is_read_by_names(tmp_path: Path) -> None:
    hub = FakeHub()
    hub.publish(PATH, {"train.jsonl": lines(ROWS["train"]), "test.jsonl": lines(ROWS["test"]), "notes.txt": b"x"})
    spec = replace(SPEC, config=None)
    (outcome,) = have(tmp_path, hub, spec)
    assert outcome.rows == {"train": 2, "test": 1} and outcome.found is not None
    assert outcome.found.licence is None
    assert set(outcome.found.files) == {f"{PATH}/train.jsonl", f"{PATH}/test.jsonl"}
