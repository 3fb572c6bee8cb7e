"""The cache of finished work: evaluated cells and an aligner's rewrites, found by the content of their inputs."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cl_bench.harness.errors import StoreError
from cl_bench.harness.files import canonical_json, content_hash, plain, write_text
from cl_bench.harness.sizes import room_left
from cl_bench.tasks.base import Example

CACHE_VERSION = 3
"""Part of every key; raised when what is stored, or how it is computed, changes."""


def cache_root() -> Path:
    """Folder of the cache: ``CL_BENCH_CACHE``, else ``cl-bench`` in the user's cache folder."""
    named = os.environ.get("CL_BENCH_CACHE")
    if named:
        return Path(named).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "cl-bench"


def rows_hash(examples: Iterable[Example]) -> str:
    """Hash of rows in order: ids and everything else in them."""
    return content_hash(list(examples))


@dataclass(frozen=True, slots=True)
class CacheKey:
    """Everything that decides a cached result. Every field enters the digest; none has a default."""

    def digest(self) -> str:
        """SHA-256 (hex) of the key's type, the cache's version and all fields."""
        return content_hash(self.as_dict())

    def as_dict(self) -> dict[str, Any]:
        """The key as JSON values, with its type and the cache's version."""
        return {"type": type(self).__name__, "cache_version": CACHE_VERSION, **plain(self)}


@dataclass(frozen=True, slots=True)
class EvaluationKey(CacheKey):
    """Key of one evaluated cell.

    Attributes:
        weights: Hash of the bytes of all weights, adapters included.
        tokenizer: Hash of the tokenizer's files.
        task: Name of the task and split, for example ``chemistry/test``.
        task_version: Version of task and scorer.
        rows_hash: Hash of ids and content of the rows (``rows_hash``).
        template: The chat template, or its hash.
        system_prompt: System prompt, or None.
        shots: Worked examples in the prompt.
        generation: Generation settings (``max_new_tokens``, ``temperature``, ``stop``).
        dtype: Numeric format of the forward passes.
        backend: Implementation that decodes, for example ``local``.
        backend_version: Versions of the libraries that compute.
        batch_plan: What decides which rows are computed together.
    """

    weights: str
    tokenizer: str
    task: str
    task_version: str
    rows_hash: str
    template: str
    system_prompt: str | None
    shots: int
    generation: Mapping[str, Any]
    dtype: str
    backend: str
    backend_version: str
    batch_plan: Mapping[str, Any]

    def __post_init__(self) -> None:
        """Refuse empty identities."""
        require_identities(self, ("weights", "tokenizer", "task", "task_version", "rows_hash", "template"))


@dataclass(frozen=True, slots=True)
class RewriteKey(CacheKey):
    """Key of an aligner's rewrites of one stage.

    Attributes:
        aligner: Content hash of the aligner (weights, configuration, tokenizer).
        template: The conditioning template.
        rows_hash: Hash of ids and content of the stage's rows, demonstrations included.
        scorer: Identity of the scorers that accept or reject.
        acceptance: Everything else that decides what is accepted (leak phrases, candidates, length limit).
        generation: Generation settings.
        dtype: Numeric format of the forward passes.
        backend: Implementation that decodes.
        backend_version: Versions of the libraries that compute.
        batch_plan: What decides which rows are computed together.
        seed: Seed of the run.
        stage: Row name of the stage (row seeds depend on it).
    """

    aligner: str
    template: str
    rows_hash: str
    scorer: str
    acceptance: Mapping[str, Any]
    generation: Mapping[str, Any]
    dtype: str
    backend: str
    backend_version: str
    batch_plan: Mapping[str, Any]
    seed: int
    stage: str

    def __post_init__(self) -> None:
        """Refuse empty identities."""
        require_identities(self, ("aligner", "template", "rows_hash", "scorer"))


def require_identities(key: CacheKey, names: Sequence[str]) -> None:
    """Refuse a key whose named identities are empty: it would match another model's results. Raises ``ValueError``."""
    empty = [name for name in names if not getattr(key, name)]
    if empty:
        raise ValueError(f"{type(key).__name__}: {', '.join(empty)} must not be empty")


class Cache:
    """Content-addressed files below one folder.

    An entry is one file: a header line with the key and the payload's hash, then the payload's lines. Writers rename a
    finished file into place, so any number may write at once; an entry whose bytes do not match its header is a miss.
    """

    def __init__(self, root: Path | None = None) -> None:
        """Use ``root``, or ``cache_root()`` where None. Nothing is created before the first write."""
        self.root = root if root is not None else cache_root()

    def get_json(self, kind: str, key: CacheKey) -> Any | None:
        """The stored value, or None."""
        rows = self.get_jsonl(kind, key)
        return rows[0] if rows is not None and len(rows) == 1 else None

    def put_json(self, kind: str, key: CacheKey, value: Any) -> None:
        """Store one JSON value (not None, which means a miss)."""
        if value is None:
            raise ValueError("None cannot be told from a miss")
        self.put_jsonl(kind, key, [value])

    def get_jsonl(self, kind: str, key: CacheKey) -> list[Any] | None:
        """The stored rows, or None."""
        path = self.path(kind, key)
        try:
            header_line, _, body = path.read_text(encoding="utf-8").partition("\n")
            header = json.loads(header_line)
            if header["sha256"] != _text_hash(body) or header["key"] != key.as_dict():
                return None
            rows = [json.loads(line) for line in body.splitlines()]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None
        with contextlib.suppress(OSError):  # a cache that is read-only, or pruned by another process
            os.utime(path)  # pruning removes what was not used for longest
        return rows

    def put_jsonl(self, kind: str, key: CacheKey, rows: Iterable[Any]) -> None:
        """Store rows of JSON values. Raises ``StoreError`` where the folder cannot be written."""
        body = "".join(json.dumps(plain(row), allow_nan=False) + "\n" for row in rows)
        header = canonical_json({"key": key.as_dict(), "sha256": _text_hash(body)})
        # Not flushed: an entry that a power cut emptied does not match its hash, and is a miss.
        try:
            write_text(self.path(kind, key), f"{header}\n{body}", durable=False)
        except OSError as error:
            raise StoreError(
                f"the cache {self.root} cannot be written",
                "; ".join(filter(None, (str(error), room_left(self.root)))),
                "free some space, or name another folder in CL_BENCH_CACHE; resume goes on from what is finished",
            ) from error

    def path(self, kind: str, key: CacheKey) -> Path:
        """Where an entry is, or would be."""
        digest = key.digest()
        return self.root / kind / digest[:2] / f"{digest}.jsonl"


def key_fields(kind: type[CacheKey]) -> tuple[str, ...]:
    """Names of a key's fields, all of which enter its digest."""
    return tuple(field.name for field in dataclasses.fields(kind))


def _text_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
