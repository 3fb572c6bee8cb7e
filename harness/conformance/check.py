"""What every check reports."""

from __future__ import annotations

from dataclasses import dataclass


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
