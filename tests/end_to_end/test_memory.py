"""Stages leave nothing in memory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.end_to_end.compare import only_run
from tests.end_to_end.conftest import Cli

pytestmark = pytest.mark.end_to_end


def test_memory_after_ten_stages_is_that_after_two(process: Cli, tmp_path: Path) -> None:
    (tmp_path / "own" / "sequences").mkdir(parents=True)
    stages = ["chemistry", "biology"] * 5
    (tmp_path / "own" / "sequences" / "ten.yaml").write_text(f"name: ten\nstages: {json.dumps(stages)}\n")
    command = [
        "run",
        "--method",
        "sdft",
        "--sequence",
        "ten",
        "--include-path",
        str(tmp_path / "own"),
        "--suite",
        "none",
    ]
    command += ["--model", "lab-s", "--threads", "1", "--limit", "8", "--set", "evaluation.rows=4"]
    done = process(*command, "--set", "evaluation.ood_rows=0", "--keep-checkpoints", "last", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in (only_run(tmp_path / "runs") / "events.jsonl").read_text().splitlines()]
    begun = [event["resident_bytes"] for event in events if event.get("phase") == "adapt"]
    assert len(begun) == 10
    after_two, end = begun[2], next(event for event in events if event.get("phase") == "report")["resident_bytes"]
    print([round(size / 2**20) for size in (*begun, end)])
    assert end <= 1.1 * after_two
