"""A sample of what a stage trained on, token by token, for measurements after it."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cl_bench.methods.training.mixin import TrainingSession
    from cl_bench.methods.training.rows import TrainingRow

MOST_TRAINED = 64
"""Rows kept of a stage at most, one of each example."""


@dataclass(frozen=True, slots=True)
class TrainedRow:
    """A row under the loss.

    Attributes:
        example_id: Whose prompt.
        prompt_ids: The student's prompt.
        completion_ids: What was trained on.
        on_policy: The completion was sampled from the student during the stage.
    """

    example_id: str
    prompt_ids: tuple[int, ...]
    completion_ids: tuple[int, ...]
    on_policy: bool = False


def trained_row(row: Mapping[str, Any]) -> TrainedRow:
    """A row from its JSON object."""
    return TrainedRow(
        row["example_id"], tuple(row["prompt_ids"]), tuple(row["completion_ids"]), on_policy=row["on_policy"]
    )


def sample_order(example_id: str) -> bytes:
    """What examples are ordered by before the first ones are kept: a hash, so that the choice depends on nothing else.

    Whoever wants the same examples before they are trained on orders by the same.
    """
    return hashlib.sha256(f"trained:{example_id}".encode()).digest()


def remember(session: TrainingSession, rows: Sequence[TrainingRow] | None = None) -> None:
    """Keep a sample of the stage in ``context.ledger.trained``.

    It is derived from what a resume has anyway: the rows, or the ledger of rollouts. A later call replaces it.

    Args:
        session: The session at its end.
        rows: The rows of supervised training; None where the ledger holds the student's rollouts.
    """
    trained = _rollouts(session) if rows is None else _supervised(rows)
    session.context.ledger.trained = tuple(trained)


def _supervised(rows: Sequence[TrainingRow]) -> list[TrainedRow]:
    first: dict[str, TrainingRow] = {}
    for row in rows:
        first.setdefault(row.example_id, row)
    return [TrainedRow(id_, first[id_].prompt_ids, first[id_].completion_ids) for id_ in _kept(first)]


def _rollouts(session: TrainingSession) -> list[TrainedRow]:
    # A row of the ledger names its example by the id alone, which two tasks of one stage may share.
    names = Counter(example.id for example in session.stage.examples)
    drawn: dict[str, tuple[int, ...]] = {}
    for row in session.context.ledger:
        if row.get("tokens"):
            drawn.setdefault(str(row["id"]), tuple(row["tokens"]))
    examples = {example.id: example for example in session.stage.examples}
    return [
        TrainedRow(id_, session.student.prompt_ids(examples[id_].messages), drawn[id_], on_policy=True)
        for id_ in _kept(id_ for id_ in drawn if names[id_] == 1)
    ]


def _kept(ids: Iterable[str]) -> list[str]:
    return sorted(ids, key=sample_order)[:MOST_TRAINED]
