"""What lies in the cache, and taking the oldest of it away. Whatever is removed is computed again when it is needed."""

from __future__ import annotations

import math
import re
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cl_bench.harness.errors import StoreError, UsageError
from cl_bench.harness.files import is_temporary

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_DAY = 86400.0
_HEX = re.compile(r"[0-9a-f]{2}")
_ENTRY = re.compile(r"[0-9a-f]{64}\.jsonl")
_ABANDONED = 3600.0
"""Seconds after which a temporary file has no living writer: an entry is written in one go."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of the cache.

    Attributes:
        path: Where it is.
        size: Bytes.
        used: When it was last written or read as a hit, in seconds since the epoch.
        temporary: It is the left-over of a write that was cut off, or a write that goes on.
    """

    path: Path
    size: int
    used: float
    temporary: bool


@dataclass(frozen=True, slots=True)
class Kind:
    """One folder of the cache.

    Attributes:
        name: The folder's name: what is cached in it.
        entries: Files.
        size: Bytes of all of them.
        computed: Its entries are results under the key of their inputs, which may be removed at any time.
    """

    name: str
    entries: int
    size: int
    computed: bool


def kinds(root: Path) -> list[Kind]:
    """The folders of the cache with their sizes, by name; none where the cache does not exist.

    Another process may write and prune at the same time: what is gone before it was looked at is not counted.
    """
    folders = sorted(path for path in root.iterdir() if path.is_dir()) if root.is_dir() else []
    return [_kind(folder) for folder in folders]


def _kind(folder: Path) -> Kind:
    sizes = [size for _, size, _ in _sized(folder)]
    return Kind(folder.name, len(sizes), sum(sizes), _is_computed(folder))


def _is_computed(folder: Path) -> bool:
    """Whether a folder holds content-addressed entries, or nothing; a stray file among them changes nothing."""
    inner = list(folder.iterdir())
    plain = all(_HEX.fullmatch(path.name) and path.is_dir() for path in inner)
    return plain or any(_is_entry(path.relative_to(folder)) for path in folder.glob("[0-9a-f][0-9a-f]/*.jsonl"))


def _is_entry(relative: Path) -> bool:
    """Whether a path below a kind is that of an entry: two hex digits, then a file named by its digest."""
    parts = relative.parts
    return len(parts) == 2 and bool(_ENTRY.fullmatch(parts[1])) and parts[1].startswith(parts[0])


def _sized(folder: Path) -> Iterator[tuple[Path, int, float]]:
    """Files below a folder with their bytes and when they were used."""
    for path in folder.rglob("*"):
        try:
            status = path.stat()
        except OSError:
            continue  # another process has pruned it, or renamed it into place; or a link leads nowhere
        if stat.S_ISREG(status.st_mode):
            yield path, status.st_size, status.st_mtime


def entries(root: Path, wanted: Sequence[str] | None = None) -> list[Entry]:
    """The computed entries of the cache, least recently used first.

    Args:
        root: The cache's folder.
        wanted: Kinds to look through; None for all that are computed.

    Raises:
        UsageError: A wanted kind does not exist, or holds what cannot be computed again (fetched models, data).
    """
    found = {kind.name: kind for kind in kinds(root)}
    for name in wanted or ():
        if name not in found:
            known = ", ".join(kind.name for kind in found.values() if kind.computed) or "nothing"
            raise UsageError(f"the cache {root} has no kind {name!r}", f"it has {known}", "see cl-bench cache list")
        if not found[name].computed:
            raise UsageError(
                f"{name} is not pruned", "its files were fetched, not computed", f"remove {root / name} by hand"
            )
    chosen = [name for name, kind in found.items() if kind.computed and (wanted is None or name in wanted)]
    files = [entry for name in chosen for entry in _files(root / name)]
    return sorted(files, key=lambda entry: (entry.used, entry.path.name))


def _files(folder: Path) -> Iterator[Entry]:
    """Entries and left-overs of their writes; a file that is neither belongs to somebody else."""
    for path, size, used in _sized(folder):
        relative = path.relative_to(folder)
        temporary = is_temporary(relative)
        if _is_entry(relative) or (temporary and len(relative.parts) == 2 and _HEX.fullmatch(relative.parts[0])):
            yield Entry(path, size, used, temporary)


def prunable(
    found: Sequence[Entry], older_than: float | None = None, max_size: int | None = None, now: float | None = None
) -> list[Entry]:
    """Entries to remove: left-overs of cut-off writes, those unused for longer, and the oldest beyond a size.

    Args:
        found: Entries, least recently used first (``entries``).
        older_than: Seconds since an entry was last used; None keeps any age.
        max_size: Bytes that may stay; None keeps any size.
        now: The time, in seconds since the epoch; None for the clock's.
    """
    moment = time.time() if now is None else now
    chosen = []
    kept = sum(entry.size for entry in found if not entry.temporary)
    for entry in found:
        age = moment - entry.used
        if entry.temporary:
            if age > _ABANDONED:
                chosen.append(entry)
        elif (older_than is not None and age > older_than) or (max_size is not None and kept > max_size):
            chosen.append(entry)
            kept -= entry.size
    return chosen


def remove(chosen: Iterable[Entry]) -> int:
    """Remove entries and give back how many bytes that freed; what another process removed first is no error.

    A process that reads an entry in the same moment has it whole or has a miss.

    Raises:
        StoreError: A file cannot be removed.
    """
    freed = 0
    for entry in chosen:
        try:
            entry.path.unlink()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise StoreError(f"{entry.path} cannot be removed", str(error), "check the folder's permissions") from error
        freed += entry.size
    return freed


def parse_size(text: str) -> int:
    """Bytes of ``500MB`` or ``2GB`` (decimal units, any case). Raises ``UsageError``."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?b?)\s*", text, re.IGNORECASE)
    unit = match[2].upper() if match else ""
    unit = f"{unit}B" if unit in ("K", "M", "G", "T") else unit
    size = float(match[1]) * _UNITS[unit] if match else math.inf
    if not math.isfinite(size):
        raise UsageError(f"{text!r:.40} is not a size", hint="for example 500MB or 2GB")
    return int(size)


def parse_age(text: str) -> float:
    """Seconds of ``30d``, ``12h`` or ``0d``. Raises ``UsageError``."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([dh])\s*", text, re.IGNORECASE)
    if match is None:
        raise UsageError(f"{text!r} is not an age", hint="for example 30d or 12h")
    return float(match[1]) * (_DAY if match[2].lower() == "d" else _DAY / 24)
