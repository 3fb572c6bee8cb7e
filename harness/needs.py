"""What a method cannot do without, looked for in the tasks before anything is spent."""

from __future__ import annotations

from collections.abc import Mapping

from cl_bench.harness.errors import DataError, UsageError
from cl_bench.methods.base import Method, Need
from cl_bench.tasks.base import Task

_IN_ROWS = {Need.DEMONSTRATIONS: "demonstration", Need.ANSWER_EXTRACTION: "answer"}
"""Needs that training rows meet, with the field that does. Every task has a scorer; aligners are chosen by name."""


def check_needs(method: type[Method], tasks: Mapping[str, Task]) -> None:
    """Check that every task has training rows, and some with what the method needs.

    Raises:
        DataError: A task has no training row.
        UsageError: The method cannot train on a task.
    """
    for name, task in tasks.items():
        rows = task.train()
        if not rows:
            raise DataError(f"the task {name} has no training row", hint="check its data")
        for need, field in _IN_ROWS.items():
            if need in method.needs and not any(getattr(row, field) for row in rows):
                raise UsageError(
                    f"method {method.name} cannot train on task {name}",
                    why=f"it needs {need.value}, and no training row has any",
                    hint="choose another method, or a sequence without that task",
                )
