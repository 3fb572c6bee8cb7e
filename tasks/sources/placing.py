"""Puts files of a data set where they belong, without touching what somebody else put there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Sequence
from pathlib import Path

from cl_bench.harness.errors import DataError
from cl_bench.harness.files import file_hash, temporary_name, write_text
from cl_bench.tasks.sources.front_matter import (
    README,
    as_text,
    config_files,
    declared_configs,
    folder_names,
    merged,
    read_front_matter,
    reduced,
)
from cl_bench.tasks.sources.prepared import RecordedFile, record_file

_MARK = "Written by `cl-bench data prepare`"


def place_folder(
    source: Path,
    root: Path,
    path: str,
    configs: Sequence[str | None],
    names: Sequence[str],
    ours: Collection[str],
    *,
    link: bool,
) -> dict[str, RecordedFile]:
    """Put files of a configuration, and a README that declares it, into ``ROOT/<owner>/<name>``.

    Args:
        source: Hub-shaped folder with the files; those that are in place already may be absent from it.
        root: The root.
        path: Id of the data set.
        configs: The configuration, then the others of the folder that stay declared.
        names: The configuration's files, below the folder.
        ours: Files below the root that may be replaced.
        link: The source is nobody's and may share its bytes with what is put in place.

    Returns:
        Size and hash of the README and of each file, by path below the root.

    Raises:
        DataError: A file of somebody else is in the way.
        OSError: The disk refused.
    """
    target = root / path
    front = merged(_own_front(target, f"{path}/{README}" in ours), read_front_matter(source / README))
    front = reduced(front, configs, path)
    present = folder_names(target) if target.is_dir() else []
    if further := set(config_files({*present, *names}, front, configs[0], path)) - set(names):
        raise DataError(f"{target} has further files that would count as the data set's", ", ".join(sorted(further)))
    for name in names:
        if (source / name).is_file():
            _place(source / name, target / name, f"{path}/{name}" in ours, link)
    if declared_configs(front):
        write_text(target / README, as_text(front, _body(path)))
    elif (source / README).is_file():
        _place(source / README, target / README, f"{path}/{README}" in ours, link)
    placed = [*names, README] if (target / README).is_file() else names
    return {f"{path}/{name}": record_file(root, f"{path}/{name}") for name in placed}


def place_files(source: Path, root: Path, names: Sequence[str], ours: Collection[str]) -> dict[str, RecordedFile]:
    """Copy flat files; returns and raises as ``place_folder`` does."""
    for name in names:
        _place(source / name, root / name, name in ours, link=False)
    return {name: record_file(root, name) for name in names}


def _place(source: Path, target: Path, ours: bool, link: bool) -> None:
    if target.exists() and not ours:
        if target.is_file() and file_hash(target) == file_hash(source):
            return
        raise DataError(
            f"{target} is in the way", "cl-bench did not put it there", "move it, or name another folder with --to"
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_name(target)
    try:
        if not (link and _linked(source, temporary)):
            shutil.copyfile(source, temporary)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _linked(source: Path, target: Path) -> bool:
    try:
        os.link(source, target)
    except OSError:  # a file system without hard links
        return False
    return True


def _own_front(folder: Path, ours: bool) -> dict[str, object]:
    """What the folder's README declares so far; raises DataError where it is somebody else's."""
    readme = folder / README
    if not readme.exists():
        return {}
    text = readme.read_text(encoding="utf-8", errors="replace")
    if _MARK not in text and not ours:
        raise DataError(
            f"{readme} is in the way", "cl-bench did not write it", "move the folder, or name another one with --to"
        )
    try:
        return dict(read_front_matter(readme))
    except DataError:  # damaged; what the data set itself declares replaces it
        return {}


def _body(path: str) -> str:
    return (
        f"{_MARK}: the front matter declares those parts of {path} that are here.\n"
        f"The data set's own page is https://huggingface.co/datasets/{path}."
    )
