"""Starting over beside a run, keeping no weights, and a disk that is too small."""

from __future__ import annotations

import json
import re
import shutil
from collections import namedtuple
from pathlib import Path
from typing import Literal

import pytest

from cl_bench.harness.disk import bytes_to_come, checkpoint_bytes
from cl_bench.harness.planned_stages import planned_stages
from cl_bench.harness.selfcheck.results import first_difference
from cl_bench.harness.spec import Execution
from cl_bench.harness.store import Store
from cl_bench.methods.sft import SFT
from tests.compare.small_runs import spec_of
from tests.end_to_end.compare import interrupted, only_run
from tests.end_to_end.conftest import Cli
from tests.end_to_end.test_failing import COMMAND

pytestmark = pytest.mark.end_to_end
Usage = namedtuple("Usage", "total used free")


def test_fresh_starts_over_beside_and_keeps_no_weights_where_asked(cli: Cli, tmp_path: Path) -> None:
    assert cli(*COMMAND, cwd=tmp_path).returncode == 0
    first = only_run(tmp_path / "runs")
    assert cli(*COMMAND, "--fresh", "--keep-checkpoints", "none", cwd=tmp_path).returncode == 0
    (second,) = set(first.parent.iterdir()) - {first}
    assert second.name == first.name.replace("-s0-", "-s0-again2-")
    assert len(list(first.glob("stages/*/checkpoint"))) == 4 and not list(second.glob("stages/*/checkpoint"))
    assert first_difference(first, second) == ""
    again = cli(*COMMAND, "--keep-checkpoints", "none", cwd=tmp_path)
    assert again.returncode == 0 and "has come to its end already; nothing was done" in again.stderr
    assert len(list(first.glob("stages/*/checkpoint"))) == 4
    (second / "report.md").unlink()
    again = cli("resume", str(second), cwd=tmp_path)
    assert again.returncode == 0 and again.stdout.rstrip().splitlines()[-1] == str(second.resolve())
    assert (second / "report.md").is_file()
    assert cli("validate", "run", str(second), cwd=tmp_path).returncode == 0


def test_an_interrupted_run_says_where_it_stands_and_keeps_what_it_is_told_from_then_on(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted(monkeypatch, SFT, 3)
    (tmp_path / "own").mkdir()
    stopped = cli(*COMMAND, "--include-path", "own", cwd=tmp_path)
    assert stopped.returncode == 130 and f"--include-path {tmp_path / 'own'}" in stopped.stderr
    directory = only_run(tmp_path / "runs")
    status = json.loads((directory / "status.json").read_text())
    assert (status["state"], status["stage"], status["phase"]) == ("interrupted", "materials", "adapt")
    shown = cli("show", str(directory), cwd=tmp_path).stdout
    assert "interrupted in materials/adapt, 3 of 5 rows finished; cl-bench resume" in " ".join(shown.split())
    manifest = json.loads((directory / "manifest.json").read_text())
    assert manifest["sessions"][0]["execution"]["include_paths"] == [str(tmp_path / "own")]
    assert len(list(directory.glob("stages/*/checkpoint"))) == 2
    assert cli("resume", str(directory), "--keep-checkpoints", "last", cwd=tmp_path).returncode == 0
    assert [path.parent.name for path in directory.glob("stages/*/checkpoint")] == ["04-physics"]
    assert cli("validate", "run", str(directory), cwd=tmp_path).returncode == 0
    for gone in ("04-physics", "02-biology"):
        done = directory / "stages" / gone / "done.json"
        before = done.read_text()
        done.unlink()
        checked = cli("validate", "run", str(directory), cwd=tmp_path)
        assert checked.returncode == 1 and f"{gone[3:]} is not finished" in checked.stdout
        done.write_text(before)


def test_a_disk_that_is_too_small_is_refused_before_anything_is_trained(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**9, 10**9 - 1000, 1000))
    done = cli(*COMMAND, cwd=tmp_path)
    assert done.returncode == 1 and re.search(r"checkpoints need about [\d.]+ MB, .* has 1.0 kB left", done.stderr)
    assert "--keep-checkpoints last or none" in done.stderr
    assert not list(tmp_path.glob("runs/*/*/*/stages/*/done.json"))
    monkeypatch.undo()
    monkeypatch.setenv("CL_BENCH_CACHE", str(tmp_path / "cache"))
    assert cli(*COMMAND, cwd=tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("stages", "execution", "weights"),
    [
        (0, Execution(), 0),
        (4, Execution(checkpoint_every_seconds=None), 4 * 4),
        (4, Execution(checkpoint_every_seconds=None, keep_checkpoints="last"), 2 * 4),
        (1, Execution(checkpoint_every_seconds=None, keep_checkpoints="none"), 4),
        (4, Execution(), 4 * 4 + 2 * 16),
    ],
)
def test_room_for_checkpoints(stages: int, execution: Execution, weights: int) -> None:
    assert checkpoint_bytes(1000, stages, execution) == 1000 * weights


@pytest.mark.parametrize("keep", ["all", "last", "none"])
def test_a_run_that_fitted_at_its_start_fits_when_it_goes_on(keep: Literal["all", "last", "none"]) -> None:
    execution = Execution(checkpoint_every_seconds=None, keep_checkpoints=keep)
    for trained in range(5):
        there = trained if keep == "all" else min(trained, 1)
        assert there * 4 + checkpoint_bytes(1, 4 - trained, execution, trained) <= checkpoint_bytes(1, 4, execution)


def test_what_lies_on_the_disk_is_not_needed_again(tmp_path: Path) -> None:
    execution = Execution(checkpoint_every_steps=1)
    store = Store.open(tmp_path, spec_of())
    stages = [name for name, _ in planned_stages(store.spec)]
    whole = bytes_to_come(store, execution, 1000)
    assert whole == checkpoint_bytes(1000, len(stages), execution)
    mid = store.stage_dir(1, stages[0]) / "mid" / "step-000001"
    mid.mkdir(parents=True)
    (mid / "model.safetensors").write_bytes(bytes(16_000))
    assert bytes_to_come(store, execution, 1000) == whole - 16_000
    store.mark_adapted(1, stages[0])
    assert bytes_to_come(store, execution, 1000) == checkpoint_bytes(1000, len(stages) - 1, execution, 1)
    store.finish_stage(1, stages[0])
    assert bytes_to_come(store, execution, 1000) == checkpoint_bytes(1000, len(stages) - 1, execution, 1)
