"""Tasks on public data sets: rows through one loader, fixed splits, a reader a data set."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from importlib.metadata import version as version_of
from typing import Any

from cl_bench.tasks.base import Example, Score, Task
from cl_bench.tasks.sources.base import DataOptions
from cl_bench.tasks.sources.readers import READERS
from cl_bench.tasks.sources.task_rows import HubSource, TaskRows, read_task_rows


class HubTask(Task):
    """A task on a public data set. Rows are read and split on first use.

    Rows that the reader refuses, rows that repeat an earlier one and rows that contradict each other are in no split.
    Dev rows are a tenth of the training side and no part of ``train()``.
    """

    version = "3"
    """Raised when a scorer or reader gives other verdicts for the same rows."""

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
        self.stop, self.executes_code = self._reader.stop, self._reader.executes_code

    def train(self) -> Sequence[Example]:
        """Training rows without the dev rows. Raises DataError when the data set is absent or broken."""
        return self._rows.splits["train"]

    def dev(self) -> Sequence[Example]:
        """A tenth of the training side."""
        return self._rows.splits["dev"]

    def test(self) -> Sequence[Example]:
        """Rows of the test file, or of the test side of the split."""
        return self._rows.splits["test"]

    def score(self, example: Example, text: str) -> Score:
        """Score a response with the data set's scorer."""
        return self._reader.score(example, text)

    def scorable(self) -> Sequence[Example]:
        """Rows of all splits, and those that are in none because another row asks the same."""
        rows = {example.id: example for example in (*super().scorable(), *self._rows.repetitions)}
        return list(rows.values())

    @property
    def dropped(self) -> Mapping[str, int]:
        """Rows that are in no split, by reason; loads the rows."""
        return self._rows.dropped

    @property
    def left_out(self) -> Mapping[str, str]:
        """Why a row cannot be scored, by id; loads the rows."""
        return self._rows.unreadable

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a user should know about the rows; loads them."""
        return self._rows.remarks

    def identity(self) -> dict[str, Any]:
        """Hash over ids and content of all rows, settings, split, versions the scorer depends on; loads the rows."""
        rows = self._rows
        content = {split: [asdict(example) for example in examples] for split, examples in rows.splits.items()}
        text = json.dumps(content, sort_keys=True, ensure_ascii=False)
        identity = {
            "name": self.name,
            "version": self.version,
            "kind": self.source.kind,
            "data": hashlib.sha256(text.encode()).hexdigest(),
            "rows": {split: len(examples) for split, examples in rows.splits.items()},
            "test_set": {"name": rows.edition.title, "rows": len(rows.splits["test"])},
            "dropped": dict(sorted(rows.dropped.items())),
            "split": "files" if "train" in rows.edition.splits else self.options.split,
            "max_new_tokens": self.max_new_tokens,
            "chance": self.chance,
        }
        if self._reader.packages:
            identity["packages"] = {package: version_of(package) for package in self._reader.packages}
        if any(example.choices for example in self.test()):
            identity["option_order"] = self.options.option_order
        return identity

    @cached_property
    def _rows(self) -> TaskRows:
        return read_task_rows(self.name, self.source, self.options)
