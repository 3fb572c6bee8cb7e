"""Every write of a run fails once: the run directory stays readable and right, and resumes to the right end.

Each write fails in one of three ways, in turn; with ``CL_BENCH_EVERY_FAULT`` set (``make faults``) in all of them.
"""

from __future__ import annotations

import errno
import os
import resource
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Literal

import pytest

from cl_bench.harness import manifest
from cl_bench.harness.errors import ClBenchError, NotARunError
from cl_bench.harness.measure.shift.panel import ShiftMeter
from cl_bench.harness.run_directory import load_run
from cl_bench.harness.selfcheck.results import results_of
from cl_bench.reports import plots
from tests.faults.stub import StubRun

Fault = Literal["disk full", "input/output error", "cut short"]
FAULTS: tuple[Fault, ...] = ("disk full", "input/output error", "cut short")
TURNS = range(len(FAULTS) if os.environ.get("CL_BENCH_EVERY_FAULT") else 1)
_MOST_WRITES = 200
_CUT = 64
"""Bytes after which a file is cut short."""


class Writes:
    """Counts what is opened for writing and renamed below a folder, and lets one of these fail."""

    def __init__(self) -> None:
        """Count nothing yet. An audit hook stays for the life of the process."""
        self.folder, self.count, self.at, self.fault = "", 0, 0, FAULTS[0]
        self._limit = resource.getrlimit(resource.RLIMIT_FSIZE)
        sys.addaudithook(self._audited)

    @contextmanager
    def failing(self, folder: Path, at: int = 0, fault: Fault = "disk full") -> Iterator[None]:
        """Within the block, the write number ``at`` below the folder fails; a full disk and cut files stay so."""
        before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        self.folder, self.count, self.at, self.fault = str(folder), 0, at, fault
        try:
            yield
        finally:
            self.folder = ""
            resource.setrlimit(resource.RLIMIT_FSIZE, self._limit)
            signal.signal(signal.SIGXFSZ, before)

    def _audited(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.folder or event not in ("open", "os.rename"):
            return
        if event == "open" and not (isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)):
            return
        path = str(arguments[0])
        if not path.startswith(self.folder) or path.endswith(".lock"):
            return
        self.count += 1
        if self.at and self.fault == "cut short" and self.count == self.at:
            resource.setrlimit(resource.RLIMIT_FSIZE, (_CUT, self._limit[1]))
        elif self.at and self.fault == "disk full" and self.count >= self.at:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        elif self.fault == "input/output error" and self.count == self.at:
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)


@pytest.fixture(scope="module")
def writes() -> Writes:
    return Writes()


@pytest.fixture(scope="module")
def stub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StubRun]:
    """The run; what every one of the many runs would do again is done once: figures, shifts, asking for versions."""
    measured: dict[int, dict[str, Any]] = {}
    measure = ShiftMeter.measure

    def once(self: ShiftMeter, index: int, *others: Any) -> dict[str, Any]:
        if index not in measured:
            measured[index] = measure(self, index, *others)
        return measured[index]

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CL_BENCH_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setattr(plots, "heatmap", lambda _: b"\x89PNG" + bytes(200))
        patch.setattr(ShiftMeter, "measure", once)
        patch.setattr(manifest, "environment", cache(manifest.environment))
        stub = StubRun(tmp_path_factory.mktemp("stub"))
        stub.run(tmp_path_factory.mktemp("first"))
        yield stub


@pytest.fixture(scope="module")
def whole(stub: StubRun, writes: Writes, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], int]:
    """What an undisturbed run comes to, and how many writes it makes."""
    output = tmp_path_factory.mktemp("whole")
    with writes.failing(output):
        assert stub.run(output).status == "done"
    assert 50 < writes.count <= _MOST_WRITES
    return results_of(stub.directory(output)), writes.count


def part_of(found: dict[str, str], whole: dict[str, str]) -> list[str]:
    """Files of finished stages that are not as they should be."""
    return [name for name, digest in found.items() if name.startswith("stages/") and whole.get(name) != digest]


@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("shift", range(3))
def test_every_write_fails_once(
    shift: int, turn: int, stub: StubRun, writes: Writes, whole: tuple[dict[str, str], int], tmp_path: Path
) -> None:
    expected, count = whole
    stopped = 0
    for at in range(1 + shift, count + 1, 3):
        fault, output = FAULTS[(at // 3 + turn) % len(FAULTS)], tmp_path / str(at)
        directory = stub.directory(output)
        try:
            with writes.failing(output, at, fault):
                stub.run(output)
        except (OSError, ClBenchError):
            stopped += 1
        where = f"write {at} of {count}: {fault}"
        try:
            view = load_run(directory)
        except NotARunError:
            assert not (directory / "stages").exists(), where
        else:
            for folder in view.stages.values():
                kept = {f"stages/{folder.name}/{name}": d for name, d in _stage_results(folder).items()}
                assert part_of(kept, expected) == [], where
        assert stub.run(output).status == "done", where
        assert results_of(directory) == expected, where
        assert not [path for path in directory.rglob("*") if ".tmp-" in path.name], where
        shutil.rmtree(output)
    assert stopped > count / 5, "hardly any fault reached the run"


def _stage_results(folder: Path) -> dict[str, str]:
    """``results_of`` of one stage."""
    prefix = f"stages/{folder.name}/"
    found = results_of(folder.parent.parent)
    return {name.removeprefix(prefix): digest for name, digest in found.items() if name.startswith(prefix)}
