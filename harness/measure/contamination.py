"""Overlap between training data and evaluation sets: which evaluated items a stage trained on, and how one can tell.

Three kinds, each a flag of an item:

``exact``
    Its question, with or without its options, is a training question (``normal_form``: case, white space, punctuation
    at the ends and "Question:"/"Answer:" aside), or stands as whole sentences in any training text. A stem that comes
    with more than ten sets of options (two where it has fewer than 13 words) asks nothing by itself: its options must
    be the training question's too. Within texts, stems of fewer than 13 words with options, and questions of fewer than
    three words, are not looked for.
``ngram``
    13 words in a row of its question (options aside) stand in a training text: Brown et al. (2005.14165, appendix C).
    Eight of them must have two characters or more. Questions of fewer words have no n-gram.
``choices``
    Its options are those of a training question in any order, or one set (three options at least) holds the other, and
    the stems are the same: equal, one within the other with sentences around it, or, where the options come with at
    most three stems besides those that hold its own, one's words in a row within the other's or all but a fifth of the
    words (of eight at least), in order; the words that differ then have two characters or more, and no digit.

What many rows share is no overlap. Boilerplate is an n-gram in more than 1 % (five at least, ten at most) of the
training rows or of the column's questions, or in two of both, a question with its options counted once; it is cut out
before n-grams are looked for. A question of fewer than eight words that stands within the texts of as many rows is no
repeat either. A longer question is one however often it comes: where all of it stands in a training text, boilerplate
is not cut out, unless its stem asks nothing by itself. System turns are never looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from cl_bench.tasks.base import Example

if TYPE_CHECKING:
    from cl_bench.harness.measure.contamination_columns import Evaluated

KINDS = ("exact", "ngram", "choices")


@dataclass(frozen=True, slots=True)
class Item:
    """An evaluated item.

    Attributes:
        id: Its id in ``samples.jsonl``, unique in its column.
        question: What is asked, with or without the options.
        choices: The options, where it has any.
    """

    id: str
    question: str
    choices: tuple[str, ...] = ()

    @classmethod
    def of(cls, example: Example) -> Item:
        """A task's example; the bare question where the task gives it beside the prompt (``meta["question"]``)."""
        return cls(example.id, _bare_question(example), example.choices or ())


@dataclass(frozen=True, slots=True)
class TrainingRow:
    """A training row with all that was trained on for it.

    Attributes:
        question: What is asked, with or without the options; empty where the row asks nothing.
        choices: The options, where it has any.
        texts: Everything else: other turns, demonstrations, generated texts.
    """

    question: str
    choices: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()

    @classmethod
    def of(cls, example: Example, generated: Sequence[str] = ()) -> TrainingRow:
        """A training example with what was generated for it: all turns but system turns, and the demonstration."""
        turns = (message["content"] for message in example.messages if message["role"] != "system")
        texts = (*turns, *([example.demonstration] if example.demonstration else []), *generated)
        return cls(_bare_question(example), example.choices or (), texts)


def _bare_question(example: Example) -> str:
    bare = example.meta.get("question")
    return bare if isinstance(bare, str) and bare and bare in example.question else example.question


@dataclass(frozen=True, slots=True)
class Overlap:
    """Items of one column that are trained on.

    Attributes:
        n: Items of the column.
        items: Their ids by kind, in the column's order.
    """

    n: int
    items: Mapping[str, tuple[str, ...]]

    @property
    def any(self) -> frozenset[str]:
        """Ids of the items that are flagged in any way."""
        return frozenset(name for ids in self.items.values() for name in ids)

    def counts(self) -> dict[str, int]:
        """Number of items by kind, and of those with ``any``."""
        return {**{kind: len(ids) for kind, ids in self.items.items()}, "any": len(self.any)}

    def to_json(self) -> dict[str, Any]:
        """``n``; count and share of each kind and of any; the flagged ids by kind."""
        return {"n": self.n, **shares(self.counts(), self.n), "items": {k: list(ids) for k, ids in self.items.items()}}


def shares(counts: Mapping[str, int], n: int) -> dict[str, dict[str, float | None]]:
    """Counts as ``{"count", "share"}``; the share of nothing is None."""
    return {kind: {"count": count, "share": count / n if n else None} for kind, count in counts.items()}


def contamination_table(
    training: Mapping[str, Iterable[str | Item | TrainingRow]], evaluated: Mapping[str, Sequence[Item]]
) -> dict[str, dict[str, Overlap]]:
    """Overlap of each training set with each evaluation set.

    Args:
        training: Training rows by name; a plain text is a row that asks, or is, that text.
        evaluated: Evaluated items by column.

    Returns:
        By name, then by column.
    """
    items = EvaluatedItems(evaluated)
    return {name: items.overlap(map(_training_row, rows)) for name, rows in training.items()}


def _training_row(row: str | Item | TrainingRow) -> TrainingRow:
    if isinstance(row, TrainingRow):
        return row
    return TrainingRow(row) if isinstance(row, str) else TrainingRow(row.question, row.choices)


class EvaluatedItems:
    """The evaluation sets of a run, brought into comparable form once, on first use."""

    def __init__(self, columns: Mapping[str, Sequence[Item]]) -> None:
        """Take the items by column."""
        self._items = columns

    def overlap(self, rows: Iterable[TrainingRow]) -> dict[str, Overlap]:
        """Items of each column that one training set has; its rows are gone through once."""
        from cl_bench.harness.measure.contamination_columns import Trained

        trained = Trained(self._evaluated, rows)
        found = {name: column.flagged(trained, name) for name, column in self._evaluated.columns.items()}
        return {name: Overlap(len(self._items[name]), flagged) for name, flagged in found.items()}

    @cached_property
    def _evaluated(self) -> Evaluated:
        from cl_bench.harness.measure.contamination_columns import Evaluated

        return Evaluated(self._items)
