"""Evaluation of a model on a task: greedy answers on fixed rows, scored by the task's own scorer."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

from cl_bench.harness.errors import UsageError
from cl_bench.harness.generation.base import Completion, GenerationSettings, Prompt, Sampler
from cl_bench.harness.measure.sampled import Sampling, sampled_answers
from cl_bench.harness.measure.statistics.intervals import wilson
from cl_bench.harness.measure.task_result import TaskResult, answer_row, counts_of
from cl_bench.harness.seeds import preserved_rng
from cl_bench.tasks.base import Example, Message, Task

if TYPE_CHECKING:
    from cl_bench.harness.models.chat_model import ChatModel

PromptCache = MutableMapping[tuple[str, str], tuple[int, ...]]
"""Rendered prompts by (task, example id); valid for one tokenizer and one system prompt."""


def fixed_rows(examples: Sequence[Example], rows: int | None) -> list[Example]:
    """The same ``rows`` examples for every model and every seed, in the task's order; all of them where None."""
    chosen = set(fixed_indices([example.id for example in examples], rows))
    return [example for index, example in enumerate(examples) if index in chosen]


def fixed_indices(ids: Sequence[str], rows: int | None, *, last: bool = False) -> list[int]:
    """Indices of a fixed pseudo-random choice of rows, ascending.

    Args:
        ids: Row ids; the choice depends on nothing else.
        rows: How many to choose; None chooses all.
        last: Choose from the other end of the permutation.
    """
    order = sorted(range(len(ids)), key=lambda index: hashlib.sha256(f"evaluation:{ids[index]}".encode()).digest())
    if last:
        order.reverse()
    return sorted(order if rows is None else order[:rows])


def evaluation_settings(task: Task, batch_size: int) -> GenerationSettings:
    """Greedy generation with the task's own length limit and stop strings."""
    return GenerationSettings(max_new_tokens=task.max_new_tokens, batch_size=batch_size, stop=task.stop)


def with_system_prompt(messages: Sequence[Message], system_prompt: str | None) -> tuple[Message, ...]:
    """The chat with the given system turn first; a system turn of its own is replaced. None changes nothing."""
    if system_prompt is None:
        return tuple(messages)
    rest = [message for message in messages if message["role"] != "system"]
    return ({"role": "system", "content": system_prompt}, *rest)


def with_worked_examples(examples: Sequence[Example], worked: Sequence[Example]) -> list[Example]:
    """The rows with worked examples as turns between the system turn and the question."""
    turns = [
        message
        for example in worked
        for message in (example.messages[-1], {"role": "assistant", "content": str(example.demonstration)})
    ]
    return [_after_system_turn(example, turns) for example in examples]


def _after_system_turn(example: Example, turns: Sequence[Message]) -> Example:
    first = [message for message in example.messages[:1] if message["role"] == "system"]
    return replace(example, messages=(*first, *turns, *example.messages[len(first) :]))


def worked_examples(task: Task, shots: int) -> list[Example]:
    """Training rows with demonstrations, the same for every model and seed.

    Raises:
        UsageError: The task has fewer than ``shots``.
    """
    rows = [example for example in task.train() if example.demonstration is not None] if shots else []
    if len(rows) < shots:
        raise UsageError(
            f"evaluation.shots is {shots}, but task {task.name} has {len(rows)} training rows with a demonstration",
            hint=f"at most evaluation.shots={len(rows)}",
        )
    return fixed_rows(rows, shots)


@dataclass(frozen=True, slots=True)
class TaskRows:
    """A task with the rows of it to evaluate, under the name its result gets.

    Attributes:
        name: Name of the result.
        task: The task, whose scorer decides what is correct.
        examples: The rows, with their worked examples.
        shots: Worked examples before each question.
    """

    name: str
    task: Task
    examples: Sequence[Example]
    shots: int = 0


def evaluate_together(
    model: ChatModel,
    items: Sequence[TaskRows],
    sampler: Sampler,
    settings: GenerationSettings,
    *,
    system_prompt: str | None = None,
    prompt_cache: PromptCache | None = None,
    sampling: Sampling | None = None,
) -> dict[str, TaskResult]:
    """Evaluate a model on several tasks whose answers are decoded in the same batches.

    Leaves no trace in the model, the tokenizer or any random state. Rows whose prompt leaves no room for an answer are
    counted as ``skipped`` and not scored; where no row is left, the value is None with a reason.

    Args:
        model: The model.
        items: Tasks and rows (see ``fixed_rows``); a task's scorer decides what is correct.
        sampler: A sampler built around the model.
        settings: How to generate, the same for all; temperature 0 for a benchmark (see ``evaluation_settings``).
        system_prompt: System turn of the run, or None.
        prompt_cache: Filled with and read for rendered prompts, for repeated calls with the same tokenizer.
        sampling: Draw several answers an item beside the greedy one, or None.

    Returns:
        Results by name. ``seconds`` is the item's share, by rows, of the time for all.
    """
    began = perf_counter()
    cache: PromptCache = {} if prompt_cache is None else prompt_cache
    with no_trace(model):
        prompts = [[_prompt_ids(model, example, system_prompt, cache) for example in item.examples] for item in items]
        fitting = [
            (place, index)
            for place, rows in enumerate(prompts)
            for index, ids in enumerate(rows)
            if sampler.fits(len(ids), settings)
        ]
        asked = [Prompt(prompts[place][index]) for place, index in fitting]
        completions = dict(zip(fitting, sampler.generate(asked, settings) if asked else [], strict=True))
        results = {}
        for place, item in enumerate(items):
            answers = [completions.get((place, index)) for index in range(len(item.examples))]
            result = results[item.name] = _result(item, prompts[place], answers, settings)
            if sampling is not None:
                drawn = _sampled(item, result.samples, prompts[place], sampler, settings, sampling)
                result.add_sampled(drawn, sampling, votes=not item.task.executes_code)
                result.computed_tokens += sum(
                    len(ids) + row["tokens"]
                    for ids, rows in zip(prompts[place], drawn, strict=True)
                    for row in rows or ()
                )
    seconds, total = perf_counter() - began, sum(len(item.examples) for item in items)
    for item in items:
        results[item.name].seconds = seconds * len(item.examples) / max(total, 1)
    return results


def _result(
    item: TaskRows,
    prompts: Sequence[Sequence[int]],
    answers: Sequence[Completion | None],
    settings: GenerationSettings,
) -> TaskResult:
    rows = zip(item.examples, prompts, answers, strict=True)
    samples = [_sample(item.task, example, prompt_hash(ids), answer) for example, ids, answer in rows]
    counts = counts_of(samples)
    values, interval = rates(counts), wilson(counts["correct"], counts["n"])
    return TaskResult(
        task=item.task.name,
        metric=item.task.primary_metric,
        value=values.get("accuracy"),
        reason=None if counts["n"] else _no_value(counts),
        chance=item.task.chance,
        counts=counts,
        values=values,
        intervals={"accuracy": interval} if interval is not None else {},
        samples=samples,
        version=item.task.version,
        tokens=sum(len(answer.ids) for answer in answers if answer is not None),
        computed_tokens=sum(
            len(ids) + len(answer.ids) for ids, answer in zip(prompts, answers, strict=True) if answer is not None
        ),
        settings={
            "max_new_tokens": settings.max_new_tokens,
            "temperature": settings.temperature,
            "shots": item.shots,
        },
    )


def _sampled(
    item: TaskRows,
    samples: Sequence[Mapping[str, Any]],
    prompts: Sequence[Sequence[int]],
    sampler: Sampler,
    settings: GenerationSettings,
    sampling: Sampling,
) -> list[list[dict[str, Any]] | None]:
    kept = [index for index, row in enumerate(samples) if row["ended"] != "skipped"]
    asked = [(item.examples[index].id, prompts[index]) for index in kept]
    found: list[list[dict[str, Any]] | None] = [None] * len(samples)
    for index, drawn in zip(kept, sampled_answers(item.name, asked, sampler, settings, sampling), strict=True):
        found[index] = [answer_row(answer, item.task.score(item.examples[index], answer.text)) for answer in drawn]
    return found


def prompt_hash(ids: Sequence[int]) -> str:
    """SHA-256 of a prompt's token ids, as hex."""
    return hashlib.sha256(",".join(map(str, ids)).encode()).hexdigest()


def rates(counts: dict[str, int]) -> dict[str, float]:
    """Fractions of the scored rows; empty where there are none."""
    n = counts["n"]
    names = {"accuracy": "correct", "acc_strict": "strict", "parsed_rate": "parsed", "truncated_rate": "truncated"}
    return {name: counts[count] / n for name, count in names.items()} if n else {}


def _no_value(counts: dict[str, int]) -> str:
    if counts["skipped"]:
        return f"all {counts['skipped']} rows are too long for the model's context"
    return "no rows"


def _prompt_ids(model: ChatModel, example: Example, system_prompt: str | None, cache: PromptCache) -> tuple[int, ...]:
    if example.key not in cache:
        cache[example.key] = model.prompt_ids(with_system_prompt(example.messages, system_prompt))
    return cache[example.key]


def _sample(task: Task, example: Example, prompt: str, completion: Completion | None) -> dict[str, Any]:
    row: dict[str, Any] = {"task": task.name, "id": example.id, "prompt_hash": prompt}
    if example.choices:
        row["options"] = len(example.choices)
    if completion is None:
        empty = {"response": None, "correct": None, "parsed": None, "format_ok": None, "tokens": 0}
        return row | empty | {"ended": "skipped"}
    return row | answer_row(completion, task.score(example, completion.text))


_CONFIG_FLAGS = ("use_cache", "pad_token_id")
_TOKENIZER_FLAGS = ("padding_side", "truncation_side", "pad_token")


@contextmanager
def no_trace(model: ChatModel) -> Iterator[None]:
    """Evaluate inside: evaluation mode within; random states, modes, padding and cache flags restored after."""
    network, tokenizer = model.model, model.tokenizer
    modes = [(module, module.training) for module in network.modules()]
    holders = [holder for holder in (network.config, getattr(network, "generation_config", None)) if holder is not None]
    flags = [
        (holder, name, getattr(holder, name)) for holder in holders for name in _CONFIG_FLAGS if hasattr(holder, name)
    ]
    flags += [(tokenizer, name, getattr(tokenizer, name)) for name in _TOKENIZER_FLAGS]
    network.eval()
    try:
        with preserved_rng():
            yield
    finally:
        for module, training in modes:
            module.training = training
        for holder, name, value in flags:
            if getattr(holder, name) != value:
                setattr(holder, name, value)
