"""Which form of a task's data is there, and its rows."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from cl_bench.harness.errors import DataError
from cl_bench.harness.jsonl import check_new_id
from cl_bench.tasks.sources.base import DataOptions
from cl_bench.tasks.sources.locate import AbsentDataError, DatasetSpec, load_rows, locate
from cl_bench.tasks.sources.prepared import prepared_root, read_record
from cl_bench.tasks.sources.presence import absence


@dataclass(frozen=True, slots=True)
class Edition:
    """One form in which the data of a task may be there.

    Attributes:
        parts: The data sets that hold its rows. Their splits together are ``train`` and ``test``, or ``test`` alone,
            which is then split. Configurations of one data set (the subjects of MATH) are a part each.
        name: What the test rows are called in reports; empty: the data set's path.
        expected_rows: Number of rows of the task's kind by split, in the whole data set.
        mismatch: The likely cause where the rows are not as many.
        remark: What a user should know where this edition is used.
        stand_in: Taken only where the rows are the user's own files, never where they come from the hub.
        joined: Splits whose rows are in several parts, whether or not all of them were found; ``find_edition`` says so.
    """

    parts: tuple[DatasetSpec, ...]
    name: str = ""
    expected_rows: Mapping[str, int] = field(default_factory=dict)
    mismatch: str = ""
    remark: str = ""
    stand_in: bool = False
    joined: frozenset[str] = frozenset()

    @property
    def splits(self) -> tuple[str, ...]:
        """Names of the splits, in the order of the parts."""
        return tuple(dict.fromkeys(split for part in self.parts for split in part.files))

    @property
    def title(self) -> str:
        """Name, or the path of the data set that holds the test rows."""
        return self.name or next(part.path for part in self.parts if "test" in part.files)

    def files_of(self, split: str) -> str:
        """Names of the split's flat files, for messages."""
        return " and ".join(dict.fromkeys(part.files[split] for part in self.parts if split in part.files))


def find_edition(task: str, editions: Sequence[Edition], options: DataOptions) -> Edition:
    """The first edition whose data is there; on the hub, the first.

    Of several configurations of a data set one is enough, because a sample may lack some; the parts that lack are left
    out.

    Args:
        task: The task's name, for messages.
        editions: At least one.
        options: Where to look.

    Raises:
        AbsentDataError: None of them is there; says what was looked for.
        DataError: What is there cannot be read as a data set.
    """
    errors: list[AbsentDataError] = []
    for edition in editions:
        present, error = _present_parts(edition, options)
        if error is None:
            counts = Counter(split for part in edition.parts for split in part.files)
            return replace(edition, parts=present, joined=frozenset(split for split in counts if counts[split] > 1))
        errors.append(error)
    if len(errors) == 1:
        raise errors[0]
    tried = [
        f"{edition.title}: {error.what} ({error.why or error.hint})"
        for edition, error in zip(editions, errors, strict=True)
    ]
    where = "on this machine" if options.data_root is None else f"in {options.data_root}"
    raise AbsentDataError(f"the data of the task {task} is not {where}", "; ".join(tried), errors[0].hint)


def _present_parts(edition: Edition, options: DataOptions) -> tuple[tuple[DatasetSpec, ...], AbsentDataError | None]:
    """The parts that are there; an error where a data set has none of its configurations."""
    present: list[DatasetSpec] = []
    for path, configurations in itertools.groupby(edition.parts, key=lambda part: part.path):
        found = [(part, absence(part, options)) for part in configurations]
        there = [part for part, error in found if error is None]
        if not there:
            return (), found[0][1]
        if edition.stand_in and any(comes_from_hub(part, options) for part in there):
            return (), AbsentDataError(f"{path} from the hub is not training data")
        present += there
    return tuple(present), None


def comes_from_hub(part: DatasetSpec, options: DataOptions) -> bool:
    """Whether a data set that is there is the hub's own: asked for now, or prepared from it."""
    located = locate(part, options)
    if not located.prepared:
        return located.kind == "hub"
    record = read_record(options.data_root or prepared_root())
    return any(one.key == (part.path, part.config) and one.origin == "hub" for one in record)


def edition_rows(edition: Edition, split: str, options: DataOptions, fields: Mapping[str, str]) -> list[dict[str, Any]]:
    """Rows of a split from all parts that hold it, checked.

    Args:
        edition: As ``find_edition`` returns it.
        split: One of its splits.
        options: Where to look.
        fields: Fields that every row must have, with their types' names.

    Raises:
        DataError: A row is broken, an id comes twice, or the hub did not deliver.
    """
    rows: list[dict[str, Any]] = []
    flat: set[str] = set()
    for part in edition.parts:
        if split not in part.files or part.files[split] in flat:
            continue
        if locate(part, options).kind == "files":
            flat.add(part.files[split])  # configurations share one flat file
        rows += load_rows(replace(part, fields={**fields, **part.fields}), split, options)
    if split in edition.joined:
        seen: dict[Any, int] = {}
        for number, row in enumerate(rows):
            check_new_id(row, number, seen, f"{edition.files_of(split)}, row")
        # One order, whether rows lie apart by configuration or in one file.
        rows.sort(key=lambda row: (str(row.get("id", "")), json.dumps(row, sort_keys=True, default=str)))
    return rows


def check_counts(task: str, edition: Edition, counts: Mapping[str, int], options: DataOptions) -> list[str]:
    """Compare the rows of the task's kind with what the whole data set has.

    From the hub the numbers must be equal. A local copy may be a sample: fewer rows are worth a remark, more rows are
    not this data set.

    Args:
        task: The task's name, for messages.
        edition: The edition that was read.
        counts: Rows of the task's kind by split.
        options: Where they come from.

    Returns:
        Remarks.

    Raises:
        DataError: The rows are not those of the data set.
    """
    remarks: list[str] = []
    for split, expected in edition.expected_rows.items():
        found, rows = counts[split], f"{split} rows" if len(edition.splits) > 1 else "rows of its kind"
        whole = any(comes_from_hub(part, options) for part in edition.parts if split in part.files)
        if found > expected or (whole and found < expected):
            revisions = dict.fromkeys(part.revision for part in edition.parts if part.revision)
            hint = f"load the pinned revision {', '.join(map(str, revisions))}" if revisions else ""
            what = f"the task {task} has {found:,} {rows} instead of {expected:,} ({edition.title})"
            raise DataError(what, edition.mismatch, hint)
        if found < expected:
            remarks.append(f"{found:,} of the {expected:,} {rows} are there ({edition.title})")
    return remarks
