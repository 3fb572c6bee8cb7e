"""Finds where a response takes back the answer that it has stated: "wait, no", "(edit: C)", "that's wrong"."""

from __future__ import annotations

import re
from typing import NamedTuple

from cl_bench.tasks.scoring.reading import LONGEST

_FIRM = (
    r"wait|hold on|hang on|scratch that|correction|edit(?=\s?:)|oops|my (?:mistake|bad)|(?:just )?kidding|"
    r"on second thoughts?|on reflection"
)
_WEAK = r"actually|sorry|I mean|I meant|no(?:pe)?(?=\s?[,.:;!…—–-])"
_PAUSE = r"[\s,.:;!…—–-]{0,8}"
_WORDS = re.compile(
    r"(?:^|[\n.,;:!?…()\[\]—–*-]|\b(?:but|oh|hmm+|um)\b)\s{0,8}"
    rf"(?P<words>(?:no,? )?(?:{_FIRM}|{_WEAK})\b{_PAUSE}(?:(?:{_FIRM}|{_WEAK}|no|but)\b{_PAUSE}){{0,8}})",
    re.IGNORECASE,
)
_FIRM_WORD = re.compile(rf"\b(?:{_FIRM})\b", re.IGNORECASE)
_ARROW = re.compile(r"^[\s$*)\]}\x03]{0,4}(?:→|⟶|⇒|[-=]{1,2}>|\\(?:to|(?:long)?rightarrow)\b)\s?")
_FALSE = r"\s(?:clearly |obviously |actually )?(?:wrong|incorrect|mistaken|a mistake|not (?:right|correct))\b(?! to\b)"
# The verdict on an answer stands in its own sentence or begins the next; a full stop before a digit ends none.
_CALLED_FALSE = re.compile(
    r"^(?:\W{0,4}(?:is|was)|(?:[^\n.!]|\.(?=\d)){0,120}?"
    r"(?:[.!;,\n…)]\s{0,3}(?:but )?(?:that|this|which|it)(?: answer)?(?:'s|’s| is| was)|[\x03}]\W{0,4}(?:is|was)))"
    rf"{_FALSE}[\s.!,;]{{0,4}}",
    re.IGNORECASE,
)
_SAID_FALSE = re.compile(rf"(?:that|this|which|it)(?: answer)?(?:'s|’s| is| was){_FALSE}[\s.!,;]{{0,4}}", re.IGNORECASE)
_INSTEAD = re.compile(
    r"(?:(?:so|and|then|but)\s)?(?:it's|it’s|it is|that's|that is|this is|it (?:should|must|has to) be|should be|"
    r"make (?:it|that)|let's say|the (?:\w{1,12} )?(?:answer|result|option|number|value) (?:is|should be))\b[:,]?\s*",
    re.IGNORECASE,
)

_REPLACING = re.compile(r"(?:[^\n.!?)]|\.(?=\S)){0,300}")


class Retraction(NamedTuple):
    """A place where a stated answer is taken back.

    Attributes:
        start: Where it begins.
        end: Where the answer that replaces it would begin: past "wait, no, it's".
        firm: Nothing is left of the answer, should no other follow. "Actually", "no" and an arrow take it back only
            with a new one, for they can begin an explanation as well.
    """

    start: int
    end: int
    firm: bool


def retraction(text: str, start: int, arrows: bool = True) -> Retraction | None:
    """The first place from ``start`` on where an answer that was stated there is taken back, or None.

    Args:
        text: The response.
        start: Where the stated answer ends; where that is not known, where it begins.
        arrows: Whether an arrow that follows takes the answer back (it may be part of an answer in words).
    """
    rest = text[start : start + LONGEST]
    arrow = _ARROW.match(rest) if arrows else None
    if arrow:
        return Retraction(start, start + arrow.end(), firm=False)
    called = _CALLED_FALSE.match(rest)
    words = _WORDS.search(rest[: called.end()] if called else rest)
    if called and (words is None or called.end() <= words.start("words")):
        return Retraction(start, _past_lead_in(text, start + called.end()), firm=True)
    if words is None:
        return None
    end = start + words.end()
    false = _SAID_FALSE.match(text, end)
    firm = false is not None or _FIRM_WORD.search(words["words"]) is not None
    return Retraction(start + words.start(), _past_lead_in(text, false.end() if false else end), firm)


def replacement(text: str, start: int) -> str | None:
    """What replaces an answer in words that begins at ``start``: "" for nothing, None where it is not taken back.

    An answer that is taken back without firmness ("actually") is replaced only by one of about its own length.
    """
    text = text[start : start + LONGEST]
    new: str | None = None
    # Not from its first character on: an answer "No, ..." takes nothing back.
    begin, place = 0, 1
    while taken := retraction(text, place, arrows=False):
        line = _REPLACING.match(text, taken.end)
        words = line.group().strip(" .!?*`") if line else ""
        if taken.firm or 0 < len(words.split()) <= len(text[begin : taken.start].split()) + 1:
            new, begin = words, taken.end
        place = max(taken.end, place + 1)
    return new


def _past_lead_in(text: str, place: int) -> int:
    lead_in = _INSTEAD.match(text, place)
    return lead_in.end() if lead_in else place
