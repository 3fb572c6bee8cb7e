"""What every check reports."""

from __future__ import annotations

import inspect
import traceback
from dataclasses import dataclass
from pathlib import Path

from cl_bench.harness.errors import words_of


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at.

    Attributes:
        name: What was looked at.
        problem: What is wrong, or empty.
        skipped: Why it does not apply, or empty.
    """

    name: str
    problem: str = ""
    skipped: str = ""

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problem


def raised(error: BaseException, extension: type) -> str:
    """An exception in words, with the line of the extension's own file that it passed last, where it did."""
    file = inspect.getfile(extension)
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    where = f" ({Path(own[-1].filename).name}, line {own[-1].lineno}, in {own[-1].name})" if own else ""
    return f"{words_of(error)}{where}"
