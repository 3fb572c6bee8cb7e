"""Data generation by the aligner: it answers, demonstration in view or not, and the task's scorer judges."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from cl_bench.harness.cache import RewriteKey, rows_hash
from cl_bench.harness.generation.base import Completion, GenerationSettings, Prompt, Sampler
from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.methods.base import Context, Stage
from cl_bench.methods.training.conditioning import conditioned_messages
from cl_bench.tasks.base import Example, Message

_PLAIN = "{question}"
"""Stands for the plain prompt in cache keys."""
_CHUNK_ROWS = 1024
"""Rows generated between two entries in the cache: what an interrupted generation can lose."""


@dataclass(frozen=True, slots=True)
class RewriteSettings:
    """How candidates are drawn and when one is accepted.

    Attributes:
        template: The aligner's user turn, with ``{question}`` and ``{demonstration}``; None: the plain prompt.
        candidates: Candidates per row at most; sampling stops at the first accepted one.
        generation: Length and temperature.
        leak_phrases: Lower-case phrases that betray the demonstration; a candidate holding one is rejected.
        reject_wrong: Whether an answer that the scorer finds wrong is rejected.
    """

    template: str | None
    candidates: int
    generation: GenerationSettings
    leak_phrases: tuple[str, ...] = ()
    reject_wrong: bool = True


def generate_rewrites(stage: Stage, context: Context, settings: RewriteSettings) -> list[dict[str, Any]]:
    """One ledger row per training example.

    Each row holds ``id``, ``text`` (the accepted rewrite or None), ``candidate`` (its number from 1, or None),
    ``reasons`` (why each earlier candidate was rejected), ``first_accepted`` (the first sample passed the scorer and
    all filters), ``first_correct`` (it passed the scorer: the data-generation accuracy R of SynthSelf's equation 3),
    ``similarity`` (edit similarity of the accepted text to the demonstration), ``prompt_tokens`` and
    ``generated_tokens`` (all candidates). Rows are cached by the content of what they come from.
    """
    shown = settings.template is not None
    usable = [example for example in stage.examples if example.demonstration or not shown]
    context.progress.phase(f"rewrite {stage.name}", len(stage.examples))
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    worker: _Rewriter | None = None
    for start in range(0, len(usable), _CHUNK_ROWS):
        chunk = usable[start : start + _CHUNK_ROWS]
        key = _key(stage, context, settings, chunk)
        found = context.cache.get_jsonl("rewrites", key)
        if found is None:
            # The aligner is loaded for the first chunk that is not in the cache, and only then.
            worker = worker or _Rewriter(stage, context, settings)
            found = worker.rewrite(chunk)
            context.cache.put_jsonl("rewrites", key, found)
        rows |= {example.key: row for example, row in zip(chunk, found, strict=True)}
        context.progress.advance(len(chunk))
    return [rows.get(example.key, _empty(example, "no_demonstration")) for example in stage.examples]


def _key(stage: Stage, context: Context, settings: RewriteSettings, chunk: Sequence[Example]) -> RewriteKey:
    return RewriteKey(
        aligner=context.aligner_fingerprint(),
        template=settings.template or _PLAIN,
        rows_hash=rows_hash(chunk),
        scorer=context.scorer_identity(),
        acceptance={
            "candidates": settings.candidates,
            "leak_phrases": list(settings.leak_phrases),
            "reject_wrong": settings.reject_wrong,
        },
        generation=dataclasses.asdict(settings.generation),
        dtype=context.precision.generation,
        backend=context.backend,
        backend_version=context.backend_version,
        batch_plan={"batch_size": settings.generation.batch_size, "chunk": _CHUNK_ROWS},
        seed=context.seed,
        stage=stage.name,
    )


class _Rewriter:
    """Draws and filters candidates with the aligner."""

    def __init__(self, stage: Stage, context: Context, settings: RewriteSettings) -> None:
        self._stage, self._context, self._settings = stage, context, settings
        self._aligner: ChatModel = context.aligner()
        self._sampler: Sampler = context.sampler(self._aligner, fixed=True)

    def rewrite(self, examples: Sequence[Example]) -> list[dict[str, Any]]:
        rows = {example.key: _empty(example) for example in examples}
        prompts: dict[tuple[str, str], tuple[int, ...]] = {}
        for example in examples:
            ids = self._aligner.prompt_ids(self._messages(example))
            if self._sampler.fits(len(ids), self._settings.generation):
                prompts[example.key] = ids
            else:
                rows[example.key]["reasons"].append("aligner_prompt_too_long")
        # An example that stands in the stage more than once is rewritten once.
        pending = list({example.key: example for example in examples if example.key in prompts}.values())
        for candidate in range(1, self._settings.candidates + 1):
            for example, completion in self._sample(pending, prompts, candidate):
                self._judge(rows[example.key], example, completion, candidate, len(prompts[example.key]))
            pending = [example for example in pending if rows[example.key]["text"] is None]
        return [rows[example.key] for example in examples]

    def _messages(self, example: Example) -> Sequence[Message]:
        if self._settings.template is None:
            return example.messages
        return conditioned_messages(example, self._settings.template, example.demonstration or "")

    def _sample(
        self, pending: Sequence[Example], prompts: dict[tuple[str, str], tuple[int, ...]], candidate: int
    ) -> Iterable[tuple[Example, Completion]]:
        batch = [Prompt(prompts[e.key], self._context.row_seed("rewrite", e.id, rollout=candidate)) for e in pending]
        return zip(pending, self._sampler.generate(batch, self._settings.generation), strict=True)

    def _judge(
        self, row: dict[str, Any], example: Example, completion: Completion, candidate: int, prompt_tokens: int
    ) -> None:
        row["prompt_tokens"] += prompt_tokens
        row["generated_tokens"] += len(completion.ids)
        correct = self._stage.score(example, completion.text).correct
        reason = self._rejection(completion, correct)
        if candidate == 1:
            row["first_correct"], row["first_accepted"] = correct, reason is None
        if reason is not None:
            row["reasons"].append(reason)
            return
        row["text"], row["candidate"] = completion.text, candidate
        if example.demonstration:
            row["similarity"] = edit_similarity(completion.text, example.demonstration)

    def _rejection(self, completion: Completion, correct: bool) -> str | None:
        if not completion.text:
            return "empty"
        if completion.ended == "length":
            return "truncated"
        text = completion.text.lower()
        if any(phrase in text for phrase in self._settings.leak_phrases):
            return "leak_phrase"
        return None if correct or not self._settings.reject_wrong else "wrong"


def edit_similarity(text: str, reference: str) -> float:
    """Similarity of two texts by words, in [0, 1]: twice the matching words over all words (``difflib``)."""
    return SequenceMatcher(None, text.split(), reference.split(), autojunk=False).ratio()


def _empty(example: Example, *reasons: str) -> dict[str, Any]:
    return {
        "id": example.id,
        "text": None,
        "candidate": None,
        "reasons": list(reasons),
        "first_correct": False,
        "first_accepted": False,
        "similarity": None,
        "prompt_tokens": 0,
        "generated_tokens": 0,
    }
