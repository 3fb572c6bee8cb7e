"""Going on with a run: what was not said again is as it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cl_bench.harness.commands.recorded import as_before
from cl_bench.harness.errors import StoreError, UsageError
from cl_bench.harness.files import plain
from cl_bench.harness.run_directory import MANIFEST
from cl_bench.harness.spec import Execution
from tests.compare.small_runs import make_run

EARLIER = Execution(
    output=Path("/runs"),
    data_root=Path("/data"),
    device="cuda:1",
    threads=3,
    checkpoint_every_seconds=None,
    checkpoint_every_steps=7,
    keep_checkpoints="last",
)


def manifest(folder: Path, *executions: Any) -> None:
    content = {"sessions": [{"execution": plain(execution)} for execution in executions]}
    (folder / MANIFEST).write_text(json.dumps(content))


def test_what_is_not_given_is_that_of_the_last_session(tmp_path: Path) -> None:
    manifest(tmp_path, Execution(threads=1), EARLIER)
    found = as_before(tmp_path, {"progress": False})
    for name in ("data_root", "gold_ids", "device", "threads", "keep_checkpoints"):
        assert getattr(found, name) == getattr(EARLIER, name)
    assert (found.checkpoint_every_seconds, found.checkpoint_every_steps) == (None, 7)
    assert (found.progress, found.output) == (False, Execution().output)


def test_what_is_given_goes_before(tmp_path: Path) -> None:
    manifest(tmp_path, EARLIER)
    options = {"data_root": tmp_path, "device": "cpu", "threads": 1, "checkpoint_every": "90s"}
    given = as_before(tmp_path, options)
    assert (given.device, given.data_root, given.threads) == ("cpu", tmp_path, 1)
    assert (given.checkpoint_every_seconds, given.checkpoint_every_steps) == (90.0, None)
    assert given.keep_checkpoints == EARLIER.keep_checkpoints


@pytest.mark.parametrize(
    ("recorded", "words", "given"),
    [
        (Execution(include_paths=(Path("/theirs"),)), "plug-ins: method mine", {"include_paths": (Path("/mine"),)}),
        (Execution(allow_code=True), "leave to run programs", {"allow_code": False}),
    ],
)
def test_code_is_never_taken_from_a_manifest(
    recorded: Execution, words: str, given: dict[str, Any], tmp_path: Path
) -> None:
    run = make_run(tmp_path, "mine")
    manifest(run, recorded)
    with pytest.raises(UsageError, match=words):
        as_before(run, {})
    found = as_before(run, given)
    assert all(getattr(found, name) == value for name, value in given.items())


@pytest.mark.parametrize(
    "wrong", [{"data_root": 5}, {"threads": "many"}, {"keep_checkpoints": "some"}, {"checkpoint_every_steps": {}}]
)
def test_values_of_another_form_are_named(wrong: dict[str, Any], tmp_path: Path) -> None:
    manifest(tmp_path, plain(Execution()) | wrong)
    with pytest.raises(StoreError, match="damaged") as refused:
        as_before(tmp_path, {})
    assert next(iter(wrong)) in refused.value.why


def test_a_run_without_manifest_takes_the_options_alone(tmp_path: Path) -> None:
    assert as_before(tmp_path, {}) == Execution()


@pytest.mark.parametrize("content", ["[]", "{", '{"sessions": 3}', '{"sessions": [{"execution": 3}]}', "3"])
def test_a_damaged_manifest_gives_no_options(tmp_path: Path, content: str) -> None:
    (tmp_path / MANIFEST).write_text(content)
    assert as_before(tmp_path, {"threads": 2}) == Execution(threads=2)
