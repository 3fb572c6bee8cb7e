"""A column that comes from a task, for recovery probes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from cl_bench.harness.context import sampler_for
from cl_bench.harness.errors import DataError
from cl_bench.harness.generation.base import Completion, GenerationSettings, Prompt
from cl_bench.harness.measure.evaluation import (
    evaluation_settings,
    fixed_rows,
    no_trace,
    prompt_hash,
    with_system_prompt,
)
from cl_bench.harness.measure.items.causes import Sample
from cl_bench.harness.measure.items.openings import Frame
from cl_bench.harness.measure.items.option_likelihood import likeliest
from cl_bench.harness.measure.items.probed import ProbedColumn
from cl_bench.methods.training.rows import TrainingRow
from cl_bench.tasks.base import Example
from cl_bench.tasks.baselines import choice_of
from cl_bench.tasks.scoring.options import LETTERS

if TYPE_CHECKING:
    from cl_bench.harness.measure.run_evaluation import TaskColumn
    from cl_bench.harness.models.chat_model import ChatModel
    from cl_bench.harness.spec import RunSpec

ASKED_PER_LESSON = 4
"""Dev rows that the untouched model answers for every row to learn from: it is not always right."""


class ProbedTask(ProbedColumn):
    """Test or out-of-distribution rows of a task."""

    def __init__(self, spec: RunSpec, column: TaskColumn, scored: Sequence[TaskColumn]) -> None:
        """Wrap a column.

        Args:
            spec: The run.
            column: The column.
            scored: All columns of the run that come from tasks: their items are never learned from.
        """
        self.name = column.column.name
        self._spec, self._task = spec, column.task
        self._examples = {example.id: example for example in column.examples}
        self._settings = evaluation_settings(column.task, spec.evaluation_batch_size)
        self._scored = {
            key for item in scored for example in item.examples for key in (example.key, as_asked(example.question))
        }

    def check(self, model: ChatModel, samples: Sequence[Sample]) -> None:
        """Ids and prompts, by the model's own template."""
        check_ids(self.name, samples, self._examples)
        for sample in samples:
            check_prompt(self.name, sample, prompt_hash(self._prompt(model, self._examples[str(sample["id"])])))

    def answers(self, model: ChatModel, ids: Sequence[str], opening: str = "") -> dict[str, bool]:
        """Greedy answers, scored by the task with the opening in front."""
        with no_trace(model):
            completions = self._completions(model, [self._examples[name] for name in ids], opening)
        return {name: self._task.score(self._examples[name], text).correct for name, (text, _) in completions.items()}

    def ranks_gold_first(self, model: ChatModel, ids: Sequence[str], frame: Frame) -> dict[str, bool]:
        """Options by letter where the prompt gives them letters, by their text elsewhere."""
        found = {}
        with no_trace(model):
            for name in ids:
                example = self._examples[name]
                choice = choice_of(example)
                if choice is None:
                    continue
                lettered = example.answer == LETTERS[choice.gold] != choice.options[choice.gold]
                words = LETTERS[: len(choice.options)] if lettered else choice.options
                candidates = [frame.lead + word + frame.tail for word in words]
                best = likeliest(model, self._prompt(model, example), candidates)
                if best is not None:
                    found[name] = best == choice.gold
        return found

    def right_by(self, text: str) -> set[str]:
        """Scored by the task."""
        return {name for name, example in self._examples.items() if self._task.score(example, text).correct}

    def lessons(self, base: ChatModel, most: int) -> list[TrainingRow]:
        """Right and finished answers to dev rows that share neither id nor question with a scored item."""
        free = [
            example
            for example in self._task.dev()
            if example.key not in self._scored and as_asked(example.question) not in self._scored
        ]
        asked = fixed_rows(free, ASKED_PER_LESSON * most)
        with no_trace(base):
            completions = self._completions(base, asked, "")
            rows = [
                TrainingRow(example.id, self._prompt(base, example), completions[example.id][1].ids)
                for example in asked
                if example.id in completions and self._is_lesson(example, *completions[example.id])
            ]
        return rows[:most]

    def _is_lesson(self, example: Example, text: str, completion: Completion) -> bool:
        return completion.ended == "eos" and self._task.score(example, text).correct

    def _prompt(self, model: ChatModel, example: Example) -> tuple[int, ...]:
        return model.prompt_ids(with_system_prompt(example.messages, self._spec.evaluation.system_prompt))

    def _completions(
        self, model: ChatModel, examples: Sequence[Example], opening: str
    ) -> dict[str, tuple[str, Completion]]:
        """Text, opening included, and completion by id; rows that do not fit are absent."""
        sampler = sampler_for(model, self._spec.precision)
        start = opening_ids(model, opening)
        prompts = {example.id: (*self._prompt(model, example), *start) for example in examples}
        fitting = [name for name, ids in prompts.items() if sampler.fits(len(ids), self._settings)]
        completions = sampler.generate([Prompt(prompts[name]) for name in fitting], self._settings) if fitting else []
        return {
            name: (whole_text(model, start, completion, self._settings), completion)
            for name, completion in zip(fitting, completions, strict=True)
        }


def probed_task(spec: RunSpec, columns: Sequence[TaskColumn], name: str) -> ProbedTask | None:
    """The column of that name for probing, or None where it comes from no task."""
    found = next((column for column in columns if column.column.name == name), None)
    return ProbedTask(spec, found, columns) if found is not None else None


def check_ids(column: str, samples: Sequence[Sample], known: Mapping[str, object]) -> None:
    """Raise ``DataError`` where a recorded row is none of the rows that are there now."""
    strange = next((sample["id"] for sample in samples if str(sample["id"]) not in known), None)
    if strange is not None:
        raise DataError(
            f"the rows of {column} are not those that the run evaluated (such as {strange!r})",
            hint="give the run's own data with --data-root, and --allow-code-execution where it had that",
        )


def check_prompt(column: str, sample: Sample, now: str) -> None:
    """Raise ``DataError`` where an item would be asked with another prompt than the recorded one."""
    if sample["prompt_hash"] != now:
        raise DataError(
            f"item {sample['id']!r} of {column} has another prompt than when the run evaluated it",
            hint="give the run's own data with --data-root; another version of lm-eval may ask otherwise, too",
        )


def opening_ids(model: ChatModel, opening: str) -> tuple[int, ...]:
    """Token ids of a forced opening."""
    return tuple(model.tokenizer(opening, add_special_tokens=False)["input_ids"]) if opening else ()


def whole_text(model: ChatModel, start: Sequence[int], completion: Completion, settings: GenerationSettings) -> str:
    """The answer with its opening, decoded together; cut where a stop string ended the completion."""
    if not start:
        return completion.text
    text = model.decode([*start, *completion.ids])
    if completion.ended == "stop":
        opening = len(model.decode(start))
        ends = [place for stop in settings.stop if (place := text.find(stop, opening)) >= 0]
        text = text[: min(ends)].strip() if ends else text
    return text


def as_asked(question: str) -> str:
    """A question as it is compared with others: case and spaces do not matter."""
    return " ".join(question.lower().split())
