"""Verdicts on programs that cannot be trusted: the checker failed, or a busy machine may have stopped the program."""

from __future__ import annotations

import os

import pytest

from cl_bench.tasks.base import Example
from cl_bench.tasks.code_execution import CodeExecutionError, Isolation, Outcome
from cl_bench.tasks.scoring import code as scoring
from cl_bench.tasks.scoring.code import score_code

PROGRAM = "def double(n):\n    return 2 * n\n"


def example() -> Example:
    meta = {"prefix": "", "setup": "", "tests": "assert double(2) == 4", "entry_point": "double"}
    return Example("coding", "1", ({"role": "user", "content": "Write it."},), meta=meta)


def test_a_checker_that_fails_is_no_fault_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise CodeExecutionError("the supervisor did not start")

    monkeypatch.setattr(scoring, "run_program", fail)
    score = score_code(example(), PROGRAM)
    assert not score.correct and score.unreliable == "the supervisor did not start"


@pytest.mark.parametrize(
    ("reason", "unreliable"),
    [
        ("timed out after 30 s", "timed out after 30 s"),
        ("timed out after 10 s of processor time", None),
        ("failed: AssertionError", None),
    ],
)
def test_a_program_that_only_the_clock_stopped_has_no_reliable_verdict(
    reason: str, unreliable: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    isolation = Isolation("none", "none", "none", "none", "none")
    monkeypatch.setattr(scoring, "run_program", lambda *_: Outcome(False, reason, 30.0, isolation))
    score = score_code(example(), PROGRAM)
    assert (score.correct, score.format_ok, score.unreliable) == (False, True, unreliable)


def test_processor_time_ends_a_program_that_computes_before_the_clock_does() -> None:
    assert scoring.LIMITS.cpu_seconds < scoring.LIMITS.seconds


def test_refusal_of_the_system_makes_the_verdict_unreliable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "name", "nt")
    assert "not executed" in str(score_code(example(), PROGRAM).unreliable)
