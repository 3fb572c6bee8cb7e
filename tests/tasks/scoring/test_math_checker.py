from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cl_bench.tasks.base import Example
from cl_bench.tasks.scoring import math
from cl_bench.tasks.scoring.math_checker import MathChecker, Verdict, math_checker

READY = "print('{\"ready\": true}', flush=True); import sys, time; line = sys.stdin.readline(); "
REPLY = "print('{\"equal\": true}', flush=True); time.sleep(60)"


def stand_in(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


def is_gone(pid: int) -> bool:
    """Whether no process of that id is left, not even a zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_it_starts_on_first_use_and_ends_when_closed() -> None:
    checker = MathChecker()
    assert checker.pid is None
    assert checker.equal("x+1", "1+x") == Verdict(True)
    pid = checker.pid
    assert pid is not None and os.getpgid(pid) == pid
    assert checker.equal("x+1", "x+2") == Verdict(False) and checker.pid == pid
    checker.close()
    assert checker.pid is None and is_gone(pid)
    assert checker.equal("x+1", "1+x") == Verdict(True)
    checker.close()


def test_an_endless_comparison_is_ended_and_the_next_one_works() -> None:
    checker = MathChecker(limit_s=0.3)
    assert checker.equal("x+1", "1+x").equal
    pid = checker.pid
    verdict = checker.equal("2", "10^{10^{10}}")
    assert verdict == Verdict(None, "math-verify took longer than 0.3 s")
    assert pid is not None and is_gone(pid)
    assert checker.equal("x+1", "1+x") == Verdict(True)
    checker.close()


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        (READY + "time.sleep(60)", "took longer than 0.5 s"),
        # A process that hears no other signal, with a child of its own in its group.
        (
            "import signal, subprocess, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
            "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']); " + READY + "time.sleep(60)",
            "took longer than 0.5 s",
        ),
        (READY + "sys.exit(3)", "ended (exit status 3)"),
        (READY + "import os; os.kill(os.getpid(), 9)", "ended (exit status -9)"),
        (READY + "print('no json', flush=True); time.sleep(60)", "gave no verdict"),
        (READY + "print('[]', flush=True); time.sleep(60)", "gave no verdict"),
        ("import sys; sys.exit(1)", "ended (exit status 1)"),
        ("import time; time.sleep(60)", "it was not ready after 1 s"),
    ],
)
def test_a_failing_process_is_ended_and_named(code: str, problem: str) -> None:
    start_limit_s = 1.0 if problem.startswith("it was not ready") else 60.0
    checker = MathChecker(stand_in(code), wall_limit_s=0.5, start_limit_s=start_limit_s)
    verdict = checker.equal("1", "1")
    assert verdict.equal is None and verdict.problem is not None and problem in verdict.problem
    assert checker.pid is None


def test_a_command_that_does_not_exist_is_named() -> None:
    verdict = MathChecker(("/nonexistent/python",)).equal("1", "1")
    assert verdict.equal is None and "gave no verdict" in str(verdict.problem)


def test_a_killed_process_is_replaced() -> None:
    checker = MathChecker()
    assert checker.equal("x+1", "1+x").equal
    assert checker.pid is not None
    os.kill(checker.pid, signal.SIGKILL)
    assert checker.equal("x+1", "1+x").problem is not None
    assert checker.equal("x+1", "1+x") == Verdict(True)
    checker.close()


def test_an_interrupt_leaves_no_stale_reply(monkeypatch: pytest.MonkeyPatch) -> None:
    checker = MathChecker()
    assert checker.equal("x+1", "1+x").equal

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("cl_bench.tasks.scoring.math_checker.os.read", interrupted)
        with pytest.raises(KeyboardInterrupt):
            checker.equal("x+1", "x+2")
    assert checker.pid is None
    assert checker.equal("x+1", "1+x") == Verdict(True)
    checker.close()


def test_threads_share_one_process() -> None:
    checker = MathChecker()
    pairs = [("x+1", "1+x"), ("x+1", "x+2")] * 10
    with ThreadPoolExecutor(4) as pool:
        verdicts = list(pool.map(lambda pair: checker.equal(*pair), pairs))
    assert verdicts == [Verdict(True), Verdict(False)] * 10
    checker.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_forked_child_has_its_own_and_leaves_the_parents_alone() -> None:
    checker = math_checker()
    assert checker.equal("x+1", "1+x").equal
    pid = checker.pid
    child = os.fork()
    if child == 0:
        code = 1
        try:
            own = math_checker()
            fine = own is not checker and own.equal("x+1", "1+x").equal and own.pid != pid
            checker.close()  # must not end the parent's process
            own.close()
            code = 0 if fine else 1
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert checker.equal("x+1", "1+x") == Verdict(True) and checker.pid == pid


def test_the_process_ends_with_the_program(tmp_path: Path) -> None:
    code = (
        "from cl_bench.tasks.scoring.math_checker import math_checker\n"
        "checker = math_checker()\nassert checker.equal('x+1', '1+x').equal\nprint(checker.pid)"
    )
    # A library's name in the working folder is not taken for the library.
    (tmp_path / "sympy.py").write_text("raise RuntimeError('the wrong sympy')")
    command = [sys.executable, "-P", "-c", code]
    child = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path, check=True)
    assert is_gone(int(child.stdout))


def test_a_verdict_that_cannot_be_had_is_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = MathChecker(stand_in(READY + "sys.exit(3)"))
    monkeypatch.setattr(math, "math_checker", lambda: broken)
    example = Example("t", "1", ({"role": "user", "content": "q"},), answer=r"\frac{1}{2}")
    score = math.score_math(example, r"\boxed{0.5}")
    assert (score.correct, score.parsed) == (False, "0.5") and "ended" in str(score.unreliable)
    # Equal texts need no verdict.
    same = math.score_math(example, r"\boxed{\dfrac{1}{2}}")
    assert (same.correct, same.unreliable) == (True, None)


def test_a_good_reply_is_taken() -> None:
    checker = MathChecker(stand_in(READY + REPLY))
    assert checker.equal("1", "2") == Verdict(True)
    checker.close()
