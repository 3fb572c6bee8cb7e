"""Reads the rows of a task on public data: which edition is there, what is dropped, and the fixed splits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from cl_bench.harness.errors import DataError
from cl_bench.tasks.base import Example
from cl_bench.tasks.sources.base import DataOptions
from cl_bench.tasks.sources.editions import Edition, check_counts, edition_rows, find_edition
from cl_bench.tasks.sources.gold_ids import read_gold_ids, unknown_remark
from cl_bench.tasks.sources.option_order import reorder
from cl_bench.tasks.sources.readers import CONFIG_CHECKS, READERS
from cl_bench.tasks.sources.reading import DroppedRowError, OtherKindError, Reading, Row
from cl_bench.tasks.sources.repetitions import without_repetitions
from cl_bench.tasks.sources.shared_ids import refuse_shared_ids
from cl_bench.tasks.sources.splits import DEV_SHARE, TRAIN_SHARE, group_split, normalised, row_split

NOT_GOLD = "not in the list of gold ids"
IN_TEST_FILE = "is in the test file too"


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
        unreadable: Why a row was not read, by id, of those rows that have an id of their own.
        remarks: What a user should know about the rows.
    """

    edition: Edition
    splits: Mapping[str, list[Example]]
    repetitions: list[Example]
    dropped: Mapping[str, int]
    unreadable: Mapping[str, str]
    remarks: tuple[str, ...]


def read_task_rows(name: str, source: HubSource, options: DataOptions) -> TaskRows:
    """Read and split a task's rows.

    With ``DataOptions.split`` "paper", data sets of one file are split with all rows that can be read, those that ask
    the same again included; otherwise each question and its options come once.

    Raises:
        AbsentDataError: The data is not there.
        DataError: It is broken, has another number of rows than the data set, has rows that differ and share an id, or
            leaves a split empty; or no listed gold id is one of its rows.
    """
    edition = find_edition(name, source.editions, options)
    reader = _Reader(name, source, options, edition)
    published = {split: reader.read(split) for split in sorted(edition.splits)}
    refuse_shared_ids(name, edition, published, READERS[source.kind])
    remarks = [edition.remark, *check_counts(name, edition, reader.of_its_kind, options), reader.gold_remark(published)]
    if "train" in edition.splits:
        rows = {split: reader.once(examples) for split, examples in published.items()}
        side, test = reader.not_in_test(rows["train"], rows["test"]), rows["test"]
    elif options.split == "paper":
        examples = reader.numbered(published["test"])
        side, test = _parted(examples, row_split(len(examples), TRAIN_SHARE))
        remarks.append(_both_sides(side, test))
    else:
        examples = reader.once(published["test"])
        side, test = _parted(examples, group_split([_group(example) for example in examples], TRAIN_SHARE, "test"))
    train, dev = _parted(side, group_split([_group(example) for example in side], 1 - DEV_SHARE, "dev"))
    _refuse_empty(name, {"train": train, "dev": dev, "test": test}, reader.dropped)
    splits = {"train": reader.ordered(train), "dev": reader.ordered(dev), "test": reader.ordered(test)}
    remarks += [f"{count} x {what}" for what, count in sorted(reader.remarks.items())]
    said = tuple(filter(None, remarks))
    return TaskRows(edition, splits, reader.set_aside(), reader.dropped, reader.unreadable, said)


class _Reader:
    """Reads the splits of one task and counts what it meets."""

    def __init__(self, name: str, source: HubSource, options: DataOptions, edition: Edition) -> None:
        self.options, self.source, self.edition = options, source, edition
        self.dropped: Counter[str] = Counter()
        self.unreadable: dict[str, str] = {}
        self.remarks: Counter[str] = Counter()
        self.of_its_kind: dict[str, int] = {}
        self.repetitions: list[Example] = []
        self._kind = READERS[source.kind]
        self._reading = Reading(name, source.system, source.columns)
        self._notes: dict[str, list[Counter[str]]] = {}
        self._gold_ids = read_gold_ids(options.gold_ids) if options.gold_ids and source.gold_filter else None

    def read(self, split: str) -> list[Example]:
        """Examples of the rows that the reader takes, in their published form."""
        types = {"choices": "list", "demonstration": "str or list"}
        columns = {name: types.get(key, "str") for key, name in self.source.columns.items()}
        rows = edition_rows(self.edition, split, self.options, {**self._kind.fields, **columns})
        configs = [part.config for part in self.edition.parts if split in part.files]
        check = CONFIG_CHECKS.get(self.source.kind)
        examples: list[Example] = []
        others = 0
        for row in rows:
            self._reading.remarks.clear()
            try:
                if check is not None and None not in configs:
                    check(row, [str(config) for config in configs])
                examples.append(self._example(row))
            except DroppedRowError as error:
                self.dropped[str(error)] += 1
                if "id" in row:
                    self.unreadable[str(row["id"])] = str(error)
                others += isinstance(error, OtherKindError)
        self.of_its_kind[split] = len(rows) - others
        return examples

    def _example(self, row: Row) -> Example:
        example = self._kind.read(row, self._reading)
        if self._gold_ids is not None and example.id not in self._gold_ids:
            raise DroppedRowError(NOT_GOLD)
        self._notes.setdefault(example.id, []).append(Counter(self._reading.remarks))
        return example

    def gold_remark(self, published: Mapping[str, Sequence[Example]]) -> str:
        """How many listed ids are no row, or nothing; raises DataError where none is one."""
        if self._gold_ids is None or self.options.gold_ids is None:
            return ""
        own = {example.id for examples in published.values() for example in examples} | set(self.unreadable)
        return unknown_remark(self._reading.task, self._gold_ids, own, self.options.gold_ids)

    def once(self, examples: Sequence[Example]) -> list[Example]:
        """Each question and its options once."""
        kept, aside = without_repetitions(examples, self._kind)
        self.dropped.update(reason for _, reason in aside)
        self.repetitions += [example for example, _ in aside]
        return kept

    def not_in_test(self, training: Sequence[Example], test: Sequence[Example]) -> list[Example]:
        """Training rows whose id no test row has."""
        ids = {example.id for example in test}
        kept = [example for example in training if example.id not in ids]
        if shared := len(training) - len(kept):
            self.dropped[IN_TEST_FILE] += shared
            self.remarks[f"training row left out: it {IN_TEST_FILE}"] += shared
        return kept

    def numbered(self, examples: Sequence[Example]) -> list[Example]:
        """The rows, each with an id of its own: further rows of an id have a number after it."""
        seen: Counter[str] = Counter()
        found: list[Example] = []
        for example in examples:
            seen[example.id] += 1
            if (number := seen[example.id]) > 1:
                notes = self._notes[example.id][number - 1]
                example = replace(example, id=f"{example.id}#{number}")
                self._notes[example.id] = [notes]
            found.append(example)
        return found

    def ordered(self, examples: Iterable[Example]) -> list[Example]:
        """Examples of a split in the order of options that was asked for; what there is to say of them is counted."""
        found: list[Example] = []
        for example in examples:
            self.remarks.update(self._notes[example.id][0])
            found.append(self._moved(example, self.remarks))
        return found

    def set_aside(self) -> list[Example]:
        """Rows that ask the same again, in that order too."""
        return [self._moved(example, Counter()) for example in self.repetitions]

    def _moved(self, example: Example, remarks: Counter[str]) -> Example:
        if self.options.option_order == "as-published" or not example.choices:
            return example
        return reorder(example, remarks)


def _refuse_empty(task: str, splits: Mapping[str, Sequence[Example]], dropped: Mapping[str, int]) -> None:
    """Refuse a split without rows; a few rows are enough for train and test and too few for dev."""
    hints = {"dev": "dev rows are a tenth of the training side, with whole questions: the task needs more rows"}
    usual = "check that the file holds the kind of rows the task asks for"
    for split, rows in splits.items():
        if not rows:
            why = f"dropped rows: {dict(dropped) or 'none'}"
            raise DataError(f"the task {task} has no {split} rows", why, hints.get(split, usual))


def _both_sides(one: Sequence[Example], other: Sequence[Example]) -> str:
    """What to say about a split whose sides may share questions."""
    shared = {_group(example) for example in one} & {_group(example) for example in other}
    return f"{len(shared):,} questions are on both sides of the paper's split, which is by rows"


def _parted(examples: Sequence[Example], sides: tuple[list[int], list[int]]) -> tuple[list[Example], list[Example]]:
    return [examples[i] for i in sides[0]], [examples[i] for i in sides[1]]


def _group(example: Example) -> str:
    return normalised(str(example.meta["question"]))
