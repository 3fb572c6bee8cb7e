"""A run's recorded responses, scored again by the scorers as they are now; no model is loaded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cl_bench.harness.errors import DataError, UsageError
from cl_bench.harness.measure.recorded_lm import RecordedLM
from cl_bench.harness.measure.run_evaluation import TaskColumn, suite_runner, task_columns
from cl_bench.harness.measure.suite import SuiteRunner
from cl_bench.harness.registry import Registry
from cl_bench.harness.run_directory import RunView
from cl_bench.harness.spec import Execution, data_options
from cl_bench.tasks.base import Task

Samples = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class RescoredCell:
    """A cell of the matrix, as it was recorded and as it is now.

    Attributes:
        recorded: The value in the matrix, a fraction or None.
        rescored: The value by the scorers as they are now.
        changed: Ids whose verdict is another one.
    """

    recorded: float | None
    rescored: float | None
    changed: tuple[str, ...] = ()


def rescored_cells(view: RunView, execution: Execution, registry: Registry) -> dict[str, RescoredCell]:
    """Every cell in the finished rows of a run, scored again.

    Args:
        view: The run.
        execution: Where its data are, and whether programs may be run.
        registry: Its tasks.

    Returns:
        Cells by ``row/column``.

    Raises:
        DataError: The data are gone, or do not hold the rows that were answered.
        UsageError: Responses are programs, and these may not be run.
    """
    options = data_options(view.spec.data, execution)
    tasks = {task.name: registry.task(task.name, options) for task in view.spec.tasks}
    _check_leave(view, tasks, execution)
    columns, suite = list(task_columns(view.spec, tasks)), suite_runner(view.spec, options)
    cells: dict[str, RescoredCell] = {}
    for row in view.stages:
        for item in columns:
            name = item.column.name
            value, changed = _task_cell(item, view.samples(row, name))
            cells[f"{row}/{name}"] = RescoredCell(view.matrix.value(row, name), value, changed)
        cells |= dict(_suite_cells(view, row, suite))
    return cells


def _check_leave(view: RunView, tasks: Mapping[str, Task], execution: Execution) -> None:
    """Refuse to run the programs in a run's responses unasked, whatever the run itself was allowed to do."""
    suite = view.spec.suite.tasks if view.spec.suite else ()
    measured = {str(entry["name"]) for entry in suite if entry.get("executes_code")}
    names = [task.name for task in tasks.values() if task.executes_code]
    names += [name for name in measured if any(view.matrix.value(row, name) is not None for row in view.matrix.rows)]
    if names and not execution.allow_code:
        raise UsageError(
            f"the responses to {', '.join(sorted(names))} are programs, which are not run unasked",
            "the leave that the run had is not that of whoever scores it",
            "--allow-code-execution runs them in a sandbox",
        )


def _task_cell(item: TaskColumn, samples: Iterable[Mapping[str, Any]]) -> tuple[float | None, tuple[str, ...]]:
    examples = {example.id: example for example in item.examples}
    verdicts: dict[str, tuple[bool, bool]] = {}
    for sample in samples:
        if sample["response"] is None:
            continue
        if sample["id"] not in examples:
            raise _other_rows(item.column.name, sample["id"])
        now = item.task.score(examples[sample["id"]], sample["response"]).correct
        verdicts[sample["id"]] = now, bool(sample["correct"])
    value = sum(now for now, _ in verdicts.values()) / len(verdicts) if verdicts else None
    return value, tuple(name for name, (now, before) in verdicts.items() if now != before)


def _suite_cells(view: RunView, row: str, suite: SuiteRunner) -> Iterator[tuple[str, RescoredCell]]:
    samples: dict[str, Samples] = {entry.name: list(view.samples(row, entry.name)) for entry in suite.entries}
    for name, chosen in suite.rows().items():
        # A benchmark that was not measured has no samples; one that is absent now has no rows.
        if len(samples[name]) != len(chosen) or any(
            a["id"] != b.id for a, b in zip(samples[name], chosen, strict=True)
        ):
            raise _other_rows(name, next(iter(sample["id"] for sample in samples[name]), "none"))
    for name, result in suite.run_with(RecordedLM(samples)).items():
        pairs = zip(samples[name], result.samples, strict=True)
        changed = tuple(str(old["id"]) for old, new in pairs if old["correct"] != new["correct"])
        yield f"{row}/{name}", RescoredCell(view.matrix.value(row, name), result.value, changed)


def _other_rows(column: str, name: Any) -> DataError:
    return DataError(
        f"the rows of {column} are not those that the run evaluated (such as {name!r})",
        hint="give the run's own data with --data-root, and --allow-code-execution where it had that",
    )
