"""Divergence, agreement and embeddings of the answers that the untouched, previous and current model gave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from cl_bench.harness.measure.shift.answers import Completions
from cl_bench.harness.measure.shift.comparison import Answer, Comparison, Pair, compare
from cl_bench.harness.measure.shift.contexts import PromptSet
from cl_bench.harness.measure.shift.divergence import TokenStatistics
from cl_bench.harness.measure.shift.records import BASE, PREVIOUS, Against, Record
from cl_bench.harness.measure.shift.responses import unbiased_mmd2
from cl_bench.harness.models.chat_model import ChatModel

CURRENT = "current"
_WHO: Mapping[str, str] = {
    "base": "the untouched model's",
    "previous": "the previous row's model's",
    "current": "this stage's model's",
}
_REDUCTIONS = {"token_mean": ("token mean", "tokens"), "sequence_mean": ("sequence mean", "sequences")}


@dataclass(frozen=True, slots=True)
class Stance:
    """Which models there are, and what each answered.

    Attributes:
        models: ``base``, ``current`` and, after the first stage, ``previous``.
        answers: Each one's answers, by the sets' keys.
    """

    models: Mapping[str, ChatModel]
    answers: Mapping[str, Mapping[str, Completions]]

    def name_of(self, against: Against) -> str:
        """The model that stands for the previous row; the untouched one in the first stage."""
        return against if against in self.models else "base"


@dataclass(frozen=True, slots=True)
class _Asked:
    """Where an answer comes from: whose it is, its set, its prompt's place there and its column."""

    who: str
    key: str
    prompt: int
    column: str


def distribution_records(stance: Stance, sets: Sequence[PromptSet]) -> list[Record]:
    """Forward and reverse KL, top-1 agreement and MMD of each set, against the untouched model and the previous row.

    Forward: KL(earlier || current) on the earlier model's answers. Reverse: KL(current || earlier) on the current
    model's. Every model reads every answer that concerns it once.
    """
    asked, answers = [], []
    for who in stance.models:
        pairs = _pairs(who, stance)
        for found in sets:
            for place, (prompt, ids) in enumerate(zip(found.prompts, stance.answers[who][found.key], strict=True)):
                asked.append(_Asked(who, found.key, place, prompt.column))
                answers.append(Answer(prompt.ids, ids, pairs))
    read = compare(stance.models, answers, "base")
    return [
        record
        for found in sets
        for against in (BASE, PREVIOUS)
        for record in _records(found, against, stance.name_of(against), asked, read)
    ]


def _pairs(who: str, stance: Stance) -> tuple[Pair, ...]:
    if who == CURRENT:
        return tuple((CURRENT, other) for other in stance.models if other != CURRENT)
    return ((who, CURRENT),)


def _records(found: PromptSet, against: Against, other: str, asked: Sequence[_Asked], read: Comparison) -> list[Record]:
    theirs = [place for place, one in enumerate(asked) if (one.who, one.key) == (other, found.key)]
    ours = [place for place, one in enumerate(asked) if (one.who, one.key) == (CURRENT, found.key)]
    forward, reverse = (other, CURRENT), (CURRENT, other)
    records = []
    for measure, statistics, pair, places in (
        ("forward_kl", read.kl, forward, theirs),
        ("reverse_kl", read.kl, reverse, ours),
        ("top1_agreement", read.agreement, forward, theirs),
    ):
        for reduction in _REDUCTIONS if measure != "top1_agreement" else ("token_mean",):
            records.append(_token_record(measure, found, against, reduction, statistics.get(pair), places, asked))
    return [*records, _mmd_record(found, against, theirs, ours, asked, read)]


def _token_record(
    measure: str,
    found: PromptSet,
    against: Against,
    reduction: str,
    statistics: TokenStatistics | None,
    places: Sequence[int],
    asked: Sequence[_Asked],
) -> Record:
    read = statistics or TokenStatistics.of(len(asked))
    summary = read.of_rows(places).summary()
    columns = dict.fromkeys(asked[place].column for place in places)
    by = {name: [place for place in places if asked[place].column == name] for name in columns}
    name, counted = _REDUCTIONS[reduction]
    return Record(
        measure=measure,
        against=against,
        prompts=found.name,
        contexts=f"{_WHO[CURRENT if measure == 'reverse_kl' else against]} own answers at temperature 1",
        reduction=name,
        unit="fraction" if measure == "top1_agreement" else "nats per token",
        n=int(summary[counted] or 0),
        value=summary[reduction],
        reason="" if summary[reduction] is not None else found.reason or "no prompt leaves room for an answer",
        by={name: read.of_rows(own).summary()[reduction] for name, own in by.items()},
    )


def _mmd_record(
    found: PromptSet,
    against: Against,
    theirs: Sequence[int],
    ours: Sequence[int],
    asked: Sequence[_Asked],
    read: Comparison,
) -> Record:
    pairs = []
    for one, other in zip(theirs, ours, strict=True):
        before, after = read.embeddings[one], read.embeddings[other]
        if before is not None and after is not None:
            pairs.append((before, after))
    value = unbiased_mmd2(*(torch.stack(side) for side in zip(*pairs, strict=True))) if pairs else None
    return Record(
        measure="response_mmd2",
        against=against,
        prompts=found.name,
        contexts=f"{_WHO[against]} and {_WHO[CURRENT]} own answers at temperature 1, embedded by the untouched model",
        reduction="unbiased squared MMD over prompts, RBF kernel of median width",
        unit="1",
        n=len(pairs),
        value=value,
        reason="" if value is not None else found.reason or "fewer than two different answers of each",
    )
