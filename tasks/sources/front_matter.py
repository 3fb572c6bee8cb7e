"""Which files of a hub-shaped folder are which split: as the front matter of README.md says, else by their names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from cl_bench.harness.errors import DataError

README = "README.md"
_FRONT = re.compile(r"\A\ufeff?\s*---[ \t]*\r?\n(.*?)^---[ \t]*$", re.DOTALL | re.MULTILINE)
_DATA_ENDINGS = frozenset({".jsonl", ".json", ".parquet", ".csv", ".tsv", ".arrow"})
# Words that stand for a split in file and folder names, as in the `datasets` library.
_SPLIT_WORDS = {
    "train": ("train", "training"),
    "validation": ("validation", "valid", "val", "dev"),
    "test": ("test", "testing", "eval", "evaluation"),
}

# Folders that are no configuration of their own.
_PLAIN_FOLDERS = frozenset({"data", "default", *(word for words in _SPLIT_WORDS.values() for word in words)})
_SHARD = re.compile(r"[-_]?\d+(?:-of-\d+)?(?=\.[^/]*\Z)")

FrontMatter = Mapping[str, Any]


def read_front_matter(readme: Path) -> FrontMatter:
    """The front matter of a README.md; empty where there is no file or nothing in front.

    Raises:
        DataError: It is not a YAML mapping, or the file is no text.
    """
    if not readme.is_file():
        return {}
    try:
        found = _FRONT.match(readme.read_text(encoding="utf-8"))
        front = yaml.safe_load(found[1]) if found else None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise DataError(f"the front matter of {readme} is no YAML", str(error)) from error
    if not isinstance(front or {}, dict):
        raise DataError(f"the front matter of {readme} is no mapping of names to values")
    configs = (front or {}).get("configs") or []
    if not (isinstance(configs, list) and all(isinstance(item, dict) for item in configs)):
        raise DataError(f"`configs` in the front matter of {readme} is no list of configurations")
    return front or {}


def declared_configs(front: FrontMatter) -> list[Mapping[str, Any]]:
    """The configurations that a front matter declares."""
    return list(front.get("configs") or [])


def chosen_config(front: FrontMatter, config: str | None, where: str) -> Mapping[str, Any] | None:
    """The declared configuration of a name, or the default one; None where nothing is declared.

    Args:
        front: The front matter.
        config: Its name, or None for the default: the only one, the one marked so, or the one called "default".
        where: The data set, for messages.

    Raises:
        DataError: There is none of that name, or no default.
    """
    declared = declared_configs(front)
    if not declared:
        return None
    names = [str(item.get("config_name", "default")) for item in declared]
    if config is not None:
        wanted = [item for item, name in zip(declared, names, strict=True) if name == config]
    elif len(declared) == 1:
        wanted = declared
    else:
        wanted = [item for item, name in zip(declared, names, strict=True) if item.get("default") or name == "default"]
    if not wanted:
        what = f"no configuration {config!r}" if config is not None else "several configurations and no default"
        raise DataError(f"{where} has {what}", f"it has {', '.join(names)}", "correct `config` of the data set")
    return wanted[0]


def split_files(names: Iterable[str], front: FrontMatter, config: str | None, split: str, where: str) -> list[str]:
    """Files of a split.

    Args:
        names: All files of the data set, as POSIX paths below its folder.
        front: Its front matter.
        config: A configuration, or None for the default.
        split: Name of the split on the hub.
        where: The data set, for messages.

    Returns:
        Sorted names; empty where nothing says which files the split has.

    Raises:
        DataError: There is no such configuration, or it declares splits and not this one; or nothing is declared and
            the files' names do not say which of them are the configuration's.
    """
    files = data_files(names)
    chosen = chosen_config(front, config, where)
    if chosen is None and config is not None:
        files = _undeclared(files, config, where)
    folder = str((chosen or {}).get("data_dir") or "").removeprefix("./").strip("/")
    if folder:
        files = [name for name in files if name.startswith(f"{folder}/")]
    patterns = _patterns(chosen, where)
    if not patterns:
        return [name for name in files if _named_after(name.removeprefix(f"{folder}/"), split)]
    if split not in patterns:
        raise DataError(
            f"{where} has no split {split!r}",
            f"it has {', '.join(patterns)}",
            f"add its files and declare them in {README}; `splits` names a split that is called otherwise there",
        )
    return _matching(files, patterns[split], folder)


def config_files(names: Iterable[str], front: FrontMatter, config: str | None, where: str) -> list[str]:
    """Files of all splits of a configuration, sorted; all data files where nothing is declared or asked for.

    Raises:
        DataError: There is no such configuration, or it has no file; or nothing is declared and the files' names do
            not say which of them are the configuration's.
    """
    files = data_files(names)
    chosen = chosen_config(front, config, where)
    if chosen is None and config is not None:
        files = _undeclared(files, config, where)
    folder = str((chosen or {}).get("data_dir") or "").removeprefix("./").strip("/")
    patterns = _patterns(chosen, where)
    found = _matching(files, [pattern for split in patterns.values() for pattern in split], folder)
    if not patterns:
        found = [name for name in files if not folder or name.startswith(f"{folder}/")]
    if not found:
        raise DataError(f"{where} has no data files", f"of {len(files)} none fits the configuration")
    return found


def _undeclared(files: list[str], config: str, where: str) -> list[str]:
    """Files of a configuration that nothing declares: those in a folder of its name, in whatever case.

    Without such a folder all files are its, provided that they are one data set: no other folder divides them, and a
    split's files are parts of one file (``train-00000-of-00002.parquet``). The configuration is then a default that
    only the hub needs.

    Raises:
        DataError: The files are those of other configurations, or nothing says whose they are.
    """
    folders = {name: [part.lower() for part in PurePosixPath(name).parent.parts] for name in files}
    if own := [name for name in files if config.lower() in folders[name]]:
        return own
    wholes = [{_SHARD.sub("", name) for name in files if _named_after(name, split)} for split in _SPLIT_WORDS]
    divided = any(not _PLAIN_FOLDERS.issuperset(parts) for parts in folders.values())
    if divided or any(len(files_of_split) > 1 for files_of_split in wholes):
        raise DataError(
            f"{where} does not say which of its files are the configuration {config!r}",
            f"{README} declares no `configs`, and there is no folder {config}",
            f"put the data set's own {README} there, or the files into a folder {config}",
        )
    return files


def data_files(names: Iterable[str]) -> list[str]:
    """The names among these that hold rows: no documentation, no hidden files. Sorted."""
    return sorted(
        name
        for name in names
        if _DATA_ENDINGS.intersection(PurePosixPath(name).suffixes)
        and not any(part.startswith(".") for part in PurePosixPath(name).parts)
        and name != "dataset_infos.json"
    )


def folder_names(folder: Path) -> list[str]:
    """All files below a folder, as POSIX paths relative to it."""
    return [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]


def reduced(front: FrontMatter, configs: Sequence[str | None], where: str) -> dict[str, Any]:
    """A front matter that declares some of its configurations only.

    ``datasets`` looks at the first declared configuration whatever is asked for, and fails where its files are absent.

    Raises:
        DataError: One of them is not declared.
    """
    kept = [chosen_config(front, config, where) for config in configs]
    names = {item.get("config_name") for item in kept if item is not None}
    content = dict(front)
    if names:
        content["configs"] = [item for item in declared_configs(front) if item.get("config_name") in names]
    information = front.get("dataset_info")
    if names and isinstance(information, list):
        content["dataset_info"] = [item for item in information if item.get("config_name") in names]
    return content


def merged(one: FrontMatter, other: FrontMatter) -> dict[str, Any]:
    """Two front matters of one data set as one: the configurations of both, everything else as in the second."""
    content = {**one, **other}
    for key in ("configs", "dataset_info"):
        parts = [part[key] if isinstance(part.get(key), list) else [] for part in (one, other)]
        named = {item.get("config_name"): item for part in parts for item in part}
        if named:
            content[key] = list(named.values())
    return content


def as_text(front: FrontMatter, body: str) -> str:
    """A README with a front matter."""
    return f"---\n{yaml.safe_dump(dict(front), sort_keys=False, allow_unicode=True)}---\n\n{body}\n"


def _patterns(chosen: Mapping[str, Any] | None, where: str) -> dict[str, list[str]]:
    """Patterns by split; empty where the configuration does not say."""
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
            raise DataError(f"`data_files` of {where} cannot be read", f"{files!r:.200}")
        found.setdefault(str(entry.get("split", "train")), []).extend(paths)
    return found


def _matching(names: Iterable[str], patterns: Iterable[str], folder: str) -> list[str]:
    prefix = [folder] if folder else []
    split = ["/".join([*prefix, pattern.removeprefix("./")]).split("/") for pattern in patterns]
    return [name for name in names if any(_fits(name.split("/"), pattern) for pattern in split)]


def _fits(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether a path fits a pattern: ``**`` is any number of folders, the other signs stay within one name."""
    if not pattern:
        return not parts
    if pattern[0] == "**":
        return any(_fits(parts[start:], pattern[1:]) for start in range(len(parts) + 1))
    return bool(parts) and fnmatchcase(parts[0], pattern[0]) and _fits(parts[1:], pattern[1:])


def _named_after(name: str, split: str) -> bool:
    words = "|".join(re.escape(word) for word in _SPLIT_WORDS.get(split, (split,)))
    return re.search(rf"(?<![A-Za-z])({words})(?![A-Za-z])", name) is not None
