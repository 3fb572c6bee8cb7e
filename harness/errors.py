"""The exceptions of cl-bench. Each says what happened, why, and what to try; each class has its exit code."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

EXIT_DONE = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_NOT_COMPARABLE = 3
EXIT_INTERRUPTED = 130


class ClBenchError(Exception):
    """Base of every error that a user can act on.

    Args:
        what: What happened, as one sentence.
        why: The reason, or empty.
        hint: What to try, or empty.
    """

    exit_code = EXIT_FAILED

    def __init__(self, what: str, why: str = "", hint: str = "") -> None:
        """See the class."""
        super().__init__(what)
        self.what, self.why, self.hint = what, why, hint

    def __str__(self) -> str:
        """The three parts, one a line."""
        parts = [self.what]
        if self.why:
            parts.append(f"  why: {self.why}")
        if self.hint:
            parts.append(f"  try: {self.hint}")
        return "\n".join(parts)


class UsageError(ClBenchError):
    """The request itself is wrong; nothing was written."""

    exit_code = EXIT_USAGE


class UnknownNameError(UsageError):
    """A name that nothing is registered under; carries the nearest ones."""

    def __init__(self, kind: str, name: str, known: Iterable[str], remark: str = "") -> None:
        """Find the names nearest to ``name`` among the known ones of its kind; ``remark`` is said after them."""
        known = sorted(known)
        self.nearest = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
        listed = f"known: {', '.join(known)}" if known else f"there is no {kind} to choose from"
        hint = f"did you mean {' or '.join(self.nearest)}?" if self.nearest else listed
        super().__init__(f"unknown {kind}: {name!r}", hint="; ".join(filter(None, (hint, remark))))


class DataError(UsageError):
    """A data file is absent or broken; names file, line and field."""


class ModelError(UsageError):
    """A model cannot be found, loaded or paired with another."""


class NotComparableError(ClBenchError):
    """Runs differ in something that makes their numbers incomparable."""

    exit_code = EXIT_NOT_COMPARABLE


class StoreError(ClBenchError):
    """A run directory is damaged or does not belong to the spec in it."""


class NotARunError(StoreError):
    """What was named as a run directory is none."""

    exit_code = EXIT_USAGE


class DivergedError(ClBenchError):
    """Loss or weights became non-finite during a stage."""


class NothingAcceptedError(ClBenchError):
    """Data generation produced no usable row for a stage."""


class InterruptedRunError(ClBenchError):
    """The user stopped the run; finished stages and the last checkpoint are kept."""

    exit_code = EXIT_INTERRUPTED


_BLAME = "in the extension"


@contextmanager
def blaming(extension: Any) -> Iterator[None]:
    """Note on an exception which method's or modifier's code it came from; nothing is noted of what is built in."""
    try:
        yield
    except ClBenchError:
        raise
    except Exception as error:
        if not type(extension).__module__.startswith("cl_bench.") and not blamed(error):
            error.add_note(f"{_BLAME} {extension.name}; cl-bench validate checks extensions")
        raise


def blamed(error: BaseException) -> str:
    """What ``blaming`` noted on an exception, or nothing."""
    return _noted(error, _BLAME)


_WRITING = "while writing "


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Note on an exception what was being written: libraries that write weights do not name their files."""
    try:
        yield
    except Exception as error:
        error.add_note(f"{_WRITING}{path}")
        raise


def written(error: BaseException) -> str:
    """What ``writing`` noted on an exception, or nothing."""
    return _noted(error, _WRITING).removeprefix(_WRITING)


def _noted(error: BaseException, beginning: str) -> str:
    return next((note for note in getattr(error, "__notes__", ()) if note.startswith(beginning)), "")


def words_of(error: BaseException) -> str:
    """Class and message of an exception; of one whose message raises, which somebody else's may, the class alone."""
    try:
        return f"{type(error).__name__}: {error}"
    except KeyboardInterrupt:
        raise
    except BaseException:
        return f"{type(error).__name__} (its message cannot be had)"
