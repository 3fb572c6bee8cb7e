"""A lab domain as a task: rows with exact answers and demonstrations in a declared style."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import islice, zip_longest
from typing import Any

from cl_bench.harness.errors import DataError
from cl_bench.tasks.base import Example, Score, SplitName, Task
from cl_bench.tasks.lab.kinds import Item, Kind, Pool, unit
from cl_bench.tasks.lab.scoring import score_text
from cl_bench.tasks.lab.styles import DISTANCES, ORDERS, Distance, Order, render, style_name
from cl_bench.tasks.lab.world import DOMAINS, SCIENCES, kinds_of

DEFAULT_ROWS: Mapping[str, int] = {"train": 640, "dev": 100, "test": 300, "ood": 100}
"""Rows of each split unless the task says otherwise."""
MIXTURES: Mapping[str, tuple[str, ...]] = {
    "science-mixture": SCIENCES,
    "all-mixture": DOMAINS,
    "life-mixture": ("chemistry", "biology"),
    "matter-mixture": ("materials", "physics"),
    "symbol-mixture": ("math", "coding"),
}
"""Domains that are no single subject: equal shares of their parts."""
OPTIONS_SHARE = 0.25
"""Share of the rows whose candidates stand in the question, where the kind has such a form."""


class LabTask(Task):
    """A domain of the lab world, or a mixture of domains.

    The splits are deterministic. Rule keys of the splits are disjoint; facts are asked in dev and test in a wording
    that train uses only with other facts; ``ood`` asks kinds, or lengths, that no other split has.
    """

    max_new_tokens = 64

    def __init__(
        self,
        name: str,
        domain: str | None = None,
        *,
        distance: Distance = "HI",
        order: Order = "reasoning-first",
        rows: Mapping[str, int] | None = None,
        nature: str | None = None,
    ) -> None:
        """Describe the task.

        Args:
            name: Name of the task.
            domain: Domain or mixture; the name where None.
            distance: Style family of the demonstrations, ``LO``, ``MID`` or ``HI``.
            order: Order of the demonstration's parts.
            rows: Rows of a split, replacing the default of that split.
            nature: Only kinds of this nature, ``fact`` or ``rule``; None for both.

        Raises:
            ValueError: Unknown domain, distance, order, nature or split.
        """
        self.name = name
        self.domain = domain or name
        _require("domain", self.domain, (*DOMAINS, *MIXTURES))
        _require("distance", distance, DISTANCES)
        _require("order", order, ORDERS)
        _require("nature", nature, (None, "fact", "rule"))
        for split in rows or {}:
            _require("split", split, tuple(DEFAULT_ROWS))
        self.distance: Distance = distance
        self.order: Order = order
        self.nature = nature
        self.rows = {**DEFAULT_ROWS, **(rows or {})}

    def train(self) -> Sequence[Example]:
        """Training rows with demonstrations."""
        return self._examples("train")

    def dev(self) -> Sequence[Example]:
        """Rows for choosing settings."""
        return self._examples("dev")

    def test(self) -> Sequence[Example]:
        """Evaluation rows, all with distinct keys."""
        return self._examples("test")

    def ood(self) -> Sequence[Example]:
        """Rows of unseen kinds and longer operands."""
        return self._examples("ood")

    def score(self, example: Example, text: str) -> Score:
        """Score a response: the answer in any declared style; ``format_ok`` where the whole text is in one."""
        return score_text(example, text)

    def identity(self) -> dict[str, Any]:
        """Settings and lab version."""
        from cl_bench.tasks.lab.version import LAB_VERSION

        return {
            "name": self.name, "version": self.version, "lab_version": LAB_VERSION, "domain": self.domain,
            "distance": self.distance, "order": self.order, "nature": self.nature,
            "rows": dict(sorted(self.rows.items())),
        }  # fmt: skip

    def _examples(self, split: SplitName) -> list[Example]:
        parts = MIXTURES.get(self.domain, (self.domain,))
        share, extra = divmod(self.rows[split], len(parts))
        columns = [select_items(part, split, share + (i < extra), self.nature) for i, part in enumerate(parts)]
        items = [item for row in zip_longest(*columns) for item in row if item is not None]
        style = style_name(self.distance, self.order)
        return [example_of(self.name, item, style) for item in items]


def _require(what: str, given: object, known: tuple[object, ...]) -> None:
    if given not in known:
        raise ValueError(f"unknown {what} {given!r} of a lab task; known: {', '.join(map(str, known))}")


def example_of(task: str, item: Item, style: str) -> Example:
    """The item as an example whose demonstration is in the style of that name."""
    return Example(
        task=task,
        id=item.id,
        messages=({"role": "user", "content": item.question},),
        demonstration=render(style, item.reasoning, item.answer),
        answer=item.answer,
        choices=item.options or None,
        meta={"kind": item.kind, "key": item.key, "domain": item.domain, "reasoning": item.reasoning},
    )


@cache
def select_items(domain: str, split: Pool, n: int, nature: str | None = None) -> tuple[Item, ...]:
    """The first ``n`` items of a split of one domain, the kinds in turn.

    Raises DataError where the domain has fewer.
    """
    kinds = [kind for kind in kinds_of(domain, ood=split == "ood") if nature in (None, kind.nature)]
    columns = [_kind_items(kind, split) for kind in kinds]
    in_turn = (item for row in zip_longest(*columns) for item in row if item is not None)
    items = tuple(islice(in_turn, n))
    if len(items) < n:
        what = f"the lab's {domain} has {len(items)} rows in {split}, {n} were asked for"
        raise DataError(what, hint="ask for fewer")
    return items


def _kind_items(kind: Kind, split: Pool) -> Iterator[Item]:
    """Items of one kind: one a key in dev, test and ood; in train every key returns in its other wordings and forms."""
    seen: set[str] = set()
    for turn in range(2 * len(kind.phrasings) if split == "train" else 1):
        for operands in kind.operands_of(split):
            item = _item_of_turn(kind, operands, split, turn)
            if item.id not in seen:
                seen.add(item.id)
                yield item


def _item_of_turn(kind: Kind, operands: tuple[str, ...], split: Pool, turn: int) -> Item:
    key = kind.key(operands)
    allowed = kind.phrasings_for(operands, split)
    start = int(unit("turn", split, key) * len(allowed))
    # The second tour through the wordings takes the other form.
    options = (unit("form", split, kind.name, key, str(turn % len(allowed))) < OPTIONS_SHARE) != (turn >= len(allowed))
    flip = unit("flip", split, kind.name, key, str(turn)) < 0.5
    return kind.item(
        operands, allowed[(turn + start) % len(allowed)], form="options" if options else "direct", flip=flip
    )
