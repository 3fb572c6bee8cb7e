from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path

import pytest

from cl_bench.harness.cache import Cache
from cl_bench.harness.cache_contents import entries, kinds, parse_age, parse_size, prunable, remove
from cl_bench.harness.errors import UsageError
from tests.test_cache import EVALUATION


def filled(root: Path, ages: dict[str, float]) -> Cache:
    """A cache with an entry for each name, used so many seconds after the epoch."""
    cache = Cache(root)
    for name, used in ages.items():
        key = dataclasses.replace(EVALUATION, task=name)
        cache.put_json("evaluations", key, {"name": name})
        os.utime(cache.path("evaluations", key), (used, used))
    (root / "models" / "tiny").mkdir(parents=True)
    (root / "models" / "tiny" / "model.safetensors").write_bytes(b"weights")
    return cache


def names(found: list[Path]) -> list[str]:
    return [json.loads(path.read_text().splitlines()[1])["name"] for path in found]


def test_kinds_tell_what_was_computed_from_what_was_fetched(tmp_path: Path) -> None:
    filled(tmp_path, {"a": 1, "b": 2})
    found = {kind.name: kind for kind in kinds(tmp_path)}
    assert found["evaluations"].computed
    assert found["evaluations"].entries == 2
    assert not found["models"].computed
    assert found["models"].size == len(b"weights")
    assert kinds(tmp_path / "absent") == []


def test_what_is_old_goes_and_what_was_fetched_stays(tmp_path: Path) -> None:
    cache = filled(tmp_path, {"old": 100, "new": 1000})
    chosen = prunable(entries(tmp_path), older_than=500, now=1100)
    assert names([entry.path for entry in chosen]) == ["old"]
    assert remove(chosen) == chosen[0].size
    assert cache.get_json("evaluations", dataclasses.replace(EVALUATION, task="old")) is None
    assert cache.get_json("evaluations", dataclasses.replace(EVALUATION, task="new")) == {"name": "new"}
    assert (tmp_path / "models" / "tiny" / "model.safetensors").is_file()


def test_beyond_a_size_the_least_recently_used_go_first(tmp_path: Path) -> None:
    cache = filled(tmp_path, {"a": 1, "b": 2, "c": 3})
    assert cache.get_json("evaluations", dataclasses.replace(EVALUATION, task="a")) == {
        "name": "a"
    }  # used now: the youngest
    found = entries(tmp_path)
    kept = found[-1].size
    assert names([entry.path for entry in prunable(found, max_size=kept)]) == ["b", "c"]
    assert prunable(found, max_size=sum(entry.size for entry in found)) == []
    assert len(prunable(found, max_size=0)) == 3


def test_left_overs_of_cut_off_writes_go_but_not_a_write_that_goes_on(tmp_path: Path) -> None:
    cache = filled(tmp_path, {"a": 1})
    whole = cache.path("evaluations", dataclasses.replace(EVALUATION, task="a"))
    dead, alive = whole.with_name("x.jsonl.tmp-1"), whole.with_name("x.jsonl.tmp-2")
    for path, used in ((dead, 10_000), (alive, 19_990)):
        path.write_text("half")
        os.utime(path, (used, used))
    assert [entry.path for entry in prunable(entries(tmp_path), now=20_000)] == [dead]


def test_another_process_may_prune_at_the_same_time(tmp_path: Path) -> None:
    filled(tmp_path, {"a": 1, "b": 2})
    found = entries(tmp_path)
    found[0].path.unlink()
    assert remove(found) == found[1].size


def test_only_computed_kinds_are_looked_through(tmp_path: Path) -> None:
    filled(tmp_path, {"a": 1})
    with pytest.raises(UsageError, match="models is not pruned"):
        entries(tmp_path, ["models"])
    with pytest.raises(UsageError, match="no kind 'evaluation'"):
        entries(tmp_path, ["evaluation"])


@pytest.mark.parametrize(("text", "size"), [("12", 12), ("500MB", 500_000_000), ("2 gb", 2 * 10**9), ("1.5k", 1500)])
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(("text", "seconds"), [("1d", 86400), ("12h", 43200), ("0.5D", 43200)])
def test_ages(text: str, seconds: float) -> None:
    assert parse_age(text) == seconds


@pytest.mark.parametrize("text", ["", "-1GB", "2PB", "many", "1e9"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(UsageError, match="is not a size"):
        parse_size(text)


@pytest.mark.parametrize("text", ["", "30", "-1d", "30 years"])
def test_what_is_no_age(text: str) -> None:
    with pytest.raises(UsageError, match="is not an age"):
        parse_age(text)


def test_strangers_among_the_entries_neither_hide_them_nor_go_with_them(tmp_path: Path) -> None:
    cache = filled(tmp_path, {"a": 1})
    folder = cache.path("evaluations", dataclasses.replace(EVALUATION, task="a")).parent
    (tmp_path / "evaluations" / ".DS_Store").write_text("x")
    (tmp_path / "evaluations" / "notes").mkdir()
    (folder / "deep").mkdir()
    strangers = [folder / "mine.jsonl", folder / "deep" / "file", tmp_path / "evaluations" / "notes" / "n.jsonl.tmp-1"]
    for path in strangers:
        path.write_text("mine")
        os.utime(path, (1, 1))
    (folder / "link.jsonl").symlink_to(tmp_path / "models" / "tiny" / "model.safetensors")
    (kind,) = [kind for kind in kinds(tmp_path) if kind.name == "evaluations"]
    assert kind.computed
    chosen = prunable(entries(tmp_path), max_size=0)
    assert names([entry.path for entry in chosen]) == ["a"]
    remove(chosen)
    assert all(path.is_file() for path in (*strangers, tmp_path / "models" / "tiny" / "model.safetensors"))


def test_an_empty_kind_was_not_fetched(tmp_path: Path) -> None:
    (tmp_path / "answers").mkdir()
    assert [kind.computed for kind in kinds(tmp_path)] == [True] and entries(tmp_path, ["answers"]) == []


def test_files_that_go_while_sizes_are_counted_are_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(tmp_path, {"a": 1, "b": 2})
    real = Path.rglob

    def pruned_meanwhile(self: Path, pattern: str) -> list[Path]:
        found = list(real(self, pattern))
        for path in [path for path in found if path.is_file()][:1]:
            path.unlink()
        return found

    monkeypatch.setattr(Path, "rglob", pruned_meanwhile)
    found = {kind.name: kind.entries for kind in kinds(tmp_path)}
    assert found == {"evaluations": 1, "models": 0}
    assert entries(tmp_path) == []  # the last entry went before it was looked at
