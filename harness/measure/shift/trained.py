"""Likelihood of the exact tokens that a stage trained on, under the models that it started from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cl_bench.harness.measure.shift.contexts import TRAINING, PromptSet
from cl_bench.harness.measure.shift.divergence import TokenRow, TokenStatistics, row_nll
from cl_bench.harness.measure.shift.records import BASE, Against, Record
from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.methods.training.trained import TrainedRow

NOT_COMPARABLE = (
    "not comparable with data that others wrote: the rows are the student's own rollouts, drawn while it was trained"
)
_NOTHING = "the method keeps no rows of what it trained on"
_REDUCTIONS = {"token_mean": "token mean", "sequence_mean": "sequence mean"}


@dataclass(frozen=True, slots=True)
class Reader:
    """A model before the stage, with its own answers.

    Attributes:
        against: Which model it is.
        model: The model.
        own: Its answers at temperature 1, by prompt ids.
    """

    against: Against
    model: ChatModel
    own: Mapping[tuple[int, ...], tuple[int, ...]]


def own_answers(asked: PromptSet, answers: Sequence[tuple[int, ...]]) -> dict[tuple[int, ...], tuple[int, ...]]:
    """Answers by prompt ids."""
    return {prompt.ids: answer for prompt, answer in zip(asked.prompts, answers, strict=True) if answer}


def training_records(trained: Sequence[TrainedRow], readers: Sequence[Reader], most: int) -> list[Record]:
    """Negative log-likelihood of a sample of the trained-on rows, and what of it is beyond each model's own answers.

    Not a divergence: even a model's own answers have one. The excess is the difference to these, over the rows whose
    prompt the model answered.

    Args:
        trained: What the stage trained on, in the order of the sample.
        readers: The untouched model and the model at the start of the stage.
        most: Rows looked at.
    """
    rows = [row for row in trained if row.prompt_ids and row.completion_ids][:most]
    read: dict[int, TokenStatistics] = {}
    found = []
    for reader in readers:
        if id(reader.model) not in read:  # in the first stage both are the untouched model
            read[id(reader.model)] = row_nll(reader.model, _pairs(rows, reader))
        found += _records(rows, reader, read[id(reader.model)])
    return found


def _answered(rows: Sequence[TrainedRow], reader: Reader) -> list[int]:
    return [place for place, row in enumerate(rows) if row.prompt_ids in reader.own]


def _pairs(rows: Sequence[TrainedRow], reader: Reader) -> list[TokenRow]:
    """What was trained on, then the model's own answers to as many of the same prompts as it has."""
    trained: list[TokenRow] = [(row.prompt_ids, row.completion_ids) for row in rows]
    own = [(rows[place].prompt_ids, reader.own[rows[place].prompt_ids]) for place in _answered(rows, reader)]
    return [*trained, *own]


def _records(rows: Sequence[TrainedRow], reader: Reader, read: TokenStatistics) -> list[Record]:
    trained = read.of_rows(range(len(rows)))
    answered = _answered(rows, reader)
    matched, own = trained.of_rows(answered), read.of_rows(range(len(rows), len(rows) + len(answered)))
    remark = NOT_COMPARABLE if any(row.on_policy for row in rows) else ""
    found = []
    for reduction in _REDUCTIONS:
        found.append(_nll(reader.against, reduction, trained, remark))
        found.append(_excess(reader.against, reduction, matched, own, bool(rows), remark))
    return found


def _nll(against: Against, reduction: str, trained: TokenStatistics, remark: str) -> Record:
    summary = trained.summary()
    value = summary[reduction]
    return Record(
        measure="training_nll",
        against=against,
        prompts=TRAINING,
        contexts="completions that the stage trained on",
        reduction=_REDUCTIONS[reduction],
        unit="nats per token",
        n=_count(summary, reduction),
        value=value,
        reason=remark if value is not None else _NOTHING,
    )


def _excess(
    against: Against,
    reduction: str,
    matched: TokenStatistics,
    own: TokenStatistics,
    has_rows: bool,
    remark: str,
) -> Record:
    theirs, ours = matched.summary(), own.summary()
    one, other = theirs[reduction], ours[reduction]
    missing = "no trained-on row has a prompt that the model was asked" if has_rows else _NOTHING
    value = None if one is None or other is None else one - other
    whose = "the untouched model's" if against == BASE else "the task-start model's"
    count = _count(ours, reduction)
    how_many = f"{count} {'tokens' if reduction == 'token_mean' else 'rows'} of "
    return Record(
        measure="training_nll_excess",
        against=against,
        prompts=TRAINING,
        contexts=f"completions that the stage trained on, minus {how_many}{whose} own answers at temperature 1 to "
        "their prompts",
        reduction=_REDUCTIONS[reduction],
        unit="nats per token",
        n=_count(theirs, reduction),
        value=value,
        reason=remark if value is not None else missing,
        by={} if value is None else {"trained on": one, "own answers": other},
    )


def _count(summary: Mapping[str, float | int | None], reduction: str) -> int:
    return int(summary["tokens" if reduction == "token_mean" else "sequences"] or 0)
