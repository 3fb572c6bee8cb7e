"""Fixed splits of data sets that come without a test file, or without dev rows."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence

TRAIN_SHARE = 0.8
DEV_SHARE = 0.1
"""Share of the training side that is kept as dev rows."""


def normalised(question: str) -> str:
    """What two questions have in common when only case and white space differ."""
    return " ".join(question.lower().split())


def group_split(groups: Sequence[str], share: float, purpose: str) -> tuple[list[int], list[int]]:
    """Split rows so that rows of one group stay together.

    Args:
        groups: Group of each row.
        share: Share of the rows in the first part; it gets ``round(share * n)`` of them unless groups do not fit.
        purpose: Names the split; other names give other permutations.

    Returns:
        Ascending indices of the two parts.
    """
    members: dict[str, list[int]] = {}
    for index, group in enumerate(groups):
        members.setdefault(group, []).append(index)
    target = round(share * len(groups))
    first: list[int] = []
    second: list[int] = []
    for group in sorted(members, key=lambda name: hashlib.sha256(f"{purpose}:{name}".encode()).digest()):
        (first if len(first) + len(members[group]) <= target else second).extend(members[group])
    return sorted(first), sorted(second)


def row_split(n: int, share: float) -> tuple[list[int], list[int]]:
    """Split rows one by one, as the papers do: ``round(share * n)`` rows of a permutation with seed 0."""
    order = list(range(n))
    random.Random(0).shuffle(order)
    cut = round(share * n)
    return sorted(order[:cut]), sorted(order[cut:])
