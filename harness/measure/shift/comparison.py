"""One forward pass of every model over the answers that several of them gave: divergences, agreement, embeddings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

import torch
from torch import Tensor

from cl_bench.harness.measure.evaluation import no_trace
from cl_bench.harness.measure.shift.divergence import TokenStatistics, hidden_states, piece_size, token_kl
from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.harness.models.vocabulary import shared_vocabulary_size
from cl_bench.methods.training.forward import head_of

Pair = tuple[str, str]
"""Names of two models; divergences are averaged under the first."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer that models read.

    Attributes:
        prompt: Prompt ids.
        completion: Completion ids; an answer without any is left out.
        pairs: Which models are compared on it.
    """

    prompt: tuple[int, ...]
    completion: tuple[int, ...]
    pairs: tuple[Pair, ...]


@dataclass(slots=True)
class Comparison:
    """What was read; rows are the answers in their order.

    Attributes:
        kl: KL(first || second) at each token, by pair.
        agreement: 1 where both models' likeliest token is the same, by pair.
        embeddings: Mean of the embedder's last hidden states, those that predict the completion's tokens, [D]; None
            for an answer without tokens.
    """

    kl: dict[Pair, TokenStatistics] = field(default_factory=dict)
    agreement: dict[Pair, TokenStatistics] = field(default_factory=dict)
    embeddings: list[Tensor | None] = field(default_factory=list)


def compare(
    models: Mapping[str, ChatModel], answers: Sequence[Answer], embedder: str, batch_size: int = 48
) -> Comparison:
    """Let every model read the answers that concern it, once.

    Answers to the same prompt share a batch, so that their prompt is computed once. Logits exist for a few hundred
    positions at a time. Leaves no trace in the models.

    Args:
        models: The models by name; one tokenizer, tables may be padded to other sizes.
        answers: The answers.
        embedder: The model that embeds every answer.
        batch_size: Answers in one forward pass, about.
    """
    found = Comparison(embeddings=[None] * len(answers))
    for pair in dict.fromkeys(pair for answer in answers for pair in answer.pairs):
        found.kl[pair] = TokenStatistics.of(len(answers))
        found.agreement[pair] = TokenStatistics.of(len(answers))
    with ExitStack() as stack, torch.no_grad():
        for model in models.values():
            stack.enter_context(no_trace(model))
        for places in _batches(answers, batch_size):
            _read(models, answers, places, embedder, found)
    return found


def _read(
    models: Mapping[str, ChatModel], answers: Sequence[Answer], places: Sequence[int], embedder: str, found: Comparison
) -> None:
    states: dict[str, dict[int, Tensor]] = {}
    for name, model in models.items():
        own = [
            place
            for place in places
            if name == embedder or any(name in pair for pair in answers[place].pairs)
        ]  # fmt: skip
        if own:
            hidden = hidden_states(model, [(answers[place].prompt, answers[place].completion) for place in own])
            parts = hidden.split([len(answers[place].completion) for place in own])
            states[name] = dict(zip(own, parts, strict=True))
    for place, hidden in states[embedder].items():
        found.embeddings[place] = hidden.mean(0).cpu().double()
    for pair in found.kl:
        own = [place for place in places if pair in answers[place].pairs]
        if own:
            one, two = (torch.cat([states[name][place] for place in own]) for name in pair)
            kl, same = _divergence(models[pair[0]], models[pair[1]], one, two)
            lengths = [len(answers[place].completion) for place in own]
            found.kl[pair].put(own, kl, lengths)
            found.agreement[pair].put(own, same, lengths)


def _divergence(first: ChatModel, second: ChatModel, one: Tensor, two: Tensor) -> tuple[Tensor, Tensor]:
    """KL(first || second) and agreement [N] from both models' hidden states [N, D], a few positions at a time."""
    heads, size = (head_of(first.model), head_of(second.model)), piece_size(first)
    kls, agreements = [], []
    for left, right in zip(one.split(size), two.split(size), strict=True):
        logits = heads[0](left), heads[1](right)
        shared = shared_vocabulary_size(logits[0].shape[-1], logits[1].shape[-1])
        kls.append(token_kl(*logits))
        agreements.append(logits[0][:, :shared].argmax(-1) == logits[1][:, :shared].argmax(-1))
    return torch.cat(kls), torch.cat(agreements)


def _batches(answers: Sequence[Answer], size: int) -> Iterator[list[int]]:
    """Places in batches, never two for one prompt; prompts of like length together."""
    by_prompt: dict[tuple[int, ...], list[int]] = {}
    for place, answer in enumerate(answers):
        if answer.prompt and answer.completion:
            by_prompt.setdefault(answer.prompt, []).append(place)
    batch: list[int] = []
    for prompt in sorted(by_prompt, key=lambda ids: (len(ids), ids)):
        if batch and len(batch) + len(by_prompt[prompt]) > size:
            yield batch
            batch = []
        batch += by_prompt[prompt]
    if batch:
        yield batch
