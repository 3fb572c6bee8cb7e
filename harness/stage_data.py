"""What a stage trains on: its rows by seeded permutation, its scorers, and the overlap with what is evaluated."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cl_bench.harness.errors import DataError
from cl_bench.harness.measure.evaluation import with_system_prompt
from cl_bench.harness.spec import RunSpec, StageSpec
from cl_bench.methods.base import Stage
from cl_bench.tasks.base import Example, Task
from cl_bench.tasks.sources.splits import normalised


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


def overlap(
    stage: Stage, generated: Iterable[Mapping[str, Any]], evaluated: Mapping[str, Sequence[str]]
) -> dict[str, int]:
    """Evaluated rows by column whose question is also trained on, or stands in a generated text.

    Case, white space and the words "Question:" and "Answer:" around a question make no difference.

    Args:
        stage: Its rows' questions.
        generated: Generated rows; their ``text``.
        evaluated: Questions of the evaluated rows by column.
    """
    trained = {_bare(example.question) for example in stage.examples}
    # One text to search in; a line break ends each, which no normalised question holds.
    texts = "\n".join(normalised(str(row["text"])) for row in generated if row.get("text"))
    return {
        column: sum(_bare(question) in trained or _bare(question) in texts for question in questions)
        for column, questions in evaluated.items()
    }


def _bare(question: str) -> str:
    return normalised(question).removeprefix("question:").removesuffix("answer:").strip()


def _with_system(example: Example, spec: RunSpec) -> Example:
    messages = with_system_prompt(example.messages, spec.evaluation.system_prompt)
    if messages == example.messages:
        return example
    return Example(
        example.task, example.id, messages, example.demonstration, example.answer, example.choices, example.meta
    )
