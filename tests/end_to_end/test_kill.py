"""A run killed inside its second stage and resumed equals the uninterrupted one bit for bit."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.end_to_end.compare import only_run, results_of
from tests.end_to_end.conftest import SMALL, Cli

pytestmark = pytest.mark.end_to_end
EVERY_STEP = ["--checkpoint-every", "1step"]
Start = Callable[..., subprocess.Popen[str]]


def stop_inside_stage_two(process: subprocess.Popen[str], output: Path, how: signal.Signals) -> None:
    """Send a signal once the second stage has a checkpoint of its own."""
    give_up = time.monotonic() + 200
    while not list(output.glob("*/*/*/stages/02-biology/mid/step-*/hashes.json")):
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < give_up, "the second stage was never reached"
        time.sleep(0.01)
    process.send_signal(how)
    process.wait(timeout=60)


def test_kill_in_stage_two_and_resume(cli: Cli, background: Start, tmp_path: Path) -> None:
    """One method as a user would have it killed; ``tests/selfcheck`` kills others at many more points."""
    command = ["run", "--method", "grpo", "--sequence", "science", *SMALL, "--limit", "8", "--suite", "none"]
    # Small batches end with single rows, whose kernels are the ones that round by the memory they find.
    command += ["--set", "method.batch_size=4", "--set", "method.updates=2", "--set", "method.samples=4"]
    command += ["--set", "method.epochs=4"]
    whole = cli(*command, "--output", "whole", cwd=tmp_path)
    assert whole.returncode == 0, whole.stderr
    process = background(*command, *EVERY_STEP, "--output", "killed", cwd=tmp_path)
    stop_inside_stage_two(process, tmp_path / "killed", signal.SIGKILL)
    directory = only_run(tmp_path / "killed")
    assert not (directory / "stages" / "02-biology" / "done.json").exists(), "the kill came too late to test anything"
    resumed = cli("resume", str(directory), "--threads", "1", cwd=tmp_path)
    assert resumed.returncode == 0, resumed.stderr
    assert results_of(directory) == results_of(only_run(tmp_path / "whole"))
    assert not list(directory.glob("stages/*/mid"))


def test_interrupt_keeps_finished_stages(cli: Cli, background: Start, tmp_path: Path) -> None:
    command = ["run", "--method", "sft", "--sequence", "science", *SMALL, "--suite", "none", *EVERY_STEP]
    command += ["--set", "method.epochs=4"]
    process = background(*command, cwd=tmp_path)
    stop_inside_stage_two(process, tmp_path / "runs", signal.SIGINT)
    assert process.returncode == 130
    directory = only_run(tmp_path / "runs")
    assert (directory / "stages" / "01-chemistry" / "done.json").exists()
    assert '"interrupted"' in (directory / "status.json").read_text()
    assert cli("resume", str(directory), cwd=tmp_path).returncode == 0
