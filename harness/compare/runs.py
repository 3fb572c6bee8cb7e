"""The runs that a comparison is asked for: run directories, folders of them, files in them, or patterns of those."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from cl_bench.harness.compare.whole import load_whole
from cl_bench.harness.errors import StoreError, UsageError
from cl_bench.harness.run_directory import ENDED, RunView, no_run_at, read_or_reason, runs_below

_THREADS = 4


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A run directory that is not compared, and why."""

    directory: Path
    reason: str


@dataclass(frozen=True, slots=True)
class FoundRuns:
    """What was found.

    Attributes:
        views: Runs that ended, each once, in the order given.
        left_out: Damaged and unfinished runs, and copies of a run.
    """

    views: tuple[RunView, ...]
    left_out: tuple[LeftOut, ...]


def find_runs(places: Sequence[str]) -> FoundRuns:
    """Read the runs at the places; the files of finished stages are compared with their hashes.

    Args:
        places: Run directories, folders with runs at any depth, files of a run, or shell patterns of those.

    Raises:
        UsageError: Nothing is there, or a pattern matches nothing.
        NotARunError: There is no run at a place.
        StoreError: There are runs, but none that can be compared.
    """
    if not places:
        raise UsageError("no runs to compare", hint="cl-bench compare RUN_DIR... or a folder of runs")
    directories = list(dict.fromkeys(run.resolve() for place in places for run in _runs_at(place)))
    shown = {run: _shown(run) for run in directories}
    with ThreadPoolExecutor(_THREADS) as pool:  # hashing, most of the work, lets other threads run
        loaded = list(pool.map(_load, shown.values()))
    views: dict[str, RunView] = {}
    left_out = []
    for directory, found in zip(shown.values(), loaded, strict=True):
        reason = found if isinstance(found, str) else _why_not(found, views)
        if reason:
            left_out.append(LeftOut(directory, reason))
        elif isinstance(found, RunView):
            views[found.spec.digest()] = found
    if not views:
        reasons = "\n       ".join(f"{run.directory}: {run.reason}" for run in left_out)
        raise StoreError("no run can be compared", reasons, "cl-bench resume RUN_DIR goes on with an unfinished run")
    return FoundRuns(tuple(views.values()), tuple(left_out))


def _runs_at(place: str) -> list[Path]:
    paths = _paths(place)
    if not paths:
        raise UsageError(
            f"there is no {place or 'place without a name'}",
            hint="a run directory, a folder of runs, or a pattern such as 'runs/*/*/*'",
        )
    runs = [run for path in paths for run in runs_below(path)]
    if not runs:
        raise no_run_at(place)
    return runs


def _paths(place: str) -> list[Path]:
    """What is there; nothing for an empty name, which a variable of the shell that is not set leaves behind."""
    try:
        if not place or Path(place).exists():
            return [Path(place)] if place else []
        return [Path(match) for match in sorted(glob.glob(place, recursive=True))]
    except OSError:  # no file system has such a name
        return []


def _shown(directory: Path) -> Path:
    """Relative to the current folder where it lies below it."""
    here = Path.cwd().resolve()
    return directory.relative_to(here) if directory.is_relative_to(here) else directory


def _load(directory: Path) -> RunView | str:
    found = read_or_reason(directory, partial(load_whole, shifts=False))
    return f"cannot be read: {found}" if isinstance(found, str) else found


def _why_not(view: RunView, earlier: dict[str, RunView]) -> str:
    state = view.status.get("state", "not started")
    if state not in ENDED:
        return f"unfinished: {'still running' if state == 'running' else state}"
    copy = earlier.get(view.spec.digest())
    if copy is None:
        return ""
    if view.matrix.to_json() == copy.matrix.to_json():
        return f"the same run as {copy.directory}"
    return f"another attempt at the run {copy.directory}, with other results; name one of the two"
