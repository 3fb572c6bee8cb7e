"""Reads the number that a worked solution ends with."""

from __future__ import annotations

import re
from typing import NamedTuple

from cl_bench.tasks.base import Example, Score
from cl_bench.tasks.scoring.numerals import NUMBER, plain_digits, same_number, tidied
from cl_bench.tasks.scoring.reading import LONGEST, answer_part, boxes, first_turn, side_by_side, stated, tagged_answer
from cl_bench.tasks.scoring.retractions import retraction

__all__ = ["parse_number", "same_number", "score_number"]

_OPERATOR = re.compile(r"\s*(?:[-−+/×÷·^]|\*(?!\*)|\\times|\\cdot|\\div)\s*[\d(\\$]")
_LEAD_IN = re.compile(
    r"(?:\s|[*_`:=≈~(\[$]|\\[(\[$]|\\approx|\b(?:approximately|about|exactly|therefore|thus|only)\b)*", re.IGNORECASE
)
_MARK = re.compile(r"####")
_LINE = re.compile(r"[^\n]{0,400}")
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)")
_REASON = re.compile(
    r"=\s?(?P<result>[^\s=]{1,30}?)(?:\s[A-Za-z]{1,20}){0,2}[,.]?\s\(?(?:since|because|as)\b[^\n]*$", re.IGNORECASE
)

_OPEN = r"[\s$\\(\[{*]{0,6}(?:boxed\s?\{)?"
_CLOSE = r"[$%}*)\]]{0,4}"
_UNIT = r"(?:\s?[A-Za-z%]{1,15})?"
_OR = r"(?:\bor\b|\band/or\b|\bto\b|[–—~±]|\\pm\b|\+/-)"
_NOT_THIS = re.compile(
    r"(?:\b(?:not|never|nor|neither)|n't|n’t|≠|!=|\\neq?|\\not\s?=)\s*(?:(?:be|equal(?: to)?|exactly|simply|just)\s)?"
    rf"{_OPEN}$|\b(?:less|more|fewer|greater|lower|higher|larger|smaller)\s(?:than|or equal to)\s{_OPEN}$"
    rf"|(?:^|[\s$(])(?:[<>≤≥]=?|\\(?:l|g)(?:eq?|t))\s?{_OPEN}$|(?<![A-Za-z])[A-Za-z]$",
    re.IGNORECASE,
)
_ONE_OF_SEVERAL = re.compile(
    rf"\d{_CLOSE}{_UNIT}\s?{_OR}\s?(?:(?:even|maybe|possibly)\s)?{_OPEN}$"
    rf"|\bbetween\s[^\n]{{0,40}}\d{_CLOSE}{_UNIT}\sand\s{_OPEN}$|\d:$|\^\s?\{{?$",
    re.IGNORECASE,
)
_SEVERAL_FOLLOW = re.compile(
    rf"{_CLOSE}{_UNIT},?\s?{_OR}\s?(?:(?:even|maybe|possibly)\s)?{_OPEN}-?\d"
    rf"|{_CLOSE}\s?[-−]\s?\$?\d[\d.,]*(?!\s?=)\s*(?:$|[^\s\d=+*/×÷-])|[²³¹⁰⁴-⁹]|:\d|[knxyz](?![A-Za-z])"
    rf"|{_CLOSE}(?:\s?,\s?|\s)(?:and\s)?\$?\d[\d.]*{_CLOSE}\s*(?:$|[.;]\s|[.;]?$)",
    re.IGNORECASE,
)
_BETWEEN_LISTED = re.compile(r"(?:[\s,;.…]|\b(?:and|or)\b)*")
_CLAUSE_END = re.compile(
    r"[$%}*)\]]{0,4}(?:\s(?!(?:of|is|are|was|were|more|less|or|and)\b)[A-Za-z]{1,15}){0,2}\s*(?:$|[.,;!?)\n])"
)


class _Reading(NamedTuple):
    """A number that is stated, or None where a statement leaves it open; and where it ends."""

    value: str | None
    end: int


def parse_number(text: str) -> str | None:
    r"""The number a response gives as its answer, in plain digits, or None.

    A marked number wins over numbers that follow it, for what follows is a check, a unit or the next question. Marks
    are ``####``, ``\boxed{…}``, ``<answer>`` and "answer is" or "answer:"; of several, the last one that has a number
    decides. Without a mark it is the last number of the text, or the result of an equation whose reason follows. After
    a mark the number is the first one, or what an equation that begins there comes to ("#### 3 + 4 = 7"); a sum that is
    not carried out is no marked number.

    The last commitment counts: a number that is taken back ("wait, no", "edit:", "that's wrong") is replaced by the one
    that follows, or by none (see ``retractions``). Several numbers and ranges (18 or 20, 17–18, two boxes side by side)
    are no answer; what is denied or compared ("not 18", "more than 18", ">18") is not read; nor are powers, clock times
    and products with a letter (18², 18:30, 18x).

    Understood are thousands separators, signs in digits and words, currencies, scientific notation (``1.5e3``,
    ``1.5 × 10^3``), "2 million" and fractions (``3/4``, ``\frac{3}{4}``, 3½). A percent sign is a unit: 25% is 25.
    """
    text = answer_part(text)
    text = tidied((tagged_answer(text) or text)[-LONGEST:])
    turn = first_turn(text)
    reading = _marked(turn) or _marked(text)
    if reading is None:
        turn = text
        reading = _last(text)
    return _settled(turn if reading and reading.end <= len(turn) else text, reading)


def _settled(text: str, reading: _Reading | None) -> str | None:
    """The number of a reading, or what replaces it where it is taken back."""
    while reading is not None and reading.value is not None and (taken := retraction(text, reading.end)):
        line = _LINE.match(text, taken.end)
        sentence = _SENTENCE_END.split(line.group() if line else "", maxsplit=1)[0]
        new = _stated_number(sentence, taken.end, whole=True)
        if new is None and taken.firm:
            again = _last(text[taken.end :])
            return reading.value if again and again.value and same_number(again.value, reading.value) else None
        reading = new or _Reading(reading.value, taken.end)
    return reading.value if reading else None


def _last(text: str) -> _Reading | None:
    """The last number that is neither denied nor compared with; an open reading where it is one of several."""
    reason = _REASON.search(text, text.rstrip().rfind("\n") + 1)
    result = NUMBER.fullmatch(text, reason.start("result"), reason.end("result")) if reason else None
    if result:
        return _Reading(plain_digits(result), result.end())
    numbers = list(NUMBER.finditer(text))
    if len(numbers) > 2 and _BETWEEN_LISTED.fullmatch(NUMBER.sub(" ", text)):
        return _Reading(None, len(text))
    for number in reversed(numbers):
        start = number.end() - len(number.group().lstrip())
        before = text[max(0, start - 60) : start]
        if _NOT_THIS.search(before):
            continue
        several = _ONE_OF_SEVERAL.search(before) or _SEVERAL_FOLLOW.match(text[number.end() : number.end() + 60])
        return _Reading(None if several else plain_digits(number), number.end())
    return None


def _marked(text: str) -> _Reading | None:
    found = [box for box in boxes(text) if box.content]
    places = [(box.start, text.find(box.content, box.start), box.content) for box in found]
    for mark in _MARK.finditer(text):
        line = _LINE.match(text, mark.end())
        places.append((mark.start(), mark.end(), line.group() if line else ""))
    for start, said in stated(text):
        places.append((start, text.find(said, start), _SENTENCE_END.split(said, maxsplit=1)[0]))
    recent = found[-20:]
    joined = {
        after.start
        for before, after in zip(recent, recent[1:], strict=False)
        if before.content != after.content and side_by_side(text[before.end : after.start])
    }
    for start, begin, piece in sorted(places, reverse=True):
        if _NOT_THIS.search(text[max(0, start - 60) : start]):
            continue
        reading = _stated_number(piece, begin)
        if reading:
            return _Reading(None, reading.end) if start in joined else reading
    return None


def _stated_number(piece: str, begin: int, whole: bool = False) -> _Reading | None:
    """The number that a piece of text states: at its beginning, or as what an equation there comes to.

    Args:
        piece: The text.
        begin: Its place in the response.
        whole: The number, with a unit, must be all of its clause.
    """
    lead = _number_at(piece, 0)
    equals = piece.rfind("=") + 1
    if equals and (lead is None or _OPERATOR.match(piece, lead.end())):
        lead = _number_at(piece, equals)
        if lead and _OPERATOR.match(piece, lead.end()):
            return None
    if lead is None or (whole and not _CLAUSE_END.match(piece, lead.end())):
        return None
    if _SEVERAL_FOLLOW.match(piece[lead.end() : lead.end() + 60]):
        return _Reading(None, begin + lead.end())
    if _OPERATOR.match(piece, lead.end()):
        return None
    return _Reading(plain_digits(lead), begin + lead.end())


def _number_at(piece: str, start: int) -> re.Match[str] | None:
    lead_in = _LEAD_IN.match(piece, start)
    return NUMBER.match(piece, lead_in.end() if lead_in else start)


def score_number(example: Example, text: str) -> Score:
    """Score a worked solution by its number; ``format_ok`` asks for a last line ``#### N``."""
    parsed = parse_number(text)
    correct = parsed is not None and example.answer is not None and same_number(parsed, example.answer)
    last = text.rstrip().rpartition("####")
    form = NUMBER.fullmatch(last[2].strip().rstrip(".")) if last[1] else None
    return Score(correct=correct, parsed=parsed, format_ok=form is not None)
