from __future__ import annotations

import os

import pytest

from cl_bench.tasks.code_execution import Limits
from tests.tasks.execution.sandbox import BRIEF, Run


def test_an_endless_loop_ends(run: Run) -> None:
    assert run("while True: pass", BRIEF).reason == "timed out after 1 s"
    assert run("import time\ntime.sleep(1000)", BRIEF).reason == "timed out after 1 s"


def test_processor_time_is_limited(run: Run) -> None:
    assert run("while True: pass", Limits(seconds=60, cpu_seconds=1)).reason == "timed out after 1 s of processor time"


def test_an_endless_loop_in_an_error_message_ends(run: Run) -> None:
    source = "class E(Exception):\n    def __str__(self):\n        while True: pass\nraise E"
    assert run(source, BRIEF).reason == "timed out after 1 s"


def test_a_stopped_program_ends(run: Run) -> None:
    assert run("import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)", BRIEF).reason == "timed out after 1 s"


def test_memory_of_one_process_is_limited(run: Run) -> None:
    assert run("x = bytearray(4 << 30)").reason == "out of memory"
    assert run("x = [1]\nwhile True: x += x").reason == "out of memory"


def test_memory_of_all_processes_together_is_limited(run: Run) -> None:
    if "all together" not in run("").isolation.memory:
        pytest.skip("/proc does not show the program's processes here")
    source = (
        "import os, time\n"
        "for _ in range(6):\n"
        "    if os.fork() == 0:\n"
        "        x = b'x' * (80 << 20)\n"
        "        time.sleep(100)\n"
        "time.sleep(100)"
    )
    assert run(source, Limits(memory_bytes=200 << 20)).reason == "out of memory"


def test_a_fork_bomb_ends(run: Run) -> None:
    """Bounded (512 processes), so that a failure of what is tested here does no harm."""
    outcome = run("import os, time\nfor _ in range(9): os.fork()\ntime.sleep(100)", Limits(processes=40))
    assert outcome.reason in {"more than 40 processes", "failed: BlockingIOError"}


def test_threads_are_limited(run: Run) -> None:
    source = "import threading, time\nfor _ in range(200): threading.Thread(target=time.sleep, args=(100,)).start()\n"
    outcome = run(source + "time.sleep(100)", Limits(processes=40, memory_bytes=4 << 30))
    assert outcome.reason in {"more than 40 processes", "failed: RuntimeError"}


def test_huge_files_are_refused(run: Run) -> None:
    assert run("open('a', 'wb').write(bytes(64 << 20))").reason == "failed: OSError"
    many = "for n in range(50): open(str(n), 'wb').write(bytes(1 << 20))\n"
    outcome = run(many)
    assert outcome.reason == "failed: OSError" or "memory" not in outcome.isolation.files


def test_a_flood_of_output_is_cut_and_blocks_nobody(run: Run) -> None:
    limits = Limits(output_bytes=1000)
    outcome = run("for _ in range(300): print('x' * 99999)", limits)
    assert outcome.passed and outcome.output == "x" * 1000
    assert run("import os\nwhile True: os.write(2, b'x' * 65536)", BRIEF).reason == "timed out after 1 s"


def test_deep_recursion_ends(run: Run) -> None:
    outcome = run("import sys\nsys.setrecursionlimit(10 ** 9)\ndef f(x): return f(x + 1)\nf(0)", BRIEF)
    assert not outcome.passed


HIDDEN = {
    "memory behind a descriptor": "os.memfd_create('hidden')",
    "a user namespace of its own": "checked(libc.unshare(0x10000000))",
    "System V memory": "checked(libc.shmget(0, 1 << 24, 0o1600))",
    "clone into a user namespace": "checked(libc.syscall(56, 0x10000000 | 17, 0, 0, 0, 0))",
    "mount": "checked(libc.mount(b'none', b'.', b'tmpfs', 0, b''))",
}


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the system call of clone is given by its number")
@pytest.mark.parametrize("name", HIDDEN)
def test_what_gets_around_the_limits_is_refused(run: Run, name: str) -> None:
    source = f"""
import os

def checked(result):
    if result < 0:
        raise PermissionError
    if result == 0:
        os._exit(0)

try:
    import ctypes
    libc = ctypes.CDLL(None)
except PermissionError:
    libc = None  # refused by the audit hook, where that is the fence
try:
    if libc or "libc" not in {HIDDEN[name]!r}:
        {HIDDEN[name]}
        1 / 0
except PermissionError:
    pass
"""
    assert run(source).passed


def test_threads_and_processes_still_start(run: Run) -> None:
    source = """
import os, threading
found = []
thread = threading.Thread(target=found.append, args=(1,))
thread.start()
thread.join()
assert found == [1]
child = os.fork()
if child == 0:
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
"""
    assert run(source).passed
