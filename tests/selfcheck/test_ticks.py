"""Moments at which a run can be killed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_PROGRAM = """
import sys
from pathlib import Path
from cl_bench.harness.files import write_bytes
from cl_bench.harness.selfcheck.ticks import KillPoint, Ticker

folder = Path(sys.argv[1])
ticker = Ticker(folder, KillPoint(sys.argv[2], int(sys.argv[3])), folder.parent / "kills.jsonl")
sys.addaudithook(ticker.audited)
write_bytes(folder / sys.argv[4], b"content")
"""


@pytest.mark.parametrize(
    ("name", "activity"), [("matrix.json", "record"), ("stages/01-a/checkpoint/model.safetensors", "checkpoint")]
)
@pytest.mark.parametrize("number", [1, 2, 3])
def test_opening_and_renaming_are_moments(name: str, activity: str, number: int, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    command = [sys.executable, "-c", _PROGRAM, str(folder), activity, str(number), name]
    done = subprocess.run(command, env=dict(os.environ), capture_output=True, text=True, timeout=120)
    assert done.returncode == (-9 if number < 3 else 0), done.stderr
    files = [path.name for path in folder.rglob("*") if path.is_file()]
    # Killed before the opening: nothing; before the renaming: whole, and not in its place.
    assert [(".tmp-" in file) for file in files] == {1: [], 2: [True], 3: [False]}[number]
