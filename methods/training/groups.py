"""Groups: the samples that the student draws for a prompt in one optimizer step, and which of them are trained on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cl_bench.harness.generation.base import Completion, GenerationSettings, Prompt
from cl_bench.methods.training.mixin import Counters, TrainingSession
from cl_bench.tasks.base import Example, Message


@dataclass(frozen=True, slots=True)
class Group:
    """A prompt with the student's samples.

    Attributes:
        example: Whose prompt.
        prompt_ids: The student's prompt.
        completions: Its samples, in the order drawn.
    """

    example: Example
    prompt_ids: tuple[int, ...]
    completions: tuple[Completion, ...]


@dataclass(frozen=True, slots=True)
class TeacherSample:
    """A sample under the loss, with the prompt that the teacher scores it under."""

    example: Example
    prompt_ids: tuple[int, ...]
    completion: Completion
    teacher_ids: tuple[int, ...]


Prompts = Mapping[tuple[str, str], tuple[int, ...]]
"""Prompt ids by ``Example.key``."""
Choice = tuple[int, Sequence[Message]]
"""Index of a sample in its group, and the teacher's prompt for it."""
Choose = Callable[[Group, Counters], Sequence[Choice]]
"""Which samples of a group are trained on; the others have no teacher. May count what it leaves out, and why."""


def draw_groups(
    session: TrainingSession,
    examples: Sequence[Example],
    prompts: Prompts,
    generation: GenerationSettings,
    samples: int,
    *,
    step: int,
    visit: int,
    update: int,
    with_log_probs: bool = True,
) -> list[Group]:
    """Groups of a batch of rollouts: sampled at its first update, read from the ledger at a later one, after a resume.

    Each sample has its own generator, keyed by (run seed, stage, example, visit, number), so neither micro-batches nor
    a resume change it. Samples of a prompt share one prefill.

    Args:
        session: The student, its context and its counters.
        examples: The batch's rows, in the order in which they were drawn.
        prompts: Their prompts.
        generation: Length and temperature.
        samples: Samples of each prompt.
        step: What the ledger keeps the batch under.
        visit: Epoch, for the samples' seeds.
        update: Number of the optimizer step within the batch, from 0.
        with_log_probs: Keep log-probabilities too: needed where a batch has several updates.
    """
    context = session.context
    if update:
        found = iter([row for row in context.ledger if row["step"] == step])
        return [
            Group(example, prompts[example.key], tuple(_completion(next(found)) for _ in range(samples)))
            for example in examples
        ]
    asked = [
        Prompt(prompts[example.key], context.row_seed("rollout", example.id, visit, number))
        for example in examples
        for number in range(samples)
    ]
    drawn = context.sampler(session.student).generate(asked, generation)
    groups = []
    for place, example in enumerate(examples):
        own = tuple(drawn[place * samples : (place + 1) * samples])
        groups.append(Group(example, prompts[example.key], own))
        for completion in own:
            row: dict[str, Any] = {"step": step, "id": example.id, "text": completion.text, "ended": completion.ended}
            row |= {"tokens": list(completion.ids)}
            context.ledger.append(row | {"log_probs": list(completion.logprobs)} if with_log_probs else row)
    session.counters.generated_tokens += sum(len(completion.ids) for completion in drawn)
    session.counters.generation_prompt_tokens += sum(len(prompt.ids) for prompt in asked)
    return groups


def split_evenly(count: int, parts: int) -> list[slice]:
    """Slices of ``range(count)`` into that many runs whose lengths differ by one at most; some may be empty."""
    ends = [count * (part + 1) // parts for part in range(parts)]
    return [slice(start, end) for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def _completion(row: Mapping[str, Any]) -> Completion:
    return Completion(tuple(row["tokens"]), row["text"], row["ended"], tuple(row["log_probs"]))
