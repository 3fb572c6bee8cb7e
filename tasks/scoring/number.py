"""Reads the number that a worked solution ends with."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation

from cl_bench.tasks.base import Example, Score

_NUMBER = re.compile(r"-?\$?(?:\d[\d,]*(?:\.\d+)?|\.\d+)")
_MARKED = re.compile(r"####\s*(-?\$?[\d,]*\.?\d+)")
_FORM = re.compile(r".*####\s*-?\$?[\d,]*\.?\d+\.?\s*", re.DOTALL)


def parse_number(text: str) -> str | None:
    """The number after the last ``####``, else the last number of the text, in plain digits; None without any."""
    marked = _MARKED.findall(text)
    found = marked or _NUMBER.findall(text)
    return _plain(found[-1]) if found else None


def _plain(number: str) -> str:
    return number.replace(",", "").replace("$", "").rstrip(".")


def same_number(first: str, second: str) -> bool:
    """Whether two numerals have one value ("18" and "18.0" do)."""
    try:
        return Decimal(_plain(first)) == Decimal(_plain(second))
    except InvalidOperation:
        return False


def score_number(example: Example, text: str) -> Score:
    """Score a worked solution by its last number; ``format_ok`` asks for a last line ``#### N``."""
    parsed = parse_number(text)
    correct = parsed is not None and example.answer is not None and same_number(parsed, example.answer)
    return Score(correct=correct, parsed=parsed, format_ok=_FORM.fullmatch(text) is not None)
