"""A run's responses scored again: programs among them need the leave of whoever scores."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from cl_bench.harness.errors import UsageError
from cl_bench.harness.measure.matrix import Cell, Column, Matrix
from cl_bench.harness.measure.rescored_run import _check_leave
from cl_bench.harness.run_directory import RunView
from cl_bench.harness.spec import Execution, SuiteSpec
from tests.test_code_leave import Plain, Programs


def test_programs_in_a_run_are_run_with_leave_of_whoever_scores_it() -> None:
    """A run directory may come from somebody else: its manifest gives no leave."""
    view = cast(RunView, SimpleNamespace(spec=SimpleNamespace(suite=None), matrix=Matrix(())))
    for allow in (None, False):
        with pytest.raises(UsageError, match="programs are programs, which are not run unasked"):
            _check_leave(view, {"programs": Programs()}, Execution(allow_code=allow))
    _check_leave(view, {"programs": Programs()}, Execution(allow_code=True))
    _check_leave(view, {"plain": Plain()}, Execution())


def test_programs_of_a_benchmark_that_was_measured_need_leave_too() -> None:
    matrix = Matrix([Column("humaneval", "retention", 0.0, 1, "pass@1")])
    matrix.add_row("base")
    suite = SuiteSpec(name="mine", tasks=({"name": "humaneval", "executes_code": True},))
    view = cast(RunView, SimpleNamespace(spec=SimpleNamespace(suite=suite), matrix=matrix))
    _check_leave(view, {}, Execution())  # a column without values has no responses
    matrix.set("base", "humaneval", Cell(1.0))
    with pytest.raises(UsageError, match="humaneval"):
        _check_leave(view, {}, Execution())
