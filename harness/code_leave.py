"""The user's leave to run programs that a model wrote, asked for before anything is spent."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from cl_bench.harness.errors import UsageError
from cl_bench.harness.spec import SuiteSpec
from cl_bench.tasks.base import Task
from cl_bench.tasks.code_execution import available_isolation

_ALLOW, _REFUSE = "--allow-code-execution", "--no-code-execution"
_PROTECTION = "they run in processes of their own with limits on time, memory and files; that is no full protection"


def check_code_leave(
    tasks: Iterable[Task],
    suite: SuiteSpec | None,
    allow: bool | None,
    note: Callable[[str], None],
    of_a_run: bool = True,
) -> None:
    """Refuse a run that cannot be scored without running model-written programs, or say what it leaves out.

    Args:
        tasks: The sequence's tasks; a task that runs programs cannot be scored without leave.
        suite: The retention suite; its benchmarks that run programs are columns without values then.
        allow: What the user said; None: nothing, which is no leave.
        note: Told which columns will have no values, where the user has not said that this is meant.
        of_a_run: Whether the tasks are those of a sequence, in whose place another could be chosen.

    Raises:
        UsageError: A task of the sequence needs leave, or this system cannot run programs safely.
        CodeExecutionError: Nothing can be run here.
    """
    trained = sorted(task.name for task in tasks if task.executes_code)
    measured = sorted(str(entry["name"]) for entry in suite.tasks if entry.get("executes_code")) if suite else []
    if allow:
        if trained or measured:
            available_isolation()  # fails now rather than after hours of training
        return
    if trained:
        raise UsageError(
            f"{_names('task', trained)} cannot be scored without running programs that the model writes",
            why=_PROTECTION,
            hint=f"{_ALLOW}, or a sequence without {', '.join(trained)}" if of_a_run else f"{_ALLOW} runs them",
        )
    if measured and allow is None:
        note(
            f"{_names('benchmark', measured)}: left without values, because programs that the model writes are not run "
            f"unasked. {_ALLOW} runs them ({_PROTECTION}); {_REFUSE} leaves this remark out."
        )


def _names(kind: str, names: list[str]) -> str:
    return f"{kind}{'s' * (len(names) > 1)} {', '.join(names)}"
