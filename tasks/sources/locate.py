"""Finds a public data set: a folder shaped like the hub, flat JSONL files, or the hub itself."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import yaml

from cl_bench.harness.errors import DataError
from cl_bench.harness.jsonl import check_new_id, check_row, read_jsonl
from cl_bench.tasks.sources.base import DataOptions


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
    """

    kind: Literal["folder", "files", "hub"]
    root: Path | None = None
    files: Mapping[str, Path] = field(default_factory=dict)


def locate(spec: DatasetSpec, options: DataOptions) -> Located:
    """Find a data set.

    Raises:
        AbsentDataError: It is not under the data root, or there is no data root and the hub must not be asked.
    """
    if options.data_root is None:
        if not spec.on_hub:
            raise AbsentDataError(
                f"the data set {spec.path} is published as files, not on the hub",
                hint=f"give --data-root DIR with {' and '.join(spec.files.values())}",
            )
        if options.offline or os.environ.get("HF_HUB_OFFLINE", "").lower() in {"1", "true", "yes", "on"}:
            raise AbsentDataError(
                f"the data set {spec.path} is not local", "the hub must not be asked (offline)", "give --data-root DIR"
            )
        return Located("hub")
    root = options.data_root
    if (folder := root / spec.path).is_dir():
        return Located("folder", folder)
    files = {split: root / name for split, name in spec.files.items()}
    absent = [path.name for path in files.values() if not path.is_file()]
    if absent:
        raise AbsentDataError(
            f"the data set {spec.path} is not in {root}",
            f"there is neither a folder {spec.path} nor {' and '.join(absent)}",
            "put it there, or leave --data-root out to load it from the hub",
        )
    return Located("files", root, files)


def load_rows(spec: DatasetSpec, split: str, options: DataOptions) -> list[dict[str, Any]]:
    """Rows of one split, checked.

    Args:
        spec: The data set.
        split: A key of ``spec.files``.
        options: Where to look.

    Raises:
        AbsentDataError: It was not found.
        DataError: A row is broken, or the hub did not deliver.
    """
    located = locate(spec, options)
    if located.kind == "files":
        return read_jsonl(located.files[split], spec.fields)
    if located.kind == "folder":
        assert located.root is not None
        for path in _split_files(located.root, spec.config, spec.hub_split(split)):
            read_jsonl(path, spec.fields)
    return _load_with_datasets(spec, split, located)


def _load_with_datasets(spec: DatasetSpec, split: str, located: Located) -> list[dict[str, Any]]:
    from datasets import load_dataset

    source = spec.path if located.root is None else str(located.root)
    revision = spec.revision if located.kind == "hub" else None
    try:
        rows = list(load_dataset(source, spec.config, split=spec.hub_split(split), revision=revision))
    except Exception as error:  # datasets raises many kinds; all mean that the data set cannot be had
        raise DataError(
            f"the data set {source} cannot be loaded",
            f"{type(error).__name__}: {error}",
            "check the folder's README.md" if located.root else "give --data-root DIR with a local copy",
        ) from error
    where = f"{source}, {spec.hub_split(split)} row"
    seen: dict[Any, int] = {}
    for index, row in enumerate(rows):
        check_row(row, spec.fields, f"{where} {index}")
        check_new_id(row, index, seen, where)
    return rows


def _split_files(folder: Path, config: str | None, split: str) -> list[Path]:
    """JSONL files of a configuration's split: as the front matter of README.md says, else those named after it."""
    patterns = list(_declared_patterns(folder / "README.md", config, split))
    if not patterns:
        patterns = [f"**/*{split}*.jsonl"]
    return sorted({path for pattern in patterns for path in folder.glob(pattern) if path.suffix == ".jsonl"})


def _declared_patterns(readme: Path, config: str | None, split: str) -> Iterable[str]:
    if not readme.is_file():
        return
    parts = readme.read_text(encoding="utf-8").split("---\n")
    try:
        front = yaml.safe_load(parts[1]) if len(parts) > 2 else None
    except yaml.YAMLError as error:
        raise DataError(f"the front matter of {readme} is no YAML", str(error)) from error
    for declared in (front or {}).get("configs", []):
        if config is not None and declared.get("config_name") != config:
            continue
        files = declared.get("data_files", [])
        for item in files if isinstance(files, list) else [{"split": "train", "path": files}]:
            if item.get("split") == split:
                paths = item["path"]
                yield from paths if isinstance(paths, list) else [paths]


def data_identity(spec: DatasetSpec, options: DataOptions) -> dict[str, Any]:
    """What fixes the rows, as JSON: a hash over the bytes of local files, the revision on the hub, or the absence.

    Raises:
        DataError: A local file is broken.
    """
    try:
        located = locate(spec, options)
    except AbsentDataError:
        return {"absent": spec.path}
    if located.kind == "hub":
        return {"path": spec.path, "config": spec.config, "revision": spec.revision}
    if located.kind == "files":
        for path in located.files.values():
            read_jsonl(path, spec.fields)
        return {"sha256": _files_hash(located.files.values())}
    assert located.root is not None
    for split in spec.files:
        for path in _split_files(located.root, spec.config, spec.hub_split(split)):
            read_jsonl(path, spec.fields)
    return {"sha256": _files_hash(path for path in located.root.rglob("*") if path.is_file())}


def _files_hash(paths: Iterable[Path]) -> str:
    total = hashlib.sha256()
    for path in sorted(paths):
        total.update(path.name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()
