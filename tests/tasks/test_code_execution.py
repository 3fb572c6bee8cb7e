from __future__ import annotations

import os
import shutil
import sys

import pytest

from cl_bench.harness.errors import UsageError
from cl_bench.tasks.code_execution import CodeExecutionError, Limits, available_isolation, run_program, run_programs


def test_programs_run_from_threads_and_keep_their_order() -> None:
    outcomes = run_programs([f"assert {number} % 3" for number in range(9)], workers=3)
    assert [outcome.passed for outcome in outcomes] == [number % 3 != 0 for number in range(9)]


def test_what_is_in_force_is_said() -> None:
    isolation = available_isolation()
    assert all((isolation.processes, isolation.network, isolation.files, isolation.user, isolation.memory))
    with_hook = [text for text in (isolation.network, isolation.files) if "audit hook" in text]
    assert all("no security boundary" in text for text in with_hook)


@pytest.mark.parametrize("limits", [{"seconds": 0}, {"memory_bytes": 1 << 20}, {"processes": -1}])
def test_limits_that_nothing_can_run_under_are_refused(limits: dict[str, int]) -> None:
    with pytest.raises(UsageError, match=next(iter(limits))):
        Limits(**limits)


def test_a_system_without_limits_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "name", "nt")
    with pytest.raises(UsageError, match="not executed"):
        run_program("")


def test_a_supervisor_that_fails_is_an_error_of_the_checker(monkeypatch: pytest.MonkeyPatch) -> None:
    available_isolation()
    for executable, message in ((shutil.which("false"), "exit code 1"), ("/nowhere/python", "not be started")):
        monkeypatch.setattr(sys, "executable", executable)
        with pytest.raises(CodeExecutionError, match=message):
            run_program("")
