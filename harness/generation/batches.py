"""Finished batches of an evaluation or a data generation, kept until their stage counts.

Batches are planned before the first forward pass, as a pure function of what is asked and the batch size. A process
that is started again makes the same plan and finds here what an earlier one had computed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cl_bench.harness.files import append_line, content_hash, cut_tail


class BatchLedger:
    """One file of JSON lines: the key of a batch, its rows, and a hash of both.

    It is a convenience and never a source: a line that was cut off or changed is a miss, and the batch is computed.
    """

    def __init__(self, path: Path) -> None:
        """Use a file, which is made by the first batch kept; nothing is read before the first look-up."""
        self._path = path
        self._places: dict[str, int] | None = None

    def of(self, **identity: Any) -> KeptBatches:
        """The batches of one model.

        Args:
            identity: Everything beside the batch that decides its rows: the model's weights and tokenizer, the numeric
                format, the implementation that computes.
        """
        return KeptBatches(self, content_hash(identity))

    def get(self, key: str) -> list[Any] | None:
        """Rows of a batch, or None."""
        place = self._known().get(key)
        if place is None:
            return None
        with self._path.open("rb") as stream:
            stream.seek(place)
            entry = _entry(stream.readline())
        return entry["rows"] if entry is not None and entry["key"] == key else None

    def put(self, key: str, rows: list[Any]) -> None:
        """Keep a batch."""
        known = self._known()
        known[key] = append_line(self._path, {"key": key, "rows": rows, "hash": content_hash([key, rows])})

    def _known(self) -> dict[str, int]:
        if self._places is None:
            self._places = {}
            cut_tail(self._path)
            place = 0
            for line in self._path.open("rb") if self._path.is_file() else ():
                if (entry := _entry(line)) is not None:
                    self._places[entry["key"]] = place
                place += len(line)
        return self._places


class KeptBatches:
    """The batches of one model in a ledger."""

    def __init__(self, ledger: BatchLedger, identity: str) -> None:
        """Use ``BatchLedger.of``."""
        self._ledger, self._identity = ledger, identity

    def get(self, kind: str, asked: Any) -> list[Any] | None:
        """Rows of a batch, or None where it was not computed yet.

        Args:
            kind: What is computed.
            asked: All that the batch holds, as JSON values.
        """
        return self._ledger.get(self._key(kind, asked))

    def put(self, kind: str, asked: Any, rows: list[Any]) -> None:
        """Keep a computed batch: JSON values."""
        self._ledger.put(self._key(kind, asked), rows)

    def _key(self, kind: str, asked: Any) -> str:
        return content_hash([self._identity, kind, asked])


def _entry(line: bytes) -> Mapping[str, Any] | None:
    """A line's content, or None where it is not whole."""
    try:
        entry = json.loads(line)
        return entry if entry["hash"] == content_hash([entry["key"], entry["rows"]]) else None
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
