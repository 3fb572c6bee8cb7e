"""Two checkpoints on the same items: the exact McNemar test, and a bootstrap of the difference over items.

Both speak of these checkpoints alone. Whether a method is better than another is a question about seeds
(``cl_bench.harness.measure.statistics.seeds``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from cl_bench.harness.measure.samplewise import check_verdicts
from cl_bench.harness.measure.statistics.intervals import LEVEL, Interval, bootstrap_mean

SCOPE = "these checkpoints"
"""What an item-level result holds for; shown beside it."""
PAIRED_ITEMS = 100
"""Fewest items of a paired interval."""


@dataclass(frozen=True, slots=True)
class McNemar:
    """The exact McNemar test.

    Attributes:
        only_first: Items that only the first checkpoint has right.
        only_second: Items that only the second has right.
        n: Items.
        p: Two-sided p-value.
        scope: What it holds for.
    """

    only_first: int
    only_second: int
    n: int
    p: float
    scope: str = SCOPE

    @property
    def difference(self) -> float:
        """Share of right items of the first minus that of the second."""
        return (self.only_first - self.only_second) / self.n

    @property
    def discordance(self) -> float:
        """Share of items that only one of the two has right."""
        return (self.only_first + self.only_second) / self.n


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """Mean difference of two checkpoints' scores on the same items.

    Attributes:
        difference: Mean of first minus second.
        interval: 95 % bootstrap interval over items; None for fewer than ``PAIRED_ITEMS``, or where no two differ.
        n: Items.
        scope: What it holds for.
    """

    difference: float
    interval: Interval | None
    n: int
    scope: str = SCOPE


def mcnemar(first: Sequence[bool | int], second: Sequence[bool | int]) -> McNemar:
    """Exact McNemar test: of the items that differ, is one side more frequent than a fair coin gives (binomial test)?

    Args:
        first: Whether the first checkpoint has each item right.
        second: Whether the second has the same item right.

    Raises:
        ValueError: The two differ in length or are empty, or hold what is neither right nor wrong.
    """
    _check(first, second)
    check_verdicts(first, second)
    pairs = [(bool(one), bool(other)) for one, other in zip(first, second, strict=True)]
    only_first, only_second = pairs.count((True, False)), pairs.count((False, True))
    return McNemar(only_first, only_second, len(pairs), exact_p(only_first, only_second))


def exact_p(only_first: int, only_second: int) -> float:
    """Two-sided p-value of the exact McNemar test; 1 where no item differs."""
    from scipy.special import bdtr

    differing = only_first + only_second
    return min(1.0, 2 * float(bdtr(min(only_first, only_second), differing, 0.5))) if differing else 1.0


def paired_bootstrap(first: Sequence[float], second: Sequence[float], level: float = LEVEL) -> PairedDifference:
    """Mean difference over items with an expanded percentile bootstrap interval (``bootstrap_mean``).

    Args:
        first: The first checkpoint's score on each item; right and wrong, or graded.
        second: The second's on the same items.
        level: Coverage, as a fraction.

    Raises:
        ValueError: The two differ in length or are empty, or a score is not finite.
    """
    _check(first, second)
    differences = [float(one) - float(other) for one, other in zip(first, second, strict=True)]
    if not all(map(math.isfinite, differences)):
        raise ValueError("a score is no finite number")
    interval = bootstrap_mean(differences, level) if len(differences) >= PAIRED_ITEMS else None
    return PairedDifference(fmean(differences), interval, len(differences))


def _check(first: Sequence[object], second: Sequence[object]) -> None:
    if len(first) != len(second) or not first:
        raise ValueError(f"two rows of scores on the same items are needed, not {len(first)} and {len(second)}")
