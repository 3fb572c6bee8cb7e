from __future__ import annotations

import pytest

from cl_bench.tasks.code_execution import run_program
from tests.tasks.execution.sandbox import Run


def test_a_program_that_runs_to_its_end_passes(run: Run) -> None:
    outcome = run("import math\nassert math.isqrt(17) == 4\nprint('done')")
    assert (outcome.passed, outcome.reason, outcome.output) == (True, "passed", "done\n")


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("assert 1 == 2", "failed: AssertionError"),
        ("undefined", "failed: NameError"),
        ("def f(:", "failed: SyntaxError"),
        ("x = 1\0", "failed: SyntaxError"),
        ("'\ud800'", "failed: UnicodeEncodeError"),
        ("input()", "failed: EOFError"),
        ("raise KeyboardInterrupt", "failed: KeyboardInterrupt"),
        ("def f(): f()\nf()", "failed: RecursionError"),
    ],
)
def test_the_reason_names_the_error(run: Run, source: str, reason: str) -> None:
    outcome = run(source)
    assert not outcome.passed
    assert outcome.reason == reason or (source.startswith("x") and outcome.reason == "failed: ValueError")


FORGERIES = {
    "leaves": "import os; os._exit(0)",
    "exits": "import sys; sys.exit(0)",
    "raises": "raise SystemExit",
    "says so": "print('passed')",
    "says so everywhere": (
        "import os\n"
        "for n in range(30):\n"
        "    try: os.write(n, b'passed\\nready\\n 0 passed\\n')\n"
        "    except OSError: pass"
    ),
    "kills itself": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "at exit": "import atexit, os; atexit.register(os._exit, 0)",
    "replaces": (
        "import builtins, os, sys\n"
        "builtins.compile = builtins.exec = lambda *a, **k: None\n"
        "builtins.BaseException = builtins.AssertionError = ValueError\n"
        "os._exit = os.write = sys.excepthook = lambda *a: None"
    ),
    "replaces the checker": "import __main__ as m\nm._reason = lambda e: b'passed'\nm._print = m._reason",
    "another process": "import os\nif os.fork() == 0: os._exit(0)",
    "another thread": "import os, threading\nthreading.Thread(target=os._exit, args=(0,)).start()",
    "breaks its streams": "import sys; sys.stdout = sys.stderr = None",
    "runs on in another process": "import os\nif os.fork(): os._exit(0)",
    "swallows what follows": "text = '''",
}


@pytest.mark.parametrize("name", FORGERIES)
def test_no_program_passes_a_test_that_fails(name: str) -> None:
    assert not run_program([FORGERIES[name], "assert False\n'''\n'''"]).passed


def test_parts_share_names_and_nothing_else() -> None:
    parts = ["import math", "from __future__ import annotations\ndef f(x: Later) -> int: return math.floor(x)"]
    assert run_program([*parts, "assert f(2.5) == 2"]).passed
    assert run_program(["if True:\n    x = 1\n    # no end", "assert x == 1 and __name__ != '__main__'"]).passed


def test_a_copy_of_the_program_has_no_say() -> None:
    assert run_program("import os\nif os.fork() == 0: raise ValueError\nos.wait()").passed
    assert not run_program("import os\nif os.fork(): os.wait(); raise ValueError").passed


def test_descriptors_may_be_closed(run: Run) -> None:
    outcome = run("import os\nos.closerange(0, 300)")
    assert outcome.reason.startswith("ended before the tests were over (exit code")
    assert run("import os\nos.close(1); os.close(2)").passed


def test_a_crash_is_a_fault_of_the_program(run: Run) -> None:
    outcome = run("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)")
    assert outcome.reason == "ended before the tests were over (signal 11)"
