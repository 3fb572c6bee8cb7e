"""A stage that fails half way restarts from the checkpoint before it, never from half-changed weights."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import pytest
import torch

from cl_bench.methods.base import Adaptation
from cl_bench.methods.sft import SFT
from tests.end_to_end.compare import only_run, results_of
from tests.end_to_end.conftest import Cli

pytestmark = pytest.mark.end_to_end
COMMAND = ["run", "--method", "sft", "--sequence", "science", "--model", "lab-s", "--threads", "1", "--limit", "8"]
COMMAND += ["--suite", "none", "--set", "evaluation.rows=2", "--set", "evaluation.ood_rows=0"]
FAULTS = {
    "torch.OutOfMemoryError": torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
    "disk": OSError(errno.ENOSPC, "No space left on device", "/somewhere/weights"),
    "fault": ZeroDivisionError("a fault of the method"),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What an undisturbed run comes to."""
    from tests.end_to_end.conftest import call

    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CL_BENCH_CACHE", str(folder / "cache"))
        assert call(*COMMAND, cwd=folder).returncode == 0
    return results_of(only_run(folder / "runs"))


@pytest.mark.parametrize("fault", FAULTS)
def test_a_failed_stage_starts_again_from_the_stage_before(
    fault: str, whole: dict[str, Any], cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, stages = SFT.adapt, []

    def failing(self: SFT, student: Any, stage: Any, context: Any) -> Adaptation:
        stages.append(stage.name)
        adaptation = real(self, student, stage, context)
        if len(stages) == 2:
            raise FAULTS[fault]
        return adaptation

    monkeypatch.setattr(SFT, "adapt", failing)
    done = cli(*COMMAND, cwd=tmp_path)
    assert done.returncode == 1
    directory = only_run(tmp_path / "runs")
    status = json.loads((directory / "status.json").read_text())
    assert status["state"] == "failed" and status["reason"]
    if fault == "disk":
        assert "No space left on device" in done.stderr and "/somewhere/weights" in done.stderr
        assert "free some space" in done.stderr
        assert f"then cl-bench resume {directory.relative_to(tmp_path)}" in done.stderr
    elif fault == "fault":
        assert "ZeroDivisionError: a fault of the method" in done.stderr
    else:
        assert "error: out of memory" in done.stderr and "micro_batch_size" in done.stderr
        assert "out of memory" in status["reason"]
    assert (directory / "stages" / "01-chemistry" / "done.json").is_file()
    assert cli("resume", str(directory), cwd=tmp_path).returncode == 0
    assert stages[:3] == ["chemistry", "biology", "biology"]
    assert results_of(directory) == whole
