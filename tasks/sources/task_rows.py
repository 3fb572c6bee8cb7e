"""Reads the rows of a task on public data: which edition is there, what is dropped, and the fixed splits."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cl_bench.harness.errors import DataError
from cl_bench.tasks.base import Example
from cl_bench.tasks.sources.base import DataOptions
from cl_bench.tasks.sources.editions import Edition, check_counts, edition_rows, find_edition
from cl_bench.tasks.sources.option_order import reorder
from cl_bench.tasks.sources.readers import READERS
from cl_bench.tasks.sources.reading import DroppedRowError, OtherKindError, Reading, Row
from cl_bench.tasks.sources.repetitions import without_repetitions
from cl_bench.tasks.sources.splits import DEV_SHARE, TRAIN_SHARE, group_split, normalised, row_split

NOT_GOLD = "not in the list of gold ids"


@dataclass(frozen=True, slots=True)
class HubSource:
    """Where a task's rows are and how they are read.

    Attributes:
        kind: Name of the reader.
        editions: Forms of the data, the preferred one first. One with the splits ``train`` and ``test`` is taken as it
            is; one with ``test`` alone is split.
        system: System turn before every question, or None.
        chance: Accuracy of guessing, as a fraction.
        max_new_tokens: Longest response that evaluation waits for, in tokens.
        columns: Names of the columns, for readers that need them.
        gold_filter: Whether ``DataOptions.gold_ids`` restricts this data set.
    """

    kind: str
    editions: tuple[Edition, ...]
    system: str | None = None
    chance: float = 0.0
    max_new_tokens: int = 256
    columns: Mapping[str, str] = field(default_factory=dict)
    gold_filter: bool = False


@dataclass(frozen=True, slots=True)
class TaskRows:
    """The rows of a task.

    Attributes:
        edition: The form of the data that was found.
        splits: Rows of train, dev and test.
        repetitions: Rows left out of the splits because another row asks the same.
        dropped: Rows left out, by reason.
        remarks: What a user should know about the rows.
    """

    edition: Edition
    splits: Mapping[str, list[Example]]
    repetitions: list[Example]
    dropped: Mapping[str, int]
    remarks: tuple[str, ...]


def read_task_rows(name: str, source: HubSource, options: DataOptions) -> TaskRows:
    """Read and split a task's rows.

    Raises:
        AbsentDataError: The data is not there.
        DataError: It is broken, has another number of rows than the data set, or leaves train or test empty.
    """
    edition = find_edition(name, source.editions, options)
    reader = _Reader(name, source, options)
    read = {split: reader.read(edition, split) for split in edition.splits}
    counted = [f"{count} x {what}" for what, count in sorted(reader.remarks.items())]
    remarks = [edition.remark, *check_counts(name, edition, reader.of_its_kind, options), *counted]
    _refuse_shared_ids(name, edition, reader.own_ids)
    if "train" in read:
        side, test = read["train"], read["test"]
    else:
        side, test = _split_one_file(read["test"], options)
    keep, dev = group_split([_group(example) for example in side], 1 - DEV_SHARE, "dev")
    splits = {"train": [side[i] for i in keep], "dev": [side[i] for i in dev], "test": test}
    for split in ("train", "test"):
        if not splits[split]:
            raise DataError(
                f"the task {name} has no {split} rows",
                f"dropped rows: {dict(reader.dropped) or 'none'}",
                "check that the file holds the kind of rows the task asks for",
            )
    return TaskRows(edition, splits, reader.repetitions, reader.dropped, tuple(filter(None, remarks)))


class _Reader:
    """Reads the splits of one task and counts what it meets."""

    def __init__(self, name: str, source: HubSource, options: DataOptions) -> None:
        self.options, self.source = options, source
        self.dropped: Counter[str] = Counter()
        self.remarks: Counter[str] = Counter()
        self.of_its_kind: dict[str, int] = {}
        self.own_ids: dict[str, set[str]] = {}
        self.repetitions: list[Example] = []
        self._kind = READERS[source.kind]
        self._reading = Reading(name, source.system, source.columns, self.remarks)
        self._gold_ids = _gold_ids(source, options)

    def read(self, edition: Edition, split: str) -> list[Example]:
        """Examples of a split, each question and its options once, in the order of options that was asked for."""
        types = {"choices": "list", "demonstration": "str or list"}
        columns = {name: types.get(key, "str") for key, name in self.source.columns.items()}
        rows = edition_rows(edition, split, self.options, {**self._kind.fields, **columns})
        self.own_ids[split] = {str(row["id"]) for row in rows if "id" in row}
        kept, aside = without_repetitions(self._readable(split, rows))
        self.dropped.update(reason for _, reason in aside)
        self.repetitions += [self._ordered(example, Counter()) for example, _ in aside]
        return [self._ordered(example, self.remarks) for example in kept]

    def _readable(self, split: str, rows: Sequence[Row]) -> list[Example]:
        """Examples of the rows that the reader takes, in their published form."""
        examples: list[Example] = []
        others = 0
        for row in rows:
            try:
                example = self._kind.read(row, self._reading)
                if self._gold_ids is not None and example.id not in self._gold_ids:
                    raise DroppedRowError(NOT_GOLD)
                examples.append(example)
            except DroppedRowError as error:
                self.dropped[str(error)] += 1
                others += isinstance(error, OtherKindError)
        self.of_its_kind[split] = len(rows) - others
        return examples

    def _ordered(self, example: Example, remarks: Counter[str]) -> Example:
        if self.options.option_order == "as-published" or not example.choices:
            return example
        return reorder(example, remarks)


def _gold_ids(source: HubSource, options: DataOptions) -> set[str] | None:
    path = options.gold_ids
    if path is None or not source.gold_filter:
        return None
    try:
        return set(path.read_text(encoding="utf-8").split())
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"the list of gold ids {path} cannot be read", str(error)) from error


def _refuse_shared_ids(name: str, edition: Edition, own_ids: Mapping[str, set[str]]) -> None:
    """Refuse files that share an id of their own: replay, caches and joint training tell rows by it."""
    for one, other in itertools.combinations(own_ids, 2):
        if shared := own_ids[one] & own_ids[other]:
            raise DataError(
                f"the task {name} has two rows with the id {min(shared)!r}",
                f"{len(shared)} ids are in {edition.files_of(one)} and in {edition.files_of(other)}",
                "give every row of the task an id of its own",
            )


def _split_one_file(examples: list[Example], options: DataOptions) -> tuple[list[Example], list[Example]]:
    if options.split == "paper":
        first, second = row_split(len(examples), TRAIN_SHARE)
    else:
        first, second = group_split([_group(example) for example in examples], TRAIN_SHARE, "test")
    return [examples[i] for i in first], [examples[i] for i in second]


def _group(example: Example) -> str:
    return normalised(str(example.meta["question"]))
