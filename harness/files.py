"""Files and hashes: canonical JSON, SHA-256, and writes that a reader never sees half done."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import hashlib
import json
import math
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from pathlib import Path
from typing import Any

from cl_bench.harness.errors import StoreError

_TEMPORARY = ".tmp-"


def plain(value: Any) -> Any:
    """The value as plain JSON values.

    Dataclasses and pydantic models become dicts, tuples and sets lists (sets sorted), paths and enums strings. NaN
    and infinities become None: JSON has neither, and a number that does not exist is a null, never a zero.

    Raises:
        TypeError: A value has no JSON form.
    """
    if isinstance(value, Enum):
        return plain(value.value)
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return _plain_object(value)


def _plain_object(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, set | frozenset):
        return sorted(plain(item) for item in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    for method in ("model_dump", "item"):  # pydantic models; numpy and torch scalars
        if hasattr(value, method):
            return plain(getattr(value, method)())
    raise TypeError(f"no JSON form for {type(value).__name__}")


def canonical_json(value: Any) -> str:
    """One text per content: sorted keys, no spaces, Unicode as it is."""
    return json.dumps(plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def content_hash(value: Any) -> str:
    """SHA-256 (hex) of the value's canonical JSON."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def file_hash(path: Path) -> str:
    """SHA-256 (hex) of a file's bytes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def hash_tree(folder: Path, skip: Iterable[str] = ()) -> dict[str, str]:
    """Hashes of all files below a folder, by path relative to it, sorted; top-level names in ``skip`` left out."""
    left_out = set(skip)
    found: dict[str, str] = {}
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        if path.is_file() and relative.parts[0] not in left_out and not is_temporary(relative):
            found[relative.as_posix()] = file_hash(path)
    return found


def first_damaged(folder: Path, hashes: Mapping[str, str]) -> tuple[Path, str] | None:
    """The first file that is absent or whose bytes do not have the recorded hash, with the reason; None if all do."""
    for relative, expected in hashes.items():
        path = folder / relative
        if not path.is_file():
            return path, "it is missing"
        if file_hash(path) != expected:
            return path, "its bytes do not have the recorded hash"
    return None


def is_temporary(relative: Path) -> bool:
    """Whether a path, relative to the folder looked through, is or lies in a left-over of a write that was cut off."""
    return any(_TEMPORARY in part for part in relative.parts)


def temporary_name(path: Path) -> Path:
    """A name beside ``path`` for something not finished yet."""
    return path.with_name(f"{path.name}{_TEMPORARY}{uuid.uuid4().hex[:12]}")


def write_bytes(path: Path, data: bytes, durable: bool = True) -> None:
    """Write a file so that readers see the old content or the new, never a part.

    Args:
        path: Where.
        data: What.
        durable: Have it on the disk before returning, so that a power cut cannot undo or empty it. Costs several
            milliseconds; where many files count only together, write them without and call ``flush_tree`` once.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_name(path)
    with naming(path):
        try:
            with temporary.open("wb") as stream:
                stream.write(data)
                stream.flush()
                if durable:
                    os.fsync(stream.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        if durable:
            _sync(path.parent)


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """Give the file's name to an error of the system that has none, or that of the file beside it."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and (error.filename is None or _TEMPORARY in str(error.filename)):
            error.filename = str(path)
        raise


def write_text(path: Path, text: str, durable: bool = True) -> None:
    """``write_bytes`` for text (UTF-8)."""
    write_bytes(path, text.encode(), durable)


def write_json(path: Path, value: Any, durable: bool = True) -> None:
    """Write a value as indented JSON, keys in the order given."""
    write_text(path, json.dumps(plain(value), indent=1, ensure_ascii=False, allow_nan=False) + "\n", durable)


def write_jsonl(path: Path, rows: Iterable[Any], durable: bool = True) -> None:
    """Write one JSON value a line."""
    lines = (json.dumps(plain(row), ensure_ascii=False, allow_nan=False) for row in rows)
    write_text(path, "".join(f"{line}\n" for line in lines), durable)


def read_json(path: Path) -> Any:
    """Content of a JSON file.

    Raises:
        StoreError: The file is absent or not JSON.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise StoreError(f"{path} does not exist", "the run has not come that far, or the file was removed") from error
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{path} is not valid JSON", str(error), "remove the file and resume the run") from error


def read_object(path: Path) -> dict[str, Any]:
    """Content of a JSON file that holds an object.

    Raises:
        StoreError: The file is absent, not JSON, or holds something else.
    """
    content = read_json(path)
    if not isinstance(content, dict):
        why = f"it holds a {type(content).__name__}, not an object"
        raise StoreError(f"{path} is damaged", why, "remove the file and resume the run")
    return content


def read_jsonl(path: Path) -> Iterator[Any]:
    """Values of a JSON-lines file, one after another.

    Raises:
        StoreError: The file is absent, or a line is not JSON (the line is named).
    """
    if not path.is_file():
        raise StoreError(f"{path} does not exist", "the run has not come that far, or the file was removed")
    with path.open("rb") as stream:
        for number, line in enumerate(stream, start=1):
            try:
                yield json.loads(line.decode())
            except (ValueError, RecursionError) as error:
                raise StoreError(f"{path}, line {number} is not valid JSON", str(error)) from error


def append_line(path: Path, value: Any) -> int:
    """Append one JSON line to a log; a write that fails leaves the file as it was.

    Returns:
        Where the line begins, in bytes.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    line = (json.dumps(plain(value), ensure_ascii=False, allow_nan=False) + "\n").encode()
    with naming(path), path.open("ab", buffering=0) as stream:
        place = stream.tell()
        try:
            written = stream.write(line)
            if written != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        except BaseException:
            with contextlib.suppress(OSError):
                stream.truncate(place)
            raise
    return place


def cut_tail(path: Path) -> None:
    """Remove from the end of a log what a crash left of its last lines; nothing where there is no log."""
    if not path.is_file():
        return
    with path.open("rb+") as stream:  # opened for writing, which alone changes no date
        end = 0
        for line in stream:
            if not line.endswith(b"\n"):
                break
            end += len(line)
        if end < path.stat().st_size:
            stream.truncate(end)


def publish_folder(source: Path, target: Path) -> None:
    """Move a finished folder to its place: it is there whole or not at all.

    The files are flushed to the disk first; a folder on another file system is copied beside the target before the
    rename.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    staged = temporary_name(target)
    shutil.move(source, staged)
    flush_tree(staged)
    if target.exists():
        shutil.rmtree(target)
    staged.replace(target)
    _sync(target.parent)


def remove_temporaries(folder: Path) -> None:
    """Remove left-overs of writes that were cut off."""
    for path in [*folder.rglob(f"*{_TEMPORARY}*")]:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def flush_tree(folder: Path) -> None:
    """Have everything below a folder, names included, on the disk before returning."""
    with ThreadPoolExecutor(8) as pool:  # the file system commits concurrent requests together
        list(pool.map(_sync, [folder, *folder.rglob("*")]))


def _sync(path: Path) -> None:
    # For a folder this flushes its entries, so that a rename survives a power cut.
    with naming(path):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
