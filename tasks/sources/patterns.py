"""Patterns by which a data set's front matter names the files of its splits."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from cl_bench.harness.errors import DataError


def declared_patterns(chosen: Mapping[str, Any] | None, where: str) -> dict[str, list[str]]:
    """Patterns by split; empty where the configuration does not say.

    Args:
        chosen: A declared configuration, or None.
        where: The data set, for messages.

    Raises:
        DataError: Its ``data_files`` have none of the forms that the ``datasets`` library reads.
    """
    files = (chosen or {}).get("data_files")
    if files is None:
        return {}
    if isinstance(files, str):
        return {"train": [files]}
    if isinstance(files, dict):
        files = [{"split": split, "path": path} for split, path in files.items()]
    found: dict[str, list[str]] = {}
    for item in files if isinstance(files, list) else [None]:
        entry = {"split": "train", "path": item} if isinstance(item, str) else item
        path = entry.get("path") if isinstance(entry, dict) else None
        paths: list[Any] = path if isinstance(path, list) else [path]
        if not isinstance(entry, dict) or not all(isinstance(one, str) for one in paths):
            raise DataError(f"`data_files` of {where} cannot be read", reprlib.repr(files))
        found.setdefault(str(entry.get("split", "train")), []).extend(paths)
    return found


def refuse_outward(configs: Iterable[Mapping[str, Any]], where: str) -> None:
    """Refuse configurations of which ``datasets`` would read files outside the data set's folder, or from a network.

    All count, whichever is asked for: ``datasets`` looks at the first one in any case.

    Raises:
        DataError: A pattern or a ``data_dir`` is absolute, holds ``..``, or is an address.
    """
    for config in configs:
        for text in _strings([config.get("data_files"), config.get("data_dir")]):
            if text.startswith("/") or ".." in text.replace("\\", "/").split("/") or "://" in text or "::" in text:
                raise DataError(
                    f"{where} declares {reprlib.repr(text)}, which leads out of the folder",
                    "rows are read from the folder of the data set alone",
                    "put the files there, and declare them by paths below it",
                )


def matching(names: Iterable[str], pattern: str, folder: str) -> list[str]:
    """Those of the names, POSIX paths below the data set's folder, that fit a pattern below ``folder`` (or ``""``)."""
    prefix = [folder] if folder else []
    pieces = "/".join([*prefix, pattern.removeprefix("./")]).split("/")
    return [name for name in names if _fits(name.split("/"), pieces)]


def _fits(parts: list[str], pieces: list[str]) -> bool:
    """Whether a path fits a pattern: ``**`` is any number of folders, the other signs stay within one name."""
    # How many parts the pieces so far may have taken: a set, because trying each number in turn takes a time that
    # grows with its power, as many as there are `**`.
    taken = {0}
    for piece in pieces:
        if not taken:
            return False
        if piece == "**":
            taken = set(range(min(taken), len(parts) + 1))
        else:
            taken = {count + 1 for count in taken if count < len(parts) and fnmatchcase(parts[count], piece)}
    return len(parts) in taken


def _strings(value: Any) -> Iterator[str]:
    """All strings in nested lists and mappings, keys aside."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _strings(item)
