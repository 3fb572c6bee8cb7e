"""The ledger of generated data: every row that a stage sampled and used, in order."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from cl_bench.methods.training.trained import TrainedRow


class Ledger:
    """Rows of JSON values in the order they were generated; part of every checkpoint within a stage.

    Attributes:
        trained: A sample of the rows trained on, filled in when training ends (``methods.training.trained``). It is in
            no checkpoint, because it follows from what is.
    """

    def __init__(self, rows: Iterable[Mapping[str, Any]] = ()) -> None:
        """Start with given rows."""
        self._rows = [_canonical(row) for row in rows]
        self.trained: tuple[TrainedRow, ...] = ()

    def __len__(self) -> int:
        """Number of rows."""
        return len(self._rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The rows in order."""
        return iter(self._rows)

    def append(self, row: Mapping[str, Any]) -> None:
        """Add one row."""
        self._rows.append(_canonical(row))

    def replace(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Take over the rows of a checkpoint."""
        self._rows = [_canonical(row) for row in rows]

    def digest(self) -> str:
        """SHA-256 of the rows."""
        return hashlib.sha256("\n".join(_line(row) for row in self._rows).encode()).hexdigest()

    def write(self, path: Path) -> None:
        """Write as JSONL."""
        path.write_text("".join(_line(row) + "\n" for row in self._rows), encoding="utf-8")

    @staticmethod
    def read(path: Path) -> list[dict[str, Any]]:
        """Rows of a file written by ``write``."""
        # Not ``splitlines``: sampled text may hold other line separators, which JSON leaves as they are.
        return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def _canonical(row: Mapping[str, Any]) -> dict[str, Any]:
    # Rows that went through a checkpoint come back with sorted keys; all others must look the same.
    return dict(sorted(row.items()))


def _line(row: Mapping[str, Any]) -> str:
    return json.dumps(row, sort_keys=True, ensure_ascii=False)
