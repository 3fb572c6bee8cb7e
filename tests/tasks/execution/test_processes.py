from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from cl_bench.tasks.code_execution import available_isolation, run_program
from tests.tasks.execution.sandbox import BRIEF, Run, leftovers


def test_leftovers_are_found() -> None:
    """What the fixtures rely on."""
    command = [sys.executable, "-c", "print(flush=True); input()", "marker-of-this-test"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline()
        assert len(leftovers("marker-of-this-test")) == 1
        process.kill()
    assert leftovers("marker-of-this-test") == []


@pytest.mark.parametrize("rest", ["", "raise ValueError", "time.sleep(100)", "os._exit(0)"])
def test_children_that_ignore_signals_and_leave_the_group_end(run: Run, rest: str) -> None:
    source = (
        "import os, signal, time\n"
        "for number in range(1, 32):\n"
        "    try: signal.signal(number, signal.SIG_IGN)\n"
        "    except OSError: pass\n"
        "ready, told = os.pipe()\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "        os.write(told, b'x')\n"
        "        time.sleep(1000)\n"
        "    os._exit(0)\n"
        "os.read(ready, 1)\n"
    )
    outcome = run(source + rest, BRIEF)
    assert outcome.passed == (rest == "")


def test_a_program_cannot_end_its_supervisor(run: Run) -> None:
    source = (
        "import os\nfor n in (os.getppid(), -1):\n    try: os.kill(n, 9)\n    except OSError: pass\nraise ValueError"
    )
    assert run(source).reason == "failed: ValueError"


def test_a_caller_that_is_killed_leaves_no_program(place: Path) -> None:
    """The supervisor notices by itself."""
    code = (
        f"import tempfile; tempfile.tempdir = {str(place / 'programs')!r}\n"
        "from cl_bench.tasks.code_execution import run_program\n"
        "run_program('import os, time; os.fork(); time.sleep(1000)')"
    )
    with subprocess.Popen([sys.executable, "-c", code]) as caller:
        while len(leftovers("cl_bench.tasks.execution.launcher")) < 2 and caller.poll() is None:
            time.sleep(0.02)
        while len(leftovers(str(place / "programs"))) < 4 and caller.poll() is None:
            time.sleep(0.02)
        caller.kill()
    while leftovers(str(place)):
        time.sleep(0.02)


def test_an_interrupted_caller_leaves_no_program(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    available_isolation()

    def communicate(process: subprocess.Popen[bytes], job: bytes, timeout: float) -> None:
        assert process.stdin is not None
        process.stdin.write(job)
        process.stdin.close()
        while len(leftovers("while-it-runs")) < 1:
            time.sleep(0.02)
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess.Popen, "communicate", communicate)
    source = "import os, time\nos.execv('/bin/sh', ['sh', '-c', 'sleep 1000; : while-it-runs'])"
    with pytest.raises(KeyboardInterrupt):
        run_program(source)
    assert leftovers(str(place)) == [] and list((place / "programs").iterdir()) == []
