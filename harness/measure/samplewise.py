"""Per-item forgetting and backward transfer between two rows, with the transitions that guessing alone would make.

Source: sample-wise forgetting (2510.17776). A model that does not know an item of k options guesses it with probability
1/k; c below is then the expected share of items that change by luck, the same in both directions. The source takes what
is known before and after to be independent. Where instead the same share u of items stays unknown, luck changes 1/u
times as many as c, and what is left of both directions is too large by the rest; their difference is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SampleWise:
    """Transitions of n items between an earlier and a later row; shares of n unless said otherwise.

    Attributes:
        n: Items.
        kept: Items right in both, a count.
        forgotten: Items right before and wrong after, a count.
        gained: Items wrong before and right after, a count.
        never: Items wrong in both, a count.
        accuracy_before: Share right before.
        accuracy_after: Share right after.
        chance_transition: Expected share of items that turn from right to wrong (or back) by guessing alone.
        known_before: Share known before, guesses taken off.
        known_after: Share known after, guesses taken off.
    """

    n: int
    kept: int
    forgotten: int
    gained: int
    never: int
    accuracy_before: float
    accuracy_after: float
    chance_transition: float
    known_before: float
    known_after: float

    @property
    def forgetting(self) -> float:
        """Share of items right before and wrong after."""
        return self.forgotten / self.n

    @property
    def backward_transfer(self) -> float:
        """Share of items wrong before and right after."""
        return self.gained / self.n

    def adjusted(self, share: float) -> float:
        """A share of transitions less what guessing explains; may be negative."""
        return share - self.chance_transition


def sample_wise(before: Sequence[bool | int], after: Sequence[bool | int], options: int | None) -> SampleWise:
    """Compare the same items in two rows.

    Args:
        before: Whether each item was right in the earlier row.
        after: Whether it was right in the later row.
        options: Options of each item; None for open answers, where luck explains nothing.

    Raises:
        ValueError: The rows differ in length or are empty, hold what is neither right nor wrong, or have fewer than two
            options.
    """
    if len(before) != len(after) or not before:
        raise ValueError(f"two rows of the same items are needed, not {len(before)} and {len(after)}")
    check_verdicts(before, after)
    if options is not None and options < 2:
        raise ValueError(f"items have at least two options, not {options}")
    pairs = [(bool(one), bool(other)) for one, other in zip(before, after, strict=True)]
    n = len(pairs)
    accuracy_before, accuracy_after = sum(one for one, _ in pairs) / n, sum(other for _, other in pairs) / n
    chance = (1 - accuracy_before) * (1 - accuracy_after) / (options - 1) if options else 0.0
    return SampleWise(
        n=n,
        kept=pairs.count((True, True)),
        forgotten=pairs.count((True, False)),
        gained=pairs.count((False, True)),
        never=pairs.count((False, False)),
        accuracy_before=accuracy_before,
        accuracy_after=accuracy_after,
        chance_transition=chance,
        known_before=_known(accuracy_before, options),
        known_after=_known(accuracy_after, options),
    )


def check_verdicts(*rows: Iterable[object]) -> None:
    """Check that items are right or wrong. Raises ``ValueError`` for a graded score, a missing one and NaN."""
    wrong = [one for row in rows for one in row if one not in (0, 1)]
    if wrong:
        raise ValueError(f"an item is right (1) or wrong (0), not {wrong[0]}")


def _known(accuracy: float, options: int | None) -> float:
    return max(0.0, (options * accuracy - 1) / (options - 1)) if options else accuracy
