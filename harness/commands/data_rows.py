"""``cl-bench data rows``: a task's prompts and ids, for whoever answers them elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

from cl_bench.harness.commands.execution import prepare_libraries, talking_on_stderr
from cl_bench.harness.errors import EXIT_DONE
from cl_bench.harness.registry import Registry
from cl_bench.harness.spec import DataSpec, Execution, data_options
from cl_bench.tasks.base import SPLITS, Example, SplitName, Task
from cl_bench.tasks.sources.base import OptionOrder


@dataclass(frozen=True, slots=True)
class RowsOptions:
    """What ``data rows`` was asked for, but the task.

    Attributes:
        execution: Where data are.
        source: Where the task's rows come from; None: public data where a data root is given, else the lab.
        split: One split; None: all rows that ``score`` expects a prediction for.
        option_order: Order of the options in the prompts.
        answers: Whether the right answers are printed too.
        limit: How many rows at most, or None.
    """

    execution: Execution
    source: Literal["lab", "hub"] | None = None
    split: SplitName | None = None
    option_order: OptionOrder = "as-published"
    answers: bool = False
    limit: int | None = None


def rows_command(name: str, options: RowsOptions) -> int:
    """Print one line of JSON a row.

    Raises:
        UnknownNameError: No such task.
        DataError: Its data are absent or broken.
    """
    execution = options.execution
    prepare_libraries(execution)
    source = options.source or ("hub" if execution.data_root else "lab")
    data = data_options(DataSpec(source=source, option_order=options.option_order), execution)
    with talking_on_stderr():
        task = Registry(execution.include_paths).task(name, data)
        rows = list(islice(_rows(task, options.split), options.limit))
    for split, example in rows:
        print(json.dumps(_row(split, example, options.answers)))
    return EXIT_DONE


def _rows(task: Task, split: SplitName | None) -> Iterator[tuple[SplitName | None, Example]]:
    """Rows with their split; last those in none of them, which ``score`` expects a prediction for all the same."""
    names = [split] if split else SPLITS
    seen: set[str] = set()
    for name in names:
        for example in task.split(name):
            if example.id not in seen:
                seen.add(example.id)
                yield name, example
    if split is None:
        yield from ((None, example) for example in task.scorable() if example.id not in seen)


def _row(split: SplitName | None, example: Example, answers: bool) -> dict[str, Any]:
    choices = None if example.choices is None else list(example.choices)
    row = {"id": example.id, "split": split, "messages": list(example.messages), "choices": choices}
    return row | ({"answer": example.answer} if answers else {})
