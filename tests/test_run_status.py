"""A run says who works on it; one whose process is gone says how it probably ended."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cl_bench.harness.errors import StoreError
from cl_bench.harness.liveness import STALE_SECONDS, as_it_is
from cl_bench.harness.manifest import ManifestRecorder
from cl_bench.harness.memory import available_bytes, resident_bytes
from cl_bench.harness.run_directory import load_run
from cl_bench.harness.run_status import RunStatus
from cl_bench.harness.spec import Execution
from cl_bench.harness.store import Store
from tests.compare.small_runs import make_run

GIB = 2**30


@pytest.fixture()
def store(tmp_path: Path) -> Store:
    return Store.reopen(make_run(tmp_path))


def status_of(store: Store) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((store.directory / "status.json").read_text())
    return content


def test_the_status_names_process_host_and_memory(store: Store) -> None:
    RunStatus(store).set("running", stage="chemistry", phase="adapt")
    found = status_of(store)
    assert found["state"] == "running" and found["stage"] == "chemistry" and found["host"] == platform.node()
    assert 0 < found["memory"]["resident_bytes"] < 100 * GIB and found["memory"]["available_bytes"] > 0


def test_signs_of_life_go_on_and_end_with_the_work(store: Store) -> None:
    status = RunStatus(store, every=0.01)
    with status.beating():
        status.set("running", stage="chemistry", phase="adapt")
        first = status_of(store)
        seen = set()
        for _ in range(200):
            seen.add(status_of(store)["updated"])
            time.sleep(0.005)
    assert len(seen) > 3 and status_of(store)["stage"] == first["stage"]
    last = (store.directory / "status.json").read_bytes()
    time.sleep(0.05)
    assert (store.directory / "status.json").read_bytes() == last


def test_time_spent_in_a_phase_outlives_a_kill_and_is_summed(store: Store) -> None:
    (store.directory / "manifest.json").unlink()
    program = """
import os, signal, sys, time
from pathlib import Path
from cl_bench.harness.manifest import ManifestRecorder
from cl_bench.harness.run_status import RunStatus
from cl_bench.harness.spec import Execution
from cl_bench.harness.store import Store
store = Store.reopen(Path(sys.argv[1]))
manifest = ManifestRecorder(store, Execution())
with RunStatus(store, every=0.02).beating(manifest.beat), manifest.phase("biology/adapt"):
    time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGKILL)
"""
    for _ in range(2):
        assert subprocess.run([sys.executable, "-c", program, str(store.directory)], timeout=120).returncode == -9
    manifest = ManifestRecorder(store, Execution())
    with manifest.phase("biology/adapt"):
        pass
    with manifest.phase("biology/adapt"):
        time.sleep(0.2)
    sessions = json.loads((store.directory / "manifest.json").read_text())["sessions"]
    seconds = [session["phase_seconds"]["biology/adapt"] for session in sessions]
    assert all(0 < found <= session["seconds"] for found, session in zip(seconds[:2], sessions[:2], strict=True))
    assert 0.2 <= seconds[2] <= sessions[2]["seconds"]
    assert manifest.spent("biology/adapt") == pytest.approx(sum(seconds))


def test_a_full_disk_does_not_stop_the_signs_of_life(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    status, tried = RunStatus(store, every=0.01), []

    def refuse(*_: Any, **__: Any) -> None:
        tried.append(1)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Store, "status", refuse)
    with status.beating():
        time.sleep(0.1)
    assert len(tried) > 2


def test_running_without_a_process_is_interrupted_and_with_one_it_is_running(store: Store) -> None:
    RunStatus(store).set("running", stage="chemistry", phase="adapt")
    with store.lock():
        assert load_run(store.directory).status["state"] == "running"
    found = load_run(store.directory).status
    assert found["state"] == "interrupted" and "is gone: it was killed" in found["reason"]
    assert status_of(store)["state"] == "running", "reading changes nothing"


@pytest.mark.parametrize("memory", ["x", 3, [], {"resident_bytes": "much"}, None])
def test_odd_sizes_of_memory_tell_nothing(memory: Any, tmp_path: Path) -> None:
    found = as_it_is(running(host=platform.node(), memory=memory), tmp_path / ".lock")
    assert found["state"] == "interrupted" and "for memory" not in found["reason"]


def running(**fields: Any) -> dict[str, Any]:
    now = datetime.now(UTC)
    return {"state": "running", "pid": 1, "host": "elsewhere", "heartbeat": now.isoformat(), **fields}


@pytest.mark.parametrize(
    ("resident", "available", "memory"),
    [(20, 1, True), (20, 3, False), (1, 30, False), (0.5, 0.01, True)],
)
def test_a_process_that_was_near_the_limit_was_probably_killed_for_memory(
    resident: float, available: float, memory: bool, tmp_path: Path
) -> None:
    sizes = {"resident_bytes": int(resident * GIB), "available_bytes": int(available * GIB)}
    found = as_it_is(running(host=platform.node(), memory=sizes), tmp_path / ".lock")
    assert found["state"] == "interrupted"
    assert ("probably killed for memory" in found["reason"]) is memory


def test_another_host_counts_as_long_as_it_gives_signs_of_life(store: Store) -> None:
    fresh = running()
    stale = running(heartbeat=(datetime.now(UTC) - timedelta(seconds=STALE_SECONDS + 5)).isoformat())
    lock = store.directory / ".lock"
    assert as_it_is(fresh, lock)["state"] == "running"
    assert as_it_is(stale, lock)["state"] == "interrupted"
    never = {"heartbeat": "9999-01-01T00:00:00+00:00"}
    for broken in ({}, {"heartbeat": "yesterday"}, {"heartbeat": None}, {"heartbeat": "2026-01-01T00:00:00"}, never):
        assert as_it_is({"state": "running", "host": "elsewhere", **broken}, lock)["state"] == "interrupted"
    store.write_json("status.json", {"schema_version": 1, "updated": "", **fresh})
    with pytest.raises(StoreError, match="another process works on") as refused, store.lock():
        pass
    assert "elsewhere" in refused.value.why
    store.write_json("status.json", {"schema_version": 1, "updated": "", **stale})
    with store.lock():
        pass


KILLED = """
import os, signal, sys, time
from pathlib import Path
from cl_bench.harness import run_status
from cl_bench.harness.store import Store
run_status.resident_bytes, run_status.available_bytes = lambda: 30 * 2**30, lambda: 2**20
store = Store.reopen(Path(sys.argv[1]))
with store.lock():
    run_status.RunStatus(store).set("running", stage="chemistry", phase="adapt")
    print("ready", flush=True)
    time.sleep(60)
"""


def test_a_child_killed_near_the_limit_is_shown_as_such(store: Store) -> None:
    command = [sys.executable, "-c", KILLED, str(store.directory)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None and child.stdout.readline() == "ready\n"
        with pytest.raises(StoreError, match="another process"), store.lock():
            pass
        assert load_run(store.directory).status["state"] == "running"
        child.kill()
        child.wait()
    found = load_run(store.directory).status
    assert found["state"] == "interrupted" and "probably killed for memory (30.0 GiB used" in found["reason"]


def test_memory_of_a_container_is_its_limit(tmp_path: Path) -> None:
    machine = available_bytes(tmp_path)
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text(f"{GIB}\n")
    assert abs(available_bytes(tmp_path) - machine) < GIB
    (tmp_path / "memory.max").write_text(f"{GIB + 5 * 2**20}\n")
    assert available_bytes(tmp_path) == 5 * 2**20
    (tmp_path / "memory.stat").write_text(f"anon 7\ninactive_file {2**20}\n")
    assert available_bytes(tmp_path) == 6 * 2**20
    assert 2**20 < resident_bytes() < 100 * GIB
