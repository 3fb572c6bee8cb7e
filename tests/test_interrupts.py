"""An interrupt that a library swallowed is raised again; handlers are put back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from cl_bench.harness.interrupts import Interrupts
from tests.end_to_end.conftest import SMALL

SWALLOWING = '''
import os, signal

from cl_bench.methods.sft import SFT


class Swallowing:
    """What a library may do: an exception in a destructor goes nowhere."""

    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):
            pass


class Deaf(SFT):
    """SFT that is interrupted where nobody hears it."""

    name = "deaf"

    def adapt(self, student, stage, context):
        if stage.index == 2:
            Swallowing()
        return super().adapt(student, stage, context)
'''


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_a_swallowed_interrupt_is_raised_at_the_next_check() -> None:
    with Interrupts() as interrupts:
        interrupts.check()
        with pytest.raises(KeyboardInterrupt):
            interrupt()
        with pytest.raises(KeyboardInterrupt):
            interrupts.check()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_handler_of_somebody_else_stays() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Interrupts() as interrupts:
            interrupt()
            interrupts.check()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_install_nothing() -> None:
    found = []

    def work() -> None:
        with Interrupts() as interrupts:
            interrupts.check()
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [signal.default_int_handler]


@pytest.mark.end_to_end
def test_a_run_stops_though_the_exception_was_swallowed(tmp_path: Path) -> None:
    (tmp_path / "methods").mkdir()
    (tmp_path / "methods" / "deaf.py").write_text(SWALLOWING)
    command = [sys.executable, "-m", "cl_bench.harness.cli", "run", "--method", "deaf", "--sequence", "science", *SMALL]
    done = subprocess.run(
        [*command, "--suite", "none", "--include-path", str(tmp_path)], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 130, done.stderr
    assert "Exception ignored" in done.stderr
    (run,) = tmp_path.glob("runs/*/*/*")
    assert (run / "stages" / "01-chemistry" / "done.json").exists()
    assert not (run / "stages" / "02-biology" / "done.json").exists()
