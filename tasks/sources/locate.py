"""Finds a public data set: under the data root, among the prepared ones, or on the hub itself."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from cl_bench.harness.errors import DataError
from cl_bench.harness.files import file_hash
from cl_bench.harness.jsonl import check_new_id, check_row, read_jsonl
from cl_bench.tasks.sources.base import DataOptions
from cl_bench.tasks.sources.front_matter import README, data_files, folder_names, read_front_matter, split_files
from cl_bench.tasks.sources.inside import is_inside
from cl_bench.tasks.sources.prepared import PARTIAL, find_prepared, prepared_root


class AbsentDataError(DataError):
    """The data set is not where the options say it should be (as opposed to: it is there and broken)."""


@dataclass(frozen=True, slots=True)
class DatasetSpec:
    """A public data set.

    Attributes:
        path: Its id on the hub, ``owner/name``.
        files: File name of each split in a flat folder.
        config: Its configuration on the hub, or None.
        revision: Commit on the hub that is asked for, or None.
        fields: Fields that every row must have, with the name of their type.
        splits: Name on the hub of each split of ``files``, where it differs.
        on_hub: Whether the hub has it at all; otherwise it is published as files only.
    """

    path: str
    files: Mapping[str, str]
    config: str | None = None
    revision: str | None = None
    fields: Mapping[str, str] = field(default_factory=dict)
    splits: Mapping[str, str] = field(default_factory=dict)
    on_hub: bool = True

    def __post_init__(self) -> None:
        """Refuse names that are joined to the data's folder and lead out of it; raises DataError."""
        if wrong := [name for name in (self.path, *self.files.values()) if not is_inside(name)]:
            raise DataError(f"the data set {self.path!r}: {wrong[0]!r} does not lie below the folder of the data")

    def hub_split(self, split: str) -> str:
        """Name that the hub gives a split."""
        return self.splits.get(split, split)


@dataclass(frozen=True, slots=True)
class Located:
    """Where a data set was found.

    Attributes:
        kind: ``folder`` (hub-shaped), ``files`` (flat JSONL) or ``hub``.
        root: The hub-shaped folder, or the flat files' folder; None on the hub.
        files: Paths of the flat files by split.
        prepared: Its files have the hashes recorded by ``cl-bench data prepare``, which also loaded the rows.
        remark: Why something prepared was not taken, or empty.
    """

    kind: Literal["folder", "files", "hub"]
    root: Path | None = None
    files: Mapping[str, Path] = field(default_factory=dict)
    prepared: bool = False
    remark: str = ""


def locate(spec: DatasetSpec, options: DataOptions) -> Located:
    """Find a data set.

    With a data root it is there or nowhere. Without one, what ``cl-bench data prepare`` put into the cache comes
    before the hub, and is the only place where the hub must not be asked. What was prepared at another revision than
    the one asked for is not taken.

    Raises:
        AbsentDataError: It is not under the data root; or there is no data root, it was not prepared, and the hub
            does not have it or must not be asked.
        DataError: A prepared file is damaged.
    """
    if options.data_root is not None:
        return _in_data_root(spec, options.data_root)
    found, remark = _as_prepared(spec, prepared_root())
    if found is not None:
        return found
    if not spec.on_hub:
        raise AbsentDataError(
            f"the data set {spec.path} is published as files, not on the hub",
            remark,
            f"give --data-root DIR with {' and '.join(spec.files.values())}",
        )
    if is_offline(options):
        raise AbsentDataError(
            f"the data set {spec.path} is not local",
            "; ".join(filter(None, (remark, "the hub must not be asked (offline)"))),
            f"give --data-root DIR, or run cl-bench data prepare {spec.path} with a network",
        )
    return Located("hub", remark=remark)


def is_offline(options: DataOptions) -> bool:
    """Whether the hub must not be asked: ``--offline``, or Hugging Face's own variable for it."""
    return options.offline or os.environ.get("HF_HUB_OFFLINE", "").lower() in {"1", "true", "yes", "on"}


def _as_prepared(spec: DatasetSpec, root: Path) -> tuple[Located | None, str]:
    found, remark = find_prepared(root, spec)
    if found is None:
        return None, remark
    if found.kind == "folder":
        return Located("folder", root / spec.path, prepared=True), ""
    return Located("files", root, {split: root / name for split, name in spec.files.items()}, prepared=True), ""


def _in_data_root(spec: DatasetSpec, root: Path) -> Located:
    found, remark = _as_prepared(spec, root)
    if found is not None:
        return found
    if remark or (root / PARTIAL / spec.path).exists():
        raise AbsentDataError(
            f"the data set {spec.path} is not in {root}",
            remark or "its preparation was not finished",
            f"cl-bench data prepare {spec.path} --to {root}",
        )
    if data_files(folder_names(folder := root / spec.path)):
        return Located("folder", folder)
    files = {split: root / name for split, name in spec.files.items()}
    absent = [path.name for path in files.values() if not path.is_file()]
    if absent:
        raise AbsentDataError(
            f"the data set {spec.path} is not in {root}",
            f"there is neither a folder {spec.path} with data files nor {' and '.join(absent)}",
            "put it there, or leave --data-root out to load it from the hub",
        )
    return Located("files", root, files)


def load_rows(spec: DatasetSpec, split: str, options: DataOptions) -> list[dict[str, Any]]:
    """Rows of one split, checked.

    JSONL is read line by line, so that a broken row is named with its file and line; other formats go through
    ``datasets``.

    Args:
        spec: The data set.
        split: A key of ``spec.files``.
        options: Where to look.

    Raises:
        AbsentDataError: It was not found.
        DataError: A row is broken, or the hub did not deliver.
    """
    return read_located(spec, split, locate(spec, options))


def read_located(spec: DatasetSpec, split: str, located: Located) -> list[dict[str, Any]]:
    """Rows of one split from where ``locate`` found the data set; raises DataError as ``load_rows`` does."""
    if located.kind == "hub":
        return _load_with_datasets(spec, split, located)
    paths = located_files(spec, split, located)
    if paths and all(path.suffix == ".jsonl" for path in paths):
        return _read_lines(paths, spec)
    return _load_with_datasets(spec, split, located)


def located_files(spec: DatasetSpec, split: str, located: Located) -> list[Path]:
    """Files of a split on this machine, in order; empty where nothing says which of a folder's files these are.

    Raises:
        DataError: The folder declares other configurations or splits.
    """
    if located.kind == "files":
        return [located.files[split]]
    root = located.root
    assert root is not None
    front = read_front_matter(root / README)
    names = split_files(folder_names(root), front, spec.config, spec.hub_split(split), str(root))
    return [root / name for name in names]


def _read_lines(paths: list[Path], spec: DatasetSpec) -> list[dict[str, Any]]:
    parts = [read_jsonl(path, spec.fields) for path in paths]
    if len(parts) == 1:
        return parts[0]
    seen: dict[Any, int] = {}
    rows = [row for part in parts for row in part]
    for index, row in enumerate(rows):
        check_new_id(row, index, seen, f"{spec.path}, {len(paths)} files, row")
    return rows


def _load_with_datasets(spec: DatasetSpec, split: str, located: Located) -> list[dict[str, Any]]:
    source = spec.path if located.root is None else str(located.root)
    try:
        if located.root is None:
            rows = _from_hub(spec, split)
        else:
            rows = _from_folder(spec, split, located.root, located_files(spec, split, located))
    except DataError:
        raise
    except Exception as error:  # datasets raises many kinds; all mean that the data set cannot be had
        command = f"cl-bench data prepare {spec.path}"
        raise DataError(
            f"the data set {source} cannot be loaded",
            "; ".join(filter(None, (f"{type(error).__name__}: {error}", located.remark))),
            f"{command} says what is missing; or give --data-root DIR with a local copy"
            if located.root is None
            else f"check the folder's README.md and its files; {command} fetches the data set anew",
        ) from error
    where = f"{source}, {spec.hub_split(split)} row"
    seen: dict[Any, int] = {}
    for index, row in enumerate(rows):
        check_row(row, spec.fields, f"{where} {index}")
        check_new_id(row, index, seen, where)
    return rows


def _from_hub(spec: DatasetSpec, split: str) -> list[dict[str, Any]]:
    from datasets import load_dataset

    return list(load_dataset(spec.path, spec.config, split=spec.hub_split(split), revision=spec.revision))


def _from_folder(spec: DatasetSpec, split: str, root: Path, paths: list[Path]) -> list[dict[str, Any]]:
    """Rows of a folder's split, read anew each time.

    ``datasets`` 5.2 keeps what it has read of a folder under the folder's last name and the configuration: another
    folder of the same name, or changed files, would give the rows of the first.
    """
    from datasets import load_dataset

    with TemporaryDirectory() as scratch:
        if paths and all(path.suffix == ".parquet" for path in paths):
            names = [str(path) for path in paths]
            return list(load_dataset("parquet", data_files={"train": names}, split="train", cache_dir=scratch))
        return list(load_dataset(str(root), spec.config, split=spec.hub_split(split), cache_dir=scratch))


def data_identity(spec: DatasetSpec, options: DataOptions) -> dict[str, Any]:
    """What fixes the rows, as JSON: a hash over the bytes of local files, the revision on the hub, or the absence.

    The hash is over the files' bytes by split; names and folders do not enter it, so that a prepared data set, a copy
    of it under a data root and the same bytes as flat files are one data set. Where no revision is asked for, it is the
    commit that the hub has today: what it publishes tomorrow is another data set.

    Raises:
        DataError: A local file is broken, or the hub does not say what its commit is.
    """
    try:
        located = locate(spec, options)
    except AbsentDataError:
        return {"absent": spec.path}
    if located.kind == "hub":
        revision = spec.revision or _commit_today(spec)
        return {"path": spec.path, "config": spec.config, "revision": revision} if revision else {"absent": spec.path}
    files = {split: located_files(spec, split, located) for split in sorted(spec.files)}
    for split, paths in files.items():
        if paths and all(path.suffix == ".jsonl" for path in paths):
            _read_lines(paths, spec)
        elif not located.prepared:
            _load_with_datasets(spec, split, located)
    if not all(files.values()):
        root = located.root
        assert root is not None
        files = {"": [root / name for name in data_files(folder_names(root))]}
    return {"sha256": _files_hash(files)}


def _commit_today(spec: DatasetSpec) -> str | None:
    """The commit of what the hub publishes now, or None where it has no such data set; raises DataError."""
    from cl_bench.tasks.sources.fetch import FetchError, look_up, real_hub

    try:
        return look_up(real_hub(), spec.path, None).commit
    except FetchError as error:
        if error.state == "absent":
            return None
        raise DataError(
            f"the hub does not say which revision of {spec.path} it has",
            error.reason,
            "give --data-root DIR with a local copy, pin its `revision`, or leave it out",
        ) from error


def _files_hash(files: Mapping[str, list[Path]]) -> str:
    total = hashlib.sha256()
    for split, paths in files.items():
        total.update(f"{split}\0{len(paths)}\0".encode())
        for path in paths:
            total.update(bytes.fromhex(file_hash(path)))
    return total.hexdigest()
