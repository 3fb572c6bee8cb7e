"""Lays flat JSONL files out as folders that ``datasets.load_dataset`` reads like the hub's data sets."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from cl_bench.harness.errors import DataError, UsageError
from cl_bench.harness.files import temporary_name, write_jsonl, write_text
from cl_bench.harness.jsonl import read_jsonl
from cl_bench.tasks.loader import task_editions
from cl_bench.tasks.retention.benchmarks import benchmark_datasets
from cl_bench.tasks.retention.suites import load_suite
from cl_bench.tasks.sources.front_matter import README, as_text
from cl_bench.tasks.sources.locate import DatasetSpec

Place = tuple[str, str, str]
"""Id of a data set, configuration and split."""

_DEFAULT = "default"
_BODY = "Laid out from flat JSONL files by cl-bench."


def lay_out(flat: Path, root: Path) -> list[Path]:
    """Lay the flat files of all tasks and suites out as ``ROOT/<owner>/<name>/<configuration>/<split>.jsonl``.

    What a task or suite asks for is laid out where all files that it names are there; rows stay as they are. A file
    that several configurations of a data set share (MATH and its subjects) is divided by the column whose values name
    them. The front matter of each README.md declares configurations and splits, so that
    ``datasets.load_dataset("ROOT/<owner>/<name>", configuration)`` finds them.

    Args:
        flat: Folder with the flat files.
        root: Folder that receives the data sets; may exist.

    Returns:
        The folders of the data sets, sorted.

    Raises:
        DataError: No file is one that a task or suite names, or a file is broken.
        UsageError: A data set is in ``root`` already; nothing was written.
    """
    sources = _sources(flat)
    if not sources:
        raise DataError(f"{flat} has no file that a task or suite names", hint="`files` in their YAML files names them")
    by_path: dict[str, dict[Place, Path]] = {}
    for place, source in sources.items():
        by_path.setdefault(place[0], {})[place] = source
    if present := [path for path in by_path if (root / path).exists()]:
        raise UsageError(f"{root} has {', '.join(present)} already", hint="name another folder, or remove them")
    return sorted(_data_set(root / path, places) for path, places in by_path.items())


def _sources(flat: Path) -> dict[Place, Path]:
    """The flat file of each split; where two editions of a task have a split in common, the first one's."""
    found: dict[Place, Path] = {}
    for specs in (*_of_tasks(), *_of_suites()):
        if not all((flat / name).is_file() for spec in specs for name in spec.files.values()):
            continue
        for spec in specs:
            for split, name in spec.files.items():
                found.setdefault((spec.path, spec.config or _DEFAULT, spec.hub_split(split)), flat / name)
    return found


def _of_tasks() -> Iterator[Sequence[DatasetSpec]]:
    for path in _yaml_files("cl_bench.tasks"):
        for edition in task_editions(path):
            yield edition.parts


def _of_suites() -> Iterator[Sequence[DatasetSpec]]:
    for path in _yaml_files("cl_bench.tasks.retention"):
        for entry in load_suite(path, None):
            yield from ([spec] for spec in benchmark_datasets(entry))


def _yaml_files(package: str) -> list[Path]:
    return sorted(Path(str(files(package))).glob("*.yaml"))


def _data_set(folder: Path, places: dict[Place, Path]) -> Path:
    """Write one data set; the folder has its name only when it is whole."""
    temporary = temporary_name(folder)
    try:
        declared: dict[str, list[dict[str, str]]] = {}
        for split, source in dict.fromkeys((place[2], source) for place, source in places.items()):
            configurations = [place[1] for place, path in places.items() if (place[2], path) == (split, source)]
            for configuration in _write(temporary, configurations, split, source):
                item = {"split": split, "path": f"{configuration}/{split}.jsonl"}
                declared.setdefault(configuration, []).append(item)
        configs = [{"config_name": name, "data_files": items} for name, items in declared.items()]
        write_text(temporary / README, as_text({"configs": configs}, _BODY), durable=False)
        temporary.rename(folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    return folder


def _write(folder: Path, configurations: list[str], split: str, source: Path) -> list[str]:
    """Write a split of one configuration or, divided, of several; returns those that have rows."""
    rows = read_jsonl(source, {})
    if len(configurations) == 1:
        target = folder / configurations[0] / f"{split}.jsonl"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        return configurations
    parts = _divided(rows, configurations, source)
    for name, part in parts.items():
        write_jsonl(folder / name / f"{split}.jsonl", part, durable=False)
    return list(parts)


def _divided(
    rows: Sequence[dict[str, Any]], configurations: Iterable[str], source: Path
) -> dict[str, list[dict[str, Any]]]:
    """Rows by configuration: the one column whose values all name a configuration says which."""
    known = set(configurations)
    columns = [name for name in rows[0] if all(_slug(row.get(name)) in known for row in rows)]
    if not columns:
        raise DataError(
            f"{source} does not say which configuration each row belongs to",
            f"no column has only values that name one of {', '.join(sorted(known))}",
        )
    parts: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        parts.setdefault(_slug(row[columns[0]]), []).append(row)
    return parts


def _slug(value: object) -> str:
    """A value as the name of a configuration: "Counting & Probability" is ``counting_and_probability``."""
    return re.sub(r"\W+", "_", str(value).lower().replace("&", "and")).strip("_")
