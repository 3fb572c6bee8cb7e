"""What names on the command line of ``cl-bench data`` stand for: the data sets that their tasks and suites read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cl_bench.harness.errors import UnknownNameError
from cl_bench.harness.plugins import load_entry_point
from cl_bench.harness.profile_files import load_profile, profile_names
from cl_bench.harness.registry import Registry

if TYPE_CHECKING:
    from cl_bench.tasks.sources.wanted import Need

_KINDS = ("sequences", "suites", "tasks")


def needs_of(
    names: Sequence[str],
    registry: Registry,
    roots: Sequence[Path],
    profile: str | None = None,
    tier: str | None = None,
    with_suites: bool = True,
    note: Callable[[str], None] = lambda line: None,
) -> list[Need]:
    """The data sets that something reads.

    A sequence reads what its tasks read, and the suites that it declares; where it declares none, those of the
    profiles on public data, or of one profile.

    Args:
        names: Sequences, suites, tasks, or ids of data sets that one of these reads.
        registry: Where they are looked up.
        roots: Folders with data sets, of which a task with several editions of its data takes what is there.
        profile: The one profile whose suite counts, or None.
        tier: Tier of the suites, or None.
        with_suites: Whether a sequence stands for the suites that are measured beside it too.
        note: Called with one line for each task that reads no public data, and for the suites that a sequence brings.

    Raises:
        UnknownNameError: A name is none of these; nothing was read.
    """
    known = {kind: registry.names(kind) for kind in _KINDS}
    everything = [name for kind in _KINDS for name in known[kind]]
    by_path: dict[str, list[Need]] = {}
    if any(name not in everything for name in names):
        for need in needs_of_all(registry, roots):
            by_path.setdefault(need.spec.path, []).append(need)
    for name in names:
        if name not in everything and name not in by_path:
            raise UnknownNameError("sequence, suite, task or data set", name, {*everything, *by_path})
    needs: list[Need] = []
    for name in names:
        tasks = [name] if name in known["tasks"] else []
        suites = [name] if name in known["suites"] else []
        if name in known["sequences"]:
            sequence = registry.sequence(name)
            tasks += [stage.task for stage in sequence.stages]
            suites += _sequence_suites(name, sequence.suites, profile, note) if with_suites else []
        needs += by_path.get(name, ())
        for task in dict.fromkeys(tasks):
            needs += _task(task, registry, roots, note)
        for suite in dict.fromkeys(suites):
            read = _suite(suite, registry, tier)
            if not read:
                note(f"{suite}: generated, reads no public data")
            needs += read
    return needs


def needs_of_all(registry: Registry, roots: Sequence[Path]) -> list[Need]:
    """The data sets that all tasks and suites read."""
    tasks = [need for name in registry.tasks() for need in _task(name, registry, roots, lambda line: None)]
    return tasks + [need for name in registry.suites() for need in _suite(name, registry, None)]


def _task(name: str, registry: Registry, roots: Sequence[Path], note: Callable[[str], None]) -> Iterator[Need]:
    from cl_bench.tasks.sources.needed import absence, task_needs

    source = registry.source("tasks", name)
    path = source.path if source.entry_point is None else load_entry_point(source, name)
    if not isinstance(path, str | Path):
        note(f"{name}: a task in Python, which does not say what it reads")
        return
    needs = task_needs(name, Path(path), roots)
    if not needs:
        note(f"{name}: no public data ({absence(Path(path)) or 'its file names none'})")
    yield from needs


def _suite(name: str, registry: Registry, tier: str | None) -> list[Need]:
    from cl_bench.tasks.sources.needed import suite_needs

    return suite_needs(name, registry.suite_path(name), tier)


def _sequence_suites(name: str, declared: Sequence[str], profile: str | None, note: Callable[[str], None]) -> list[str]:
    """Suites that a run of a sequence may measure, which are named."""
    if declared:
        note(f"{name}: with its suites {', '.join(declared)}; --no-suites leaves them out")
        return list(declared)
    profiles = [load_profile(one) for one in ([profile] if profile else profile_names())]
    by_suite: dict[str, list[str]] = {}
    for one in profiles:
        if one.suite and (one.data.source == "hub" or profile):
            by_suite.setdefault(one.suite, []).append(one.name)
    for suite, users in by_suite.items():
        of = f"profile{'s' * (len(users) > 1)} {' and '.join(users)}"
        narrower = "--no-suites leaves it out" if profile else "--profile NAME or --no-suites narrows it"
        note(f"{name}: with the suite {suite} of {of}; {narrower}")
    return list(by_suite)
