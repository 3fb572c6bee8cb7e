"""Data generation by the student itself: it samples, the task's scorer keeps what is right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cl_bench.harness.generation.base import Completion, GenerationSettings, Prompt
from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.methods.base import Context, Stage
from cl_bench.methods.training.conditioning import conditioned_messages
from cl_bench.tasks.base import Example, Message


@dataclass(frozen=True, slots=True)
class SelfTrainingSettings:
    """How samples are drawn and kept.

    Attributes:
        samples: Samples of each prompt.
        keep: Distinct right samples of a prompt that are kept at most, the first drawn first.
        generation: Length and temperature.
        hint_template: Text with ``{question}`` and ``{demonstration}``, which the gold answer is put in for: asked
            where no sample of the plain prompt was right (STaR, 2203.14465). None asks nothing more.
    """

    samples: int
    keep: int
    generation: GenerationSettings
    hint_template: str | None = None


def generate_own(
    stage: Stage, context: Context, writer: ChatModel, settings: SelfTrainingSettings
) -> list[dict[str, Any]]:
    """One ledger row per training example.

    Each holds ``id``, ``texts`` (kept), ``right`` (right samples of the plain prompt), ``sampled`` (their number),
    ``hinted`` (whether the texts come from the hint), ``reasons`` (why samples were rejected), ``prompt_tokens`` and
    ``generated_tokens``.
    """
    context.progress.phase(f"sample {stage.name}", len(stage.examples))
    rows = {example.key: _empty(example) for example in stage.examples}
    distinct = list({example.key: example for example in stage.examples}.values())
    _ask(distinct, [example.messages for example in distinct], rows, "sample", stage, context, writer, settings)
    if settings.hint_template is not None:
        template = settings.hint_template
        failed = [example for example in distinct if not rows[example.key]["texts"] and example.answer]
        asked = [conditioned_messages(example, template, example.answer or "") for example in failed]
        _ask(failed, asked, rows, "hint", stage, context, writer, settings)
    context.progress.advance(len(stage.examples))
    return [rows[example.key] for example in stage.examples]


def _ask(
    examples: Sequence[Example],
    messages: Sequence[Sequence[Message]],
    rows: dict[tuple[str, str], dict[str, Any]],
    purpose: str,
    stage: Stage,
    context: Context,
    writer: ChatModel,
    settings: SelfTrainingSettings,
) -> None:
    sampler = context.sampler(writer, fixed=True)
    asked: list[tuple[Example, Prompt]] = []
    for example, chat in zip(examples, messages, strict=True):
        ids = writer.prompt_ids(chat)
        if not sampler.fits(len(ids), settings.generation):
            rows[example.key]["reasons"].append("prompt_too_long")
            continue
        seeds = (context.row_seed(purpose, example.id, rollout=number) for number in range(1, settings.samples + 1))
        asked += [(example, Prompt(ids, seed)) for seed in seeds]
    completions = sampler.generate([prompt for _, prompt in asked], settings.generation) if asked else []
    for (example, prompt), completion in zip(asked, completions, strict=True):
        _judge(rows[example.key], example, prompt, completion, purpose, stage, settings)


def _judge(
    row: dict[str, Any],
    example: Example,
    prompt: Prompt,
    completion: Completion,
    purpose: str,
    stage: Stage,
    settings: SelfTrainingSettings,
) -> None:
    row["prompt_tokens"] += len(prompt.ids)
    row["generated_tokens"] += len(completion.ids)
    right = stage.score(example, completion.text).correct
    if purpose == "sample":
        row["sampled"] += 1
        row["right"] += right
    if completion.ended == "length":
        row["reasons"].append("truncated")
    elif not right:
        row["reasons"].append("wrong")
    elif completion.text in row["texts"]:
        row["reasons"].append("duplicate")
    elif len(row["texts"]) < settings.keep:
        row["texts"].append(completion.text)
        row["hinted"] = purpose == "hint"


def _empty(example: Example) -> dict[str, Any]:
    return {
        "id": example.id,
        "texts": [],
        "right": 0,
        "sampled": 0,
        "hinted": False,
        "reasons": [],
        "prompt_tokens": 0,
        "generated_tokens": 0,
    }
