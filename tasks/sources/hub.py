"""Tasks on public data sets: rows through one loader, fixed splits, a reader a data set."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

from cl_bench.harness.errors import DataError
from cl_bench.tasks.base import Example, Score, Task
from cl_bench.tasks.sources.base import DataOptions
from cl_bench.tasks.sources.locate import DatasetSpec, load_rows
from cl_bench.tasks.sources.readers import READERS, DroppedRowError
from cl_bench.tasks.sources.splits import DEV_SHARE, TRAIN_SHARE, group_split, normalised, row_split

Splits = dict[str, list[Example]]


@dataclass(frozen=True, slots=True)
class HubSource:
    """Where a task's rows are and how they are read.

    Attributes:
        kind: Name of the reader.
        data: The data set. With a ``train`` and a ``test`` file these are the splits; with one file it is split.
        system: System turn before every question, or None.
        chance: Accuracy of guessing, as a fraction.
        max_new_tokens: Longest response that evaluation waits for, in tokens.
        columns: Names of the columns, for readers that need them.
        gold_filter: Whether ``DataOptions.gold_ids`` restricts this data set.
    """

    kind: str
    data: DatasetSpec
    system: str | None = None
    chance: float = 0.0
    max_new_tokens: int = 256
    columns: Mapping[str, str] = field(default_factory=dict)
    gold_filter: bool = False


class HubTask(Task):
    """A task on a public data set. Rows are read and split on first use.

    Exact repetitions of a row (the same messages) are dropped, and so are rows that the reader refuses; ``dropped``
    counts them by reason. Dev rows are a tenth of the training side and no part of ``train()``.
    """

    def __init__(self, name: str, source: HubSource, options: DataOptions) -> None:
        """Describe the task; nothing is loaded.

        Args:
            name: Name of the task.
            source: Its data set.
            options: Where to look for it, and how to split.
        """
        self.name, self.source, self.options = name, source, options
        self.chance, self.max_new_tokens = source.chance, source.max_new_tokens
        self._reader = READERS[source.kind]
        self.stop = self._reader.stop
        self.dropped: Counter[str] = Counter()
        self._own_ids: dict[str, set[str]] = {}

    def train(self) -> Sequence[Example]:
        """Training rows without the dev rows. Raises DataError when the data set is absent or broken."""
        return self._splits["train"]

    def dev(self) -> Sequence[Example]:
        """A tenth of the training side."""
        return self._splits["dev"]

    def test(self) -> Sequence[Example]:
        """Rows of the test file, or of the test side of the split."""
        return self._splits["test"]

    def score(self, example: Example, text: str) -> Score:
        """Score a response with the data set's scorer."""
        return self._reader.score(example, text)

    def identity(self) -> dict[str, Any]:
        """Hash over ids and content of all rows, the source's settings and the way of splitting; loads the rows."""
        content = {split: [asdict(example) for example in rows] for split, rows in self._splits.items()}
        text = json.dumps(content, sort_keys=True, ensure_ascii=False)
        return {
            "name": self.name,
            "version": self.version,
            "kind": self.source.kind,
            "data": hashlib.sha256(text.encode()).hexdigest(),
            "rows": {split: len(rows) for split, rows in self._splits.items()},
            "dropped": dict(sorted(self.dropped.items())),
            "split": self.options.split if "train" not in self.source.data.files else "files",
            "max_new_tokens": self.max_new_tokens,
            "chance": self.chance,
        }

    @cached_property
    def _splits(self) -> Splits:
        read = {split: self._read(split) for split in self.source.data.files}
        if "train" in read:
            side, test = read["train"], read["test"]
        else:
            side, test = self._split_one_file(read["test"])
        keep, dev = group_split([_group(example) for example in side], 1 - DEV_SHARE, "dev")
        splits = {"train": [side[i] for i in keep], "dev": [side[i] for i in dev], "test": test}
        self._refuse_shared_ids()
        for name in ("train", "test"):
            if not splits[name]:
                raise DataError(
                    f"the task {self.name} has no {name} rows",
                    f"dropped rows: {dict(self.dropped) or 'none'}",
                    "check that the file holds the kind of rows the task asks for",
                )
        return splits

    def _refuse_shared_ids(self) -> None:
        """Refuse files that share an id of their own: replay, caches and joint training tell rows by it."""
        for one, other in itertools.combinations(self._own_ids, 2):
            if shared := self._own_ids[one] & self._own_ids[other]:
                files = self.source.data.files
                raise DataError(
                    f"the task {self.name} has two rows with the id {min(shared)!r}",
                    f"{len(shared)} ids are in {files[one]} and in {files[other]}",
                    "give every row of the task an id of its own",
                )

    def _split_one_file(self, examples: list[Example]) -> tuple[list[Example], list[Example]]:
        if self.options.split == "paper":
            first, second = row_split(len(examples), TRAIN_SHARE)
        else:
            first, second = group_split([_group(example) for example in examples], TRAIN_SHARE, "test")
        return [examples[i] for i in first], [examples[i] for i in second]

    def _read(self, split: str) -> list[Example]:
        column_fields = {name: "list" for key, name in self.source.columns.items() if key == "choices"}
        column_fields |= {name: "str" for key, name in self.source.columns.items() if key != "choices"}
        fields = {**self._reader.fields, **column_fields, **self.source.data.fields}
        rows = load_rows(replace(self.source.data, fields=fields), split, self.options)
        self._own_ids[split] = {str(row["id"]) for row in rows if "id" in row}
        wanted = self._gold_ids()
        examples: dict[tuple[Any, ...], Example] = {}
        for row in rows:
            try:
                example = self._reader.read(self.name, row, self.source.system, self.source.columns)
            except DroppedRowError as error:
                self.dropped[str(error)] += 1
                continue
            key = tuple((message["role"], message["content"]) for message in example.messages)
            if key in examples:
                self.dropped["repeats an earlier row"] += 1
            elif wanted is not None and example.id not in wanted:
                self.dropped["not in the list of gold ids"] += 1
            else:
                examples[key] = example
        return list(examples.values())

    def _gold_ids(self) -> set[str] | None:
        path = self.options.gold_ids
        if path is None or not self.source.gold_filter:
            return None
        try:
            return set(path.read_text(encoding="utf-8").split())
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(f"the list of gold ids {path} cannot be read", str(error)) from error


class MixtureTask(Task):
    """Parts of several tasks as one: from each a quarter of the largest part's rows, or all where it has fewer."""

    def __init__(self, name: str, parts: Sequence[HubTask]) -> None:
        """Join tasks.

        Args:
            name: Name of the mixture; its examples carry it, their ids begin with the part's name.
            parts: The tasks.
        """
        self.name, self.parts = name, tuple(parts)
        self.chance = sum(part.chance for part in parts) / len(parts)
        self.max_new_tokens = max(part.max_new_tokens for part in parts)
        self._by_name = {part.name: part for part in parts}

    def train(self) -> Sequence[Example]:
        """A quarter of each part's training rows."""
        return self._mixed([part.train() for part in self.parts])

    def dev(self) -> Sequence[Example]:
        """A quarter of each part's dev rows."""
        return self._mixed([part.dev() for part in self.parts])

    def test(self) -> Sequence[Example]:
        """A quarter of each part's test rows."""
        return self._mixed([part.test() for part in self.parts])

    def score(self, example: Example, text: str) -> Score:
        """Score with the scorer of the part that the example is from."""
        return self._by_name[str(example.meta["part"])].score(example, text)

    def identity(self) -> dict[str, Any]:
        """Identities of the parts."""
        parts = [part.identity() for part in self.parts]
        return {"name": self.name, "version": self.version, "parts": parts}

    def _mixed(self, parts: Sequence[Sequence[Example]]) -> list[Example]:
        quota = max(1, max(len(rows) for rows in parts) // len(parts))
        return [
            replace(example, task=self.name, id=f"{part.name}/{example.id}", meta={**example.meta, "part": part.name})
            for part, rows in zip(self.parts, parts, strict=True)
            for example in _first_by_hash(rows, quota)
        ]


def _first_by_hash(rows: Sequence[Example], count: int) -> list[Example]:
    order = sorted(range(len(rows)), key=lambda index: hashlib.sha256(f"mixture:{rows[index].id}".encode()).digest())
    chosen = set(order[:count])
    return [example for index, example in enumerate(rows) if index in chosen]


def _group(example: Example) -> str:
    return normalised(str(example.meta["question"]))
