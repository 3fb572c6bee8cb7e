"""Which public data sets a task file or a suite file reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from cl_bench.harness.errors import DataError
from cl_bench.tasks.loader import mixture_parts, read_task_file, task_editions
from cl_bench.tasks.retention.benchmarks import benchmark_datasets
from cl_bench.tasks.retention.suites import load_suite
from cl_bench.tasks.sources.base import DataOptions
from cl_bench.tasks.sources.editions import Edition, find_edition
from cl_bench.tasks.sources.wanted import Need


def task_needs(name: str, path: Path, roots: Sequence[Path]) -> list[Need]:
    """Data sets that a task reads; none where it reads no public data.

    Of several editions of the data it is the first that lies whole in one of the roots; where none does, the first
    that the hub may have.

    Args:
        name: Name of the task, as the user of the data sets.
        path: Its file.
        roots: Folders with data sets, in the order in which they are looked through.

    Raises:
        UsageError: The file is not a task file.
    """
    source = read_task_file(path)["sources"].get("hub", {})
    if source.get("kind") == "mixture":
        parts = mixture_parts(path, source.get("parts"), "hub")
        return [need for part in parts for need in task_needs(name, part, roots)]
    editions = task_editions(path)
    if not editions:
        return []
    own = [edition for edition in editions if not edition.stand_in] or list(editions)
    instead = tuple(tuple(sorted(_flat_names(edition))) for edition in own)
    chosen = next(_present(name, editions, roots), own[0])
    return [Need(name, spec, instead=instead if not spec.on_hub else ()) for spec in chosen.parts]


def suite_needs(name: str, path: Path, tier: str | None) -> list[Need]:
    """Data sets that a suite's benchmarks read; those of worked examples that may be absent are optional.

    Args:
        name: Name of the suite, as the user of the data sets.
        path: Its file.
        tier: A tier that it must have, or None; what is read does not depend on it.

    Raises:
        UsageError: The file is no suite.
        UnknownNameError: No such tier.
    """
    return [
        Need(name, spec, optional=place > 0)
        for entry in load_suite(path, tier)
        for place, spec in enumerate(benchmark_datasets(entry))
    ]


def absence(path: Path) -> str:
    """Why a task has no rows on public data, as its file says; empty where it has some or does not say."""
    source = read_task_file(path)["sources"].get("hub", {})
    return str(source.get("absent", ""))


def _present(name: str, editions: Sequence[Edition], roots: Sequence[Path]) -> Iterator[Edition]:
    for root in roots:
        try:
            yield find_edition(name, editions, DataOptions("hub", root, offline=True))
        except DataError:  # not there, or damaged: then it is asked for by its first edition, and named
            continue


def _flat_names(edition: Edition) -> set[str]:
    return {name for part in edition.parts for name in part.files.values()}
