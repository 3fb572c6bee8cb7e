"""What a method cannot do without, looked for in the stages before anything is spent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from cl_bench.harness.errors import DataError, UsageError
from cl_bench.methods.base import Method, Need
from cl_bench.tasks.base import Example, Task


def check_needs(method: type[Method], stages: Mapping[str, Task]) -> None:
    """Check that every stage has training rows, and some with what the method needs.

    An aligner is no matter of rows: ``need_aligner`` refuses a run without one.

    Args:
        method: The method.
        stages: Task of each stage by the stage's name.

    Raises:
        DataError: A stage has no training row.
        UsageError: The method cannot train on a stage; names the stage and the need.
    """
    for name, task in stages.items():
        rows = task.train()
        if not rows:
            raise DataError(f"the task {task.name} of stage {name} has no training row", hint="check its data")
        for need, (met, why) in _MET.items():
            if need in method.needs and not met(task, rows):
                raise UsageError(
                    f"method {method.name} cannot train on stage {name}",
                    why=f"it needs {need.value}, and {why} (task {task.name})",
                    hint="choose another method, or a sequence without that task",
                )


def need_aligner(method: str, stages: Sequence[str]) -> UsageError:
    """The refusal of a run of a method that needs an aligner and got none."""
    return UsageError(
        f"method {method} needs an aligner",
        why=f"it needs {Need.ALIGNER.value} in every stage ({', '.join(stages)}), and the run names none",
        hint="name one with --aligner",
    )


def _demonstrations(task: Task, rows: Sequence[Example]) -> bool:
    return any(row.demonstration for row in rows)


def _reward(task: Task, rows: Sequence[Example]) -> bool:
    """Whether the scorer can find something right: gold is, or a row without gold holds something to check against."""
    for row in rows:
        gold = row.demonstration or row.answer
        if task.score(row, gold).correct if gold else bool(row.meta):
            return True
    return False


def _extractable(task: Task, rows: Sequence[Example]) -> bool:
    texts = ((row, row.demonstration or row.answer) for row in rows if row.answer)
    return any(text and task.score(row, text).parsed is not None for row, text in texts)


_MET: dict[Need, tuple[Callable[[Task, Sequence[Example]], bool], str]] = {
    Need.DEMONSTRATIONS: (_demonstrations, "no training row has any"),
    Need.REWARD: (_reward, "its scorer finds no training row's gold response right"),
    Need.ANSWER_EXTRACTION: (_extractable, "its scorer reads no answer in any training row's gold response"),
}
"""How a stage's rows meet a need, and what is said where they do not."""
