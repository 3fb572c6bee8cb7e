"""Several tasks on public data as one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from typing import Any

from cl_bench.harness.errors import UsageError
from cl_bench.tasks.base import SPLITS, Example, Score, Task
from cl_bench.tasks.sources.gold_ids import NO_ROW_OF_TASK, read_gold_ids
from cl_bench.tasks.sources.hub import HubTask
from cl_bench.tasks.sources.splits import DEV_SHARE

NOT_TAKEN = "not among the rows that the mixture takes of this part"


class MixtureTask(Task):
    """Parts of several tasks as one, as many rows of each as the share of one task in the largest.

    With k parts, the quota of the training side is a k-th of *all* rows of the largest part and the quota of the test
    side a k-th of its test rows; a part with fewer rows gives all of them. For the four sciences of the source's
    Table 4, where Chemistry is the largest with 2,674 rows of which 535 are test rows, that is 2,674 // 4 = 668 and
    535 // 4 = 133, and all 285 and 71 of Biology: the numbers of that table. Rows stay on their part's side; a tenth of
    the training side is dev rows.
    """

    version = "3"
    """Raised when other rows are taken of the same parts."""

    def __init__(self, name: str, parts: Sequence[HubTask]) -> None:
        """Join tasks.

        Args:
            name: Name of the mixture; its examples carry it, their ids begin with the part's name.
            parts: The tasks.

        Raises:
            UsageError: They end a response with different strings; a mixture is evaluated with one setting.
        """
        self.name, self.parts = name, tuple(parts)
        if len({part.stop for part in parts}) > 1:
            said = "; ".join(f"{part.name}: {', '.join(map(repr, part.stop)) or 'none'}" for part in parts)
            raise UsageError(f"the parts of the mixture {name} have different strings that end a response", said)
        self.stop = self.parts[0].stop
        self.max_new_tokens = max(part.max_new_tokens for part in parts)
        self.executes_code = any(part.executes_code for part in parts)
        self._by_name = {part.name: part for part in parts}

    @cached_property
    def chance(self) -> float:  # type: ignore[override]  # mypy takes it for one that cannot be assigned
        """Accuracy of guessing over the test rows; loads them where the parts differ."""
        chances = {part.name: part.chance for part in self.parts}
        if len(set(chances.values())) == 1:
            return self.parts[0].chance
        rows = self.test()
        return sum(chances[str(example.meta["part"])] for example in rows) / len(rows)

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
    def left_out(self) -> Mapping[str, str]:
        """Why a row of a part cannot be scored here, by id; loads the rows."""
        own = {example.id for example in self.scorable()}
        parts = {f"{part.name}/{example.id}": NOT_TAKEN for part in self.parts for example in part.scorable()}
        unreadable = {f"{part.name}/{name}": why for part in self.parts for name, why in part.left_out.items()}
        return {name: why for name, why in {**parts, **unreadable}.items() if name not in own}

    @property
    def remarks(self) -> tuple[str, ...]:
        """Remarks of the parts, each after the part's name, and listed gold ids that no part has; loads the rows."""
        said = (f"{part.name}: {remark}" for part in self.parts for remark in part.remarks)
        # An id that one part lacks is likely one of another's.
        return (*(remark for remark in said if not remark.endswith(NO_ROW_OF_TASK)), *self._unknown_ids())

    def identity(self) -> dict[str, Any]:
        """Hash over ids and content of the rows that are taken, and the identities of the parts; loads the rows."""
        rows = {split: [asdict(example) for example in self.split(split)] for split in SPLITS}
        return {
            "name": self.name,
            "version": self.version,
            "data": hashlib.sha256(json.dumps(rows, sort_keys=True, ensure_ascii=False).encode()).hexdigest(),
            "rows": {split: len(examples) for split, examples in rows.items() if examples},
            "parts": [part.identity() for part in self.parts],
        }

    def _unknown_ids(self) -> list[str]:
        filtered = [part for part in self.parts if part.source.gold_filter]
        listed = {one for part in filtered if (path := part.options.gold_ids) for one in read_gold_ids(path)}
        known = {example.id for part in self.parts for example in part.scorable()}
        unknown = listed - known.union(*(part.left_out for part in self.parts))
        names = ", ".join(part.name for part in self.parts)
        return [f"{len(unknown):,} listed ids are in none of {names}"] if unknown else []

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
