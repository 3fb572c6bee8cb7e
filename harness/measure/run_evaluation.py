"""Evaluates one model on everything a run measures: each task's test and ood rows, then the retention suite."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cl_bench.harness.cache import Cache, EvaluationKey, rows_hash
from cl_bench.harness.context import BACKEND, backend_version, sampler_for
from cl_bench.harness.files import content_hash
from cl_bench.harness.generation.base import GenerationSettings, Sampler
from cl_bench.harness.generation.batches import BatchLedger
from cl_bench.harness.measure.contamination import Item
from cl_bench.harness.measure.contamination_documents import document_item
from cl_bench.harness.measure.evaluation import (
    PromptCache,
    TaskRows,
    evaluate_together,
    evaluation_settings,
    fixed_rows,
    with_worked_examples,
    worked_examples,
)
from cl_bench.harness.measure.matrix import Cell, Column
from cl_bench.harness.measure.sampled import Sampling
from cl_bench.harness.measure.suite import SuiteRunner
from cl_bench.harness.measure.task_result import TaskResult
from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.harness.spec import RunSpec
from cl_bench.methods.base import Progress
from cl_bench.tasks.base import Example, Task
from cl_bench.tasks.baselines import baselines, hide_question
from cl_bench.tasks.sources.base import DataOptions

_KIND = "evaluations"


@dataclasses.dataclass(frozen=True, slots=True)
class TaskColumn:
    """A column that comes from a task: its rows, fixed once per run."""

    column: Column
    task: Task
    examples: tuple[Example, ...]

    @property
    def hidden(self) -> tuple[Example, ...]:
        """The rows with their questions hidden; none unless every row has options."""
        return tuple(map(hide_question, self.examples)) if all_have_options(self.examples) else ()


class RunEvaluator:
    """Evaluates models of one run; prompts and lm-eval tasks are made once."""

    def __init__(self, spec: RunSpec, tasks: Mapping[str, Task], options: DataOptions, cache: Cache) -> None:
        """Choose the rows of every column.

        Args:
            spec: The run.
            tasks: Its tasks by name.
            options: Where public data are.
            cache: Where finished cells of known weights are kept.
        """
        self._spec, self._cache = spec, cache
        evaluation = spec.evaluation
        self._sampling = Sampling(evaluation.samples, evaluation.temperature) if evaluation.samples else None
        self._prompts: PromptCache = {}
        self.task_columns = list(task_columns(spec, tasks))
        self._suite = suite_runner(spec, options)
        self._suite_items = {
            name: [document_item(row.id, row.document, row.question) for row in rows]
            for name, rows in self._suite.rows().items()
        }

    def columns(self) -> list[Column]:
        """Columns of the run's matrix, in order."""
        found = [item.column for item in self.task_columns]
        for entry in self._suite.entries:
            rows = len(self._suite_items[entry.name])
            found.append(Column(entry.name, "retention", entry.chance, rows, entry.metric))
        return found

    def items(self) -> dict[str, list[Item]]:
        """The evaluated items by column."""
        own = {item.column.name: [Item.of(example) for example in item.examples] for item in self.task_columns}
        return own | self._suite_items

    def evaluate(
        self,
        model: ChatModel,
        progress: Progress,
        fingerprint: tuple[str, str] | None = None,
        batches: BatchLedger | None = None,
    ) -> dict[str, TaskResult]:
        """Results by column.

        Args:
            model: The model; evaluation leaves no trace in it.
            progress: Advanced once a column.
            fingerprint: Hashes of the weights and of the tokenizer where cells may come from, and go to, the cache.
            batches: Where finished batches are kept for a process that takes over, or None; needs ``fingerprint``.
        """
        keys = self._keys(fingerprint, model) if fingerprint else {}
        results: dict[str, TaskResult] = {}
        for name, key in keys.items():
            stored = self._cache.get_json(_KIND, key)
            if stored is not None:
                results[name] = TaskResult(**stored)
        sampler = sampler_for(model, self._spec.precision, batches, content_hash(fingerprint) if fingerprint else None)
        progress.advance(len(self.task_columns) - len(missing := self._missing(results)))
        for settings, items in decoded_together(missing, self._spec):
            results |= self._decoded(model, sampler, settings, items)
            for item in items:
                self._keep(item.column.name, results, keys)
            progress.advance(len(items))
        # One call serves all benchmarks, because their requests share batches.
        if any(entry.name not in results for entry in self._suite.entries):
            results |= self._suite.run(model, sampler, self._sampling)
            for entry in self._suite.entries:
                self._keep(entry.name, results, keys)
        progress.advance(len(self._suite.entries))
        return {column.name: results[column.name] for column in self.columns()}

    def _decoded(
        self, model: ChatModel, sampler: Sampler, settings: GenerationSettings, items: Sequence[TaskColumn]
    ) -> dict[str, TaskResult]:
        evaluation = self._spec.evaluation
        rows = [TaskRows(item.column.name, item.task, item.examples, evaluation.shots) for item in items]
        # While settings are chosen nobody looks at baselines.
        wanted = evaluation.options_only and evaluation.split == "test"
        shared: dict[str, Any] = {"system_prompt": evaluation.system_prompt, "prompt_cache": self._prompts}
        found = evaluate_together(model, rows, sampler, settings, sampling=self._sampling, **shared)
        hidden = [TaskRows(item.column.name, item.task, item.hidden) for item in items if wanted and item.hidden]
        for name, result in evaluate_together(model, hidden, sampler, settings, **shared).items():
            found[name].counts["options_only"] = result.counts["correct"]
            found[name].seconds += result.seconds
            found[name].tokens += result.tokens
            found[name].computed_tokens += result.computed_tokens
        return found

    def _missing(self, results: Mapping[str, TaskResult]) -> list[TaskColumn]:
        return [item for item in self.task_columns if item.column.name not in results]

    def _keep(self, name: str, results: Mapping[str, TaskResult], keys: Mapping[str, EvaluationKey]) -> None:
        if name in keys and results[name].value is not None:
            self._cache.put_json(_KIND, keys[name], dataclasses.asdict(results[name]))

    def _keys(self, fingerprint: tuple[str, str], model: ChatModel) -> dict[str, EvaluationKey]:
        def key(task: str, version: str, rows: str, shots: int, generation: Mapping[str, Any]) -> EvaluationKey:
            return EvaluationKey(
                weights=fingerprint[0],
                tokenizer=fingerprint[1],
                task=task,
                task_version=version,
                rows_hash=rows,
                template=content_hash([str(model.tokenizer.chat_template), model.thinking]),
                system_prompt=self._spec.evaluation.system_prompt,
                shots=shots,
                generation=generation,
                dtype=self._spec.precision.generation,
                backend=BACKEND,
                backend_version=backend_version(str(model.model.device)),
                batch_plan={"batch_size": self._spec.evaluation_batch_size},
            )

        evaluation = self._spec.evaluation
        further = {
            "samples": evaluation.samples,
            "sampling_temperature": evaluation.temperature if evaluation.samples else None,
            "options_only": evaluation.options_only,
        }
        keys = {}
        for item in self.task_columns:
            settings = dataclasses.asdict(evaluation_settings(item.task, self._spec.evaluation_batch_size)) | further
            version, rows = content_hash(item.task.identity()), rows_hash(item.examples)
            keys[item.column.name] = key(item.column.name, version, rows, evaluation.shots, settings)
        suite = self._spec.suite.tasks if self._spec.suite else ()
        for entry, resolved in zip(self._suite.entries, suite, strict=True):
            chosen = {"rows": self._spec.evaluation.suite_rows, "split": self._spec.evaluation.split}
            keys[entry.name] = key(
                f"suite/{entry.name}",
                content_hash(resolved),
                content_hash(chosen),
                entry.shots,
                {"greedy": True} | further,
            )
        return keys


def decoded_together(columns: Sequence[TaskColumn], spec: RunSpec) -> list[tuple[GenerationSettings, list[TaskColumn]]]:
    """Columns that share decoding batches, with their greedy settings.

    In fp32 a row's tokens do not depend on its neighbours, so columns of like settings share batches; in other formats
    they do, and each column is decoded alone, so that a cell does not depend on which others came from the cache.
    """
    groups: dict[tuple[GenerationSettings, str], list[TaskColumn]] = {}
    for item in columns:
        settings = evaluation_settings(item.task, spec.evaluation_batch_size)
        alone = "" if spec.precision.generation == "fp32" else item.column.name
        groups.setdefault((settings, alone), []).append(item)
    return [(settings, items) for (settings, _), items in groups.items()]


def all_have_options(examples: Sequence[Example]) -> bool:
    """Whether a column is multiple choice throughout, so that answers without the question are worth measuring."""
    return bool(examples) and all(example.choices for example in examples)


def suite_runner(spec: RunSpec, options: DataOptions) -> SuiteRunner:
    """The retention suite of a run on its fixed rows; one without benchmarks where the run has none."""
    return SuiteRunner(
        spec.suite.tasks if spec.suite else (),
        options,
        rows=spec.evaluation.suite_rows,
        split=spec.evaluation.split,
        batch_size=spec.evaluation_batch_size,
        system_prompt=spec.evaluation.system_prompt,
    )


def cell_of(result: TaskResult) -> Cell:
    """A result as a cell of the matrix; a score that is no finite number is none, with the reason."""
    if result.value is not None and not math.isfinite(result.value):
        return Cell(None, f"the score is {result.value}, no finite number", result.counts)
    return Cell(result.value, result.reason or "", result.counts)


def task_columns(spec: RunSpec, tasks: Mapping[str, Task]) -> Iterator[TaskColumn]:
    """Columns of a run that come from its tasks, each with its fixed rows: the sequence's, then those out of it."""
    evaluation = spec.evaluation
    for name in (task.name for task in spec.tasks):
        task = tasks[name]
        examples = fixed_rows(task.split(evaluation.split), evaluation.rows)
        yield _column(name, "sequence", task, examples, evaluation.shots)
    if evaluation.split != "test" or evaluation.ood_rows == 0:
        return
    for name in (task.name for task in spec.tasks):
        ood = fixed_rows(tasks[name].ood(), evaluation.ood_rows)
        if ood:
            yield _column(f"{name}/ood", "ood", tasks[name], ood, evaluation.shots)


def _column(name: str, kind: Any, task: Task, examples: Sequence[Example], shots: int) -> TaskColumn:
    found = baselines(task.train(), examples) if all_have_options(examples) else {}
    guesses = {key: value for key, value in found.items() if value is not None}
    column = Column(name, kind, task.chance, len(examples), task.primary_metric, guesses)
    return TaskColumn(column, task, tuple(with_worked_examples(examples, worked_examples(task, shots))))
