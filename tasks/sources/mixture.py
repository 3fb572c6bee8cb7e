"""Several tasks on public data as one."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from cl_bench.tasks.base import Example, Score, Task
from cl_bench.tasks.sources.hub import HubTask
from cl_bench.tasks.sources.splits import DEV_SHARE


class MixtureTask(Task):
    """Parts of several tasks as one, as many rows of each as the share of one task in the largest.

    With k parts, the quota of the training side is a k-th of *all* rows of the largest part and the quota of the test
    side a k-th of its test rows; a part with fewer rows gives all of them. For the four sciences of the source's
    Table 4, where Chemistry is the largest with 2,674 rows of which 535 are test rows, that is 2,674 // 4 = 668 and
    535 // 4 = 133, and all 285 and 71 of Biology: the numbers of that table. Rows stay on their part's side; a tenth of
    the training side is dev rows.
    """

    def __init__(self, name: str, parts: Sequence[HubTask]) -> None:
        """Join tasks.

        Args:
            name: Name of the mixture; its examples carry it, their ids begin with the part's name.
            parts: The tasks.
        """
        self.name, self.parts = name, tuple(parts)
        self.chance = sum(part.chance for part in parts) / len(parts)
        self.max_new_tokens = max(part.max_new_tokens for part in parts)
        self.executes_code = any(part.executes_code for part in parts)
        self._by_name = {part.name: part for part in parts}

    def train(self) -> Sequence[Example]:
        """Each part's share of the training side, without its dev rows."""
        return self._joined([_first_by_hash(part.train(), self._side_counts(part)[0]) for part in self.parts])

    def dev(self) -> Sequence[Example]:
        """A tenth of each part's share of the training side."""
        return self._joined([_first_by_hash(part.dev(), self._side_counts(part)[1]) for part in self.parts])

    def test(self) -> Sequence[Example]:
        """Each part's share of the test side."""
        quota = self._quota(max(len(part.test()) for part in self.parts))
        return self._joined([_first_by_hash(part.test(), quota) for part in self.parts])

    def score(self, example: Example, text: str) -> Score:
        """Score with the scorer of the part that the example is from."""
        return self._by_name[str(example.meta["part"])].score(example, text)

    @property
    def remarks(self) -> tuple[str, ...]:
        """Remarks of the parts, each after the part's name; loads the rows."""
        return tuple(f"{part.name}: {remark}" for part in self.parts for remark in part.remarks)

    def identity(self) -> dict[str, Any]:
        """Identities of the parts."""
        parts = [part.identity() for part in self.parts]
        return {"name": self.name, "version": self.version, "parts": parts}

    def _quota(self, largest: int) -> int:
        return max(1, largest // len(self.parts))

    def _side_counts(self, part: HubTask) -> tuple[int, int]:
        """How many training rows and how many dev rows a part gives."""
        quota = self._quota(max(len(one.train()) + len(one.dev()) + len(one.test()) for one in self.parts))
        train, dev = len(part.train()), len(part.dev())
        side = min(quota, train + dev)
        for_dev = min(dev, max(1, round(side * DEV_SHARE), side - train))
        return min(train, side - for_dev), for_dev

    def _joined(self, rows: Sequence[Sequence[Example]]) -> list[Example]:
        return [
            replace(example, task=self.name, id=f"{part.name}/{example.id}", meta={**example.meta, "part": part.name})
            for part, chosen in zip(self.parts, rows, strict=True)
            for example in chosen
        ]


def _first_by_hash(rows: Sequence[Example], count: int) -> list[Example]:
    order = sorted(range(len(rows)), key=lambda index: hashlib.sha256(f"mixture:{rows[index].id}".encode()).digest())
    chosen = set(order[:count])
    return [example for index, example in enumerate(rows) if index in chosen]
