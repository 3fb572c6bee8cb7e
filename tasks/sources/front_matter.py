"""Which files of a hub-shaped folder are which split: as the front matter of README.md says, else by their names."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from cl_bench.harness.errors import DataError, UsageError
from cl_bench.harness.yaml_files import dump_yaml, parse_yaml
from cl_bench.tasks.sources.patterns import declared_patterns, matching, refuse_outward

README = "README.md"
_OTHER_PLACE = ".huggingface.yaml"
"""Where the ``datasets`` library takes declarations from too, before those of README.md."""
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
        DataError: It is not a YAML mapping, the file is no text, a configuration has files outside the folder, or the
            folder declares its files elsewhere too.
    """
    if (other := readme.with_name(_OTHER_PLACE)).exists():
        raise DataError(f"{other} is not read", hint=f"remove it; what it declares belongs into {readme.name}")
    if not readme.is_file():
        return {}
    front = _parsed(readme) or {}
    if not isinstance(front, dict):
        raise DataError(f"the front matter of {readme} is no mapping of names to values")
    configs, information = front.get("configs") or [], front.get("dataset_info")
    if not isinstance(configs, list) or not _are_named(configs):
        raise DataError(f"`configs` in the front matter of {readme} is no list of configurations")
    if isinstance(information, list) and not _are_named(information):
        raise DataError(f"`dataset_info` in the front matter of {readme} is no list of configurations")
    refuse_outward(configs, str(readme))
    return front


def _parsed(readme: Path) -> Any:
    try:
        found = _FRONT.match(readme.read_text(encoding="utf-8"))
        return parse_yaml(found[1], "what it says") if found else None
    except UsageError as error:
        raise DataError(f"the front matter of {readme} is no YAML", f"{error.what}: {error.why}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"the front matter of {readme} cannot be read", str(error)) from error


def _are_named(items: Sequence[Any]) -> bool:
    """Whether all are mappings, and the names of those that have one are single values."""
    return all(isinstance(item, dict) and not isinstance(item.get("config_name"), list | dict | set) for item in items)


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
        DataError: There is no such configuration, or it declares splits and not this one, or files that are not there;
            or nothing is declared and the files' names do not say which of them are the configuration's.
    """
    names = list(names)
    files = data_files(names)
    chosen = chosen_config(front, config, where)
    if chosen is None and config is not None:
        files = _undeclared(files, config, where)
    folder = str((chosen or {}).get("data_dir") or "").removeprefix("./").strip("/")
    if folder:
        files = [name for name in files if name.startswith(f"{folder}/")]
    patterns = declared_patterns(chosen, where)
    if not patterns:
        return [name for name in files if _named_after(name.removeprefix(f"{folder}/"), split)]
    if split not in patterns:
        raise DataError(
            f"{where} has no split {split!r}",
            f"it has {', '.join(patterns)}",
            f"add its files and declare them in {README}; `splits` names a split that is called otherwise there",
        )
    return _declared_files(names, patterns[split], folder, f"{where}, split {split!r}")


def _declared_files(names: Iterable[str], patterns: Iterable[str], folder: str, where: str) -> list[str]:
    """Files that fit patterns, of any ending where a pattern fits no data file."""
    visible = [name for name in names if name != README and not _is_hidden(name)]
    data, found = data_files(visible), set()
    for pattern in patterns:
        fitting = matching(data, pattern, folder) or matching(visible, pattern, folder)
        if not fitting:
            why = f"{README} declares them, and they are not in the folder (what lies behind linked folders is not)"
            raise DataError(f"{where}: no files {reprlib.repr(pattern)}", why, "add them, or correct the pattern")
        found.update(fitting)
    return sorted(found)


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
    patterns = declared_patterns(chosen, where)
    every = [pattern for split in patterns.values() for pattern in split]
    found = sorted({name for pattern in every for name in matching(files, pattern, folder)})
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
        and not _is_hidden(name)
        and name != "dataset_infos.json"
    )


def _is_hidden(name: str) -> bool:
    return any(part.startswith(".") for part in PurePosixPath(name).parts)


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
    return f"---\n{dump_yaml(dict(front))}---\n\n{body}\n"


def _named_after(name: str, split: str) -> bool:
    words = "|".join(re.escape(word) for word in _SPLIT_WORDS.get(split, (split,)))
    return re.search(rf"(?<![A-Za-z])({words})(?![A-Za-z])", name) is not None
