"""Lists of options with a verdict or a share for each: "A ❌, B ✅", "A: incorrect, B: correct", "A: 90%, B: 10%"."""

from __future__ import annotations

import re
from typing import NamedTuple

_RIGHT = "✅✓✔☑"
_WRONG = "❌✗✘✖×"
_LETTER = r"^[(\[]?(?P<letter>[A-J])"
_SIGNED = re.compile(
    rf"{_LETTER}(?:[)\].:,][^\n]{{0,200}}?|[)\].:,]{{0,2}})\s?(?P<sign>[{_RIGHT}{_WRONG}])[.\s]*$", re.MULTILINE
)
_WORDED = re.compile(
    rf"{_LETTER}[)\].]*\s?[:=–—-]?\s?(?:(?P<right>correct|right)|wrong|incorrect)[.!]?[ ]?$",
    re.MULTILINE | re.IGNORECASE,
)
_SHARE = re.compile(rf"{_LETTER}[)\].]*\s?[:=–—-]?\s?(?:[~≈] ?)?\d{{1,3}}(?:\.\d{{1,4}})?\s?%[.,;]?[ ]?$", re.MULTILINE)


class Marks(NamedTuple):
    """Letters that lines of a text mark as right and as wrong, each line being a letter and its verdict."""

    right: frozenset[str]
    wrong: frozenset[str]

    @property
    def only(self) -> str | None:
        """The one letter that is marked right, where it is not marked wrong as well."""
        return next(iter(self.right)) if len(self.right) == 1 and not self.right & self.wrong else None


def marks(text: str) -> Marks:
    """What the lines of a plain text mark as right and wrong."""
    right: set[str] = set()
    wrong: set[str] = set()
    for match in _SIGNED.finditer(text):
        (right if match["sign"] in _RIGHT else wrong).add(match["letter"])
    for match in _WORDED.finditer(text):
        if match["letter"].isupper():
            (right if match["right"] else wrong).add(match["letter"])
    return Marks(frozenset(right), frozenset(wrong))


def shares(text: str) -> frozenset[str]:
    """Letters to which lines of a plain text give a percentage and nothing else."""
    return frozenset(match["letter"] for match in _SHARE.finditer(text))
