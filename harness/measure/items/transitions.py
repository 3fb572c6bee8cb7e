"""The same items in two rows: kept, forgotten, gained or never right, with what guessing alone would make of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean
from typing import Literal

from cl_bench.harness.errors import NotComparableError
from cl_bench.harness.measure.items.causes import NO_VERDICT, SKIPPED, Cause, Sample, cause_of, verdict
from cl_bench.harness.measure.samplewise import SampleWise, sample_wise

Transition = Literal["kept", "forgotten", "gained", "never"]
TRANSITIONS: tuple[Transition, ...] = ("kept", "forgotten", "gained", "never")
_NAMES: Mapping[tuple[bool, bool], Transition] = {
    (True, True): "kept",
    (True, False): "forgotten",
    (False, True): "gained",
    (False, False): "never",
}


@dataclass(frozen=True, slots=True)
class Item:
    """One item in two rows.

    Attributes:
        before: Its row in the earlier ``samples.jsonl``; it has a verdict.
        after: The same in the later one; it has a verdict or was skipped, which is wrong.
        transition: What became of it.
        cause: Why the later answer is wrong; None where it is right.
        options: Options of the item; None for an open answer, and where their number is not known.
    """

    before: Sample
    after: Sample
    transition: Transition
    cause: Cause | None
    options: int | None

    @property
    def id(self) -> str:
        """The item's id."""
        return str(self.before["id"])

    @property
    def unreliable(self) -> bool:
        """Whether one of the two verdicts is in doubt, by the scorer's own word."""
        return "unreliable" in self.before or "unreliable" in self.after


@dataclass(frozen=True, slots=True)
class Guessing:
    """Transitions less what luck explains. **Model-based**: items are known, or guessed with equal odds.

    Source: sample-wise forgetting (2510.17776). Counts are aggregated over the items of one number of options, then
    adjusted, then put together by the number of items; open answers have no luck. The source takes what is known before
    and after to be independent; where the same items stay unknown, luck explains more than it says, and what is left of
    forgetting is an upper bound.

    Attributes:
        chance_transition: Expected share of items that turn from right to wrong (and back) by guessing alone.
        forgotten: Share forgotten less that; may be negative.
        gained: Share gained less that; may be negative. ``gained - forgotten`` is the change of accuracy, exactly.
        known_before: Share known before.
        known_after: Share known after.
    """

    chance_transition: float
    forgotten: float
    gained: float
    known_before: float
    known_after: float


@dataclass(frozen=True)
class ColumnLedger:
    """Transitions of one column between two rows.

    Attributes:
        column: Name of the column.
        before: Name of the earlier row.
        after: Name of the later row.
        items: The items that have a verdict in both rows, in the order of evaluation.
        left_out: Items that have none, by reason.
        reason: Why there are no items, else None.
    """

    column: str
    before: str
    after: str
    items: tuple[Item, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    reason: str | None = None

    @property
    def n(self) -> int:
        """Items compared."""
        return len(self.items)

    @cached_property
    def counts(self) -> dict[Transition, int]:
        """Items by transition."""
        found = Counter(item.transition for item in self.items)
        return {name: found[name] for name in TRANSITIONS}

    def of(self, transition: Transition) -> list[Item]:
        """The items of one transition."""
        return [item for item in self.items if item.transition == transition]

    def causes(self, transition: Transition) -> dict[Cause, int]:
        """Why the later answers of a transition are wrong: items by cause, both causes named."""
        found = Counter(item.cause for item in self.of(transition))
        return {"format failure": found["format failure"], "wrong answer": found["wrong answer"]}

    def share(self, transition: Transition) -> float | None:
        """Share of the compared items; None without items."""
        return self.counts[transition] / self.n if self.n else None

    @cached_property
    def guessing(self) -> Guessing | None:
        """Transitions less what luck explains (model-based); None without items."""
        return guessing(self.items) if self.items else None


def guessing(items: Sequence[Item]) -> Guessing:
    """Take guessing off the transitions of at least one item."""
    strata: dict[int | None, list[Item]] = {}
    for item in items:
        strata.setdefault(item.options, []).append(item)
    found = [_stratum(members, options) for options, members in strata.items()]
    n = len(items)

    def over(values: Iterable[float]) -> float:
        return sum(part.n * value for part, value in zip(found, values, strict=True)) / n

    return Guessing(
        chance_transition=over(part.chance_transition for part in found),
        forgotten=over(part.adjusted(part.forgetting) for part in found),
        gained=over(part.adjusted(part.backward_transfer) for part in found),
        known_before=over(part.known_before for part in found),
        known_after=over(part.known_after for part in found),
    )


def _stratum(items: Sequence[Item], options: int | None) -> SampleWise:
    before = [item.transition in ("kept", "forgotten") for item in items]
    after = [item.transition in ("kept", "gained") for item in items]
    return sample_wise(before, after, options)


@dataclass(frozen=True, slots=True)
class MeanTransitions:
    """Transitions averaged over columns, each column counting once.

    Attributes:
        columns: Columns that have items.
        shares: Mean share of each transition.
        forgotten: Mean share forgotten, guessing taken off (model-based).
        gained: Mean share gained, guessing taken off (model-based).
    """

    columns: int
    shares: Mapping[Transition, float]
    forgotten: float
    gained: float


def mean_transitions(ledgers: Iterable[ColumnLedger]) -> MeanTransitions | None:
    """Average over columns; those without items are left out. None where none has any."""
    found = [(ledger, ledger.guessing) for ledger in ledgers if ledger.guessing is not None]
    adjusted = [guess for _, guess in found if guess is not None]
    if not adjusted:
        return None
    return MeanTransitions(
        columns=len(found),
        shares={name: fmean(ledger.counts[name] / ledger.n for ledger, _ in found) for name in TRANSITIONS},
        forgotten=fmean(guess.forgotten for guess in adjusted),
        gained=fmean(guess.gained for guess in adjusted),
    )


def paired(before: Sequence[Sample], after: Sequence[Sample], where: str) -> list[tuple[Sample, Sample]]:
    """Rows of the same items, in the order of the first list.

    Args:
        before: Rows of one file.
        after: Rows of the other.
        where: What is compared, for the message.

    Raises:
        NotComparableError: The two do not hold the same items with the same prompts, or an id comes twice.
    """
    later = {str(sample["id"]): sample for sample in after}
    ids = [str(sample["id"]) for sample in before]
    if len(later) < len(after) or len(set(ids)) < len(ids):
        raise NotComparableError(f"{where}: an id comes twice", "items are told apart by their id")
    if set(ids) != set(later):
        odd = sorted(set(ids) ^ set(later))
        raise NotComparableError(
            f"{where}: the rows do not hold the same items",
            f"{len(odd)} ids are in one of them alone, such as {odd[0]!r}",
            "compare rows that were evaluated on the same items",
        )
    pairs = [(sample, later[name]) for sample, name in zip(before, ids, strict=True)]
    for one, other in pairs:
        if one["prompt_hash"] != other["prompt_hash"]:
            raise NotComparableError(f"{where}: item {one['id']!r} was asked with another prompt")
    return pairs


def items_of(pairs: Iterable[tuple[Sample, Sample, int | None]]) -> tuple[tuple[Item, ...], dict[str, int]]:
    """Items with a verdict before and an outcome after, and how many have none, by reason.

    Args:
        pairs: The two rows of each item, and its number of options.
    """
    items: list[Item] = []
    left_out: Counter[str] = Counter()
    for before, after, options in pairs:
        was, cause = verdict(before), cause_of(after)
        if was is None or (verdict(after) is None and cause is None):
            left_out[SKIPPED if before["ended"] == SKIPPED else NO_VERDICT] += 1
            continue
        items.append(Item(before, after, _NAMES[was, cause is None], cause, options))
    return tuple(items), dict(left_out)
