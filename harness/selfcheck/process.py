"""A run in a process of its own that can be killed; processes are forked from one that has the libraries loaded."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path

from cl_bench.harness.errors import ClBenchError, words_of
from cl_bench.harness.progress import SilentProgress
from cl_bench.harness.registry import Registry
from cl_bench.harness.run_directory import run_path
from cl_bench.harness.runner import run_one
from cl_bench.harness.selfcheck.ticks import KillPoint, Ticker, watch
from cl_bench.harness.spec import Execution, RunSpec

_PRELOADED = ["cl_bench.harness.selfcheck.preloaded", __name__]
_LONGEST_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended.

    Attributes:
        killed: It ended itself at its kill point.
        error: What went wrong in it; empty where nothing did.
        counts: Moments by activity, of a process that came to its end.
    """

    killed: bool
    error: str
    counts: Mapping[str, int]


def run_process(spec: RunSpec, execution: Execution, cache: Path, log: Path, at: KillPoint | None = None) -> Ended:
    """Carry out a run, or what is left of it, in a process that may kill itself.

    Args:
        spec: The run.
        execution: Where and how.
        cache: Cache of the process.
        log: Log of kills.
        at: Where the process ends itself, or None.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(spec, replace(execution, cache=cache), log, at, theirs))
    with _quiet_tracker():
        process.start()
    theirs.close()
    try:
        error, counts = ours.recv() if ours.poll(_LONGEST_SECONDS) else ("it did not end", {})
    except EOFError:
        error, counts = "", {}
    if error == "it did not end":
        process.kill()
    process.join()
    killed = process.exitcode == -signal.SIGKILL and not error
    if not killed and not error and process.exitcode:
        error = f"the process ended with {process.exitcode}"
    return Ended(killed, error, counts)


@contextmanager
def _quiet_tracker() -> Iterator[None]:
    """What a killed process leaves behind is no news, and the tracker of such things reports it on stderr."""
    before = os.environ.get("PYTHONWARNINGS")
    ours = "ignore::UserWarning:multiprocessing.resource_tracker"
    os.environ["PYTHONWARNINGS"] = f"{before},{ours}" if before else ours
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONWARNINGS"]
        else:
            os.environ["PYTHONWARNINGS"] = before


def _run(spec: RunSpec, execution: Execution, log: Path, at: KillPoint | None, answer: Connection) -> None:
    ticker = Ticker(run_path(execution.output, spec), at, log)
    watch(ticker)
    try:
        run_one(spec, execution, Registry(execution.include_paths), SilentProgress(quiet=True))
        error = ""
    except ClBenchError as found:
        error = str(found)
    except Exception as found:  # reported as a finding of the check
        error = words_of(found)
    answer.send((error, dict(ticker.counts)))
