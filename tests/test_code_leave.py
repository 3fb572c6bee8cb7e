from __future__ import annotations

from collections.abc import Sequence

import pytest

from cl_bench.harness import code_leave
from cl_bench.harness.code_leave import check_code_leave
from cl_bench.harness.errors import UsageError
from cl_bench.harness.spec import SuiteSpec
from cl_bench.tasks.base import Example, Score, Task


class Plain(Task):
    name = "plain"

    def train(self) -> Sequence[Example]:
        return ()

    dev = test = train

    def score(self, example: Example, text: str) -> Score:
        return Score(False, None, False)


class Programs(Plain):
    name, executes_code = "programs", True


SUITE = SuiteSpec(name="mine", tasks=({"name": "humaneval", "executes_code": True}, {"name": "piqa"}))


def said(tasks: Sequence[Task], suite: SuiteSpec | None, allow: bool | None) -> list[str]:
    notes: list[str] = []
    check_code_leave(tasks, suite, allow, notes.append)
    return notes


def test_nothing_is_said_where_nothing_is_run() -> None:
    assert said([Plain()], SuiteSpec(name="mine", tasks=({"name": "piqa"},)), None) == []
    assert said([Plain()], None, None) == []


@pytest.mark.parametrize("allow", [None, False])
def test_a_task_that_runs_programs_needs_leave(allow: bool | None) -> None:
    with pytest.raises(UsageError, match="programs") as caught:
        said([Plain(), Programs()], None, allow)
    assert "--allow-code-execution" in str(caught.value) and "a sequence without programs" in str(caught.value)
    with pytest.raises(UsageError, match="programs") as caught:
        check_code_leave([Programs()], None, allow, print, of_a_run=False)
    assert "--allow-code-execution" in caught.value.hint and "sequence" not in caught.value.hint


def test_a_benchmark_that_runs_programs_is_left_out_and_named() -> None:
    (note,) = said([Plain()], SUITE, None)
    assert "humaneval" in note and "--allow-code-execution" in note and "piqa" not in note
    assert said([Plain()], SUITE, False) == []


def test_with_leave_everything_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert said([Programs()], SUITE, True) == []
    monkeypatch.setattr(code_leave, "available_isolation", refuse)
    assert said([Plain()], None, True) == []
    with pytest.raises(UsageError, match="not executed"):
        said([Plain()], SUITE, True)


def refuse() -> None:
    raise UsageError("programs are not executed on this system")
