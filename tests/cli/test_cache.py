"""``cl-bench cache``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cl_bench.harness.cache import Cache
from tests.cli.conftest import Cli
from tests.test_cache import EVALUATION


@pytest.fixture()
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    monkeypatch.setenv("CL_BENCH_CACHE", str(tmp_path / "cache"))
    cache = Cache()
    cache.put_json("evaluations", EVALUATION, {"value": 1})
    return cache


def test_sizes_are_listed_and_shown_by_env(cli: Cli, cache: Cache) -> None:
    (row,) = json.loads(cli("cache", "list", "--json").out)["kinds"]
    assert row["kind"] == "evaluations"
    assert row["files"] == 1
    assert row["bytes"] == cache.path("evaluations", EVALUATION).stat().st_size
    assert "evaluations" in json.loads(cli("env", "--json").out)["cache_sizes"]


def test_an_empty_cache_is_no_error(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CL_BENCH_CACHE", str(tmp_path / "nowhere"))
    assert "empty" in cli("cache", "list").out
    assert json.loads(cli("cache", "prune", "--all", "--json").out)["removed"] == 0


def test_prune_removes_what_was_asked_for(cli: Cli, cache: Cache) -> None:
    assert json.loads(cli("cache", "prune", "--older-than", "1d", "--json").out)["removed"] == 0
    tried = json.loads(cli("cache", "prune", "--all", "--dry-run", "--json").out)
    assert tried["removed"] == 1
    assert cache.get_json("evaluations", EVALUATION) == {"value": 1}
    assert json.loads(cli("cache", "prune", "--all", "--json").out)["left_bytes"] == 0
    assert cache.get_json("evaluations", EVALUATION) is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "nothing says what may go"),
        (("--all", "--older-than", "1d"), "exclude each other"),
        (("--max-size", "9" * 400), "not a size"),
        (("--all", "--kind", "../x"), "no kind"),
        (("--older-than", "soon"), "not an age"),
        (("--max-size", "big"), "not a size"),
    ],
)
def test_what_cannot_be_understood_is_refused(cli: Cli, cache: Cache, arguments: tuple[str, ...], message: str) -> None:
    done = cli("cache", "prune", *arguments)
    assert done.code == 2
    assert message in done.err


def test_a_file_where_the_cache_should_be_is_said_to_be_one(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CL_BENCH_CACHE", str(tmp_path / "file"))
    for arguments in (("cache", "list"), ("cache", "prune", "--all")):
        done = cli(*arguments)
        assert done.code == 2 and "is not a folder" in done.err and "CL_BENCH_CACHE" in done.err
    assert cli("env").code == 0
