from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from cl_bench.harness.errors import ClBenchError
from cl_bench.tasks.code_execution import Limits, Outcome, run_program
from tests.tasks.execution.sandbox import DEFAULT, Run, leftovers


def _interpreter_for_everybody() -> str | None:
    """The system's interpreter, where it is new enough: root's own may be unreadable to the user nobody."""
    found = shutil.which("python3", path="/usr/bin:/bin")
    version = "import sys; sys.exit(sys.version_info < (3, 11))"
    return found if found and subprocess.run([found, "-c", version]).returncode == 0 else None


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that the user nobody can pass through (those of pytest are closed), with the folder of the programs."""
    with tempfile.TemporaryDirectory(prefix="cl-bench-test-") as folder:
        place = Path(folder).resolve()
        place.chmod(0o711)
        (place / "programs").mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(place / "programs"))
        yield place


@pytest.fixture(params=["namespaces", "without"])
def run(request: pytest.FixtureRequest, place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Runs programs with and without namespaces; afterwards no process of theirs and no file may be left."""
    namespaces = request.param == "namespaces"
    if not namespaces and os.geteuid() == 0:
        monkeypatch.setattr(sys, "executable", _interpreter_for_everybody() or sys.executable)
    try:
        run_program("", namespaces=namespaces)
    except ClBenchError as error:
        pytest.skip(str(error))

    def run_in_mode(source: str, limits: Limits = DEFAULT) -> Outcome:
        return run_program(source, limits, namespaces)

    yield run_in_mode
    assert leftovers(str(place)) == []
    assert list((place / "programs").iterdir()) == []
