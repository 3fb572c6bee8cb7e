"""What the tests of code execution share: how programs are run, and what they leave behind."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from cl_bench.tasks.code_execution import Limits, Outcome

DEFAULT = Limits()
BRIEF = Limits(seconds=1)
"""For programs that end by this limit, so that the test need not wait long."""


class Run(Protocol):
    """Runs one program in the mode of the test."""

    def __call__(self, source: str, limits: Limits = DEFAULT) -> Outcome: ...


def leftovers(marker: str) -> list[str]:
    """Command lines of processes that have the marker in their command line or their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            texts = (folder / "cmdline").read_bytes(), (folder / "environ").read_bytes()
        except OSError:
            continue
        if any(marker.encode() in text for text in texts):
            found.append(texts[0].decode("utf-8", "replace"))
    return found
