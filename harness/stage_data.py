"""What a stage trains on: its rows by seeded permutation, its scorers, and all their texts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from cl_bench.harness.errors import DataError
from cl_bench.harness.measure.contamination import TrainingRow
from cl_bench.harness.measure.evaluation import with_system_prompt
from cl_bench.harness.spec import RunSpec, StageSpec
from cl_bench.methods.base import Stage
from cl_bench.tasks.base import Example, Task


def make_stage(spec: RunSpec, index: int, name: str, parts: Sequence[StageSpec], tasks: Mapping[str, Task]) -> Stage:
    """The stage as methods see it.

    Raises:
        DataError: A task has no training row.
    """
    # By key, because a union of training sets holds a task once, however often the sequence visits it.
    examples: dict[tuple[str, str], Example] = {}
    dev: dict[tuple[str, str], Example] = {}
    for part in parts:
        task = tasks[part.task]
        rows = chosen_rows(task.train(), part.rows, spec.seed)
        if not rows:
            raise DataError(f"stage {name} is empty", f"task {part.task} has no training row", "check its data")
        examples |= {example.key: _with_system(example, spec) for example in rows}
        dev |= {example.key: _with_system(example, spec) for example in task.dev()}
    scorers = {task.name: task.score for task in tasks.values()}
    epochs = {part.epochs for part in parts}
    common = epochs.pop() if len(epochs) == 1 else None
    overrides = {} if common is None else {"epochs": common}
    return Stage(index, name, list(examples.values()), list(dev.values()), scorers, overrides)


def chosen_rows(examples: Sequence[Example], rows: int | None, seed: int) -> list[Example]:
    """The first rows of a permutation that the run's seed decides, the same for every method; all where None."""
    order = sorted(examples, key=lambda e: hashlib.sha256(f"train:{seed}:{e.id}".encode()).digest())
    return order if rows is None else order[:rows]


def training_rows(stage: Stage, generated: Iterable[Mapping[str, Any]]) -> Iterator[TrainingRow]:
    """All that a stage trained on: its rows, those that modifiers brought included, with what was generated for them.

    Args:
        stage: The stage as it was trained.
        generated: Ledger rows; every text in a row counts, and ``id`` says whose it is.
    """
    written: dict[str, list[str]] = {}
    for row in generated:
        texts = written.setdefault(str(row.get("id")), [])
        texts += [text for key, value in row.items() if key != "id" for text in _texts(value)]
    for example in stage.examples:
        yield TrainingRow.of(example, written.pop(example.id, ()))
    yield from (TrainingRow("", (), tuple(texts)) for texts in written.values())


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)


def _with_system(example: Example, spec: RunSpec) -> Example:
    messages = with_system_prompt(example.messages, spec.evaluation.system_prompt)
    if messages == example.messages:
        return example
    return Example(
        example.task, example.id, messages, example.demonstration, example.answer, example.choices, example.meta
    )
