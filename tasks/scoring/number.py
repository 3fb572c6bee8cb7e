"""Reads the number that a worked solution ends with."""

from __future__ import annotations

import re
from fractions import Fraction

from cl_bench.tasks.base import Example, Score
from cl_bench.tasks.scoring.reading import LONGEST, answer_part, boxes, first_turn, stated, tagged

_LONGEST_NUMBER = 300
"""Digits beyond which two numerals are compared as text: exact arithmetic on longer ones only costs time."""

# Of the last three: 7/8 and \frac{7}{8}; 1.5e3, 1.5 × 10^3. A sign counts only where it does not stand between terms.
_PATTERN = (
    r"(?P<sign>(?<![\w)\]}])[-−])?\s?(?:US)?[$€£¥₹]?\s?(?P<inner>(?<=[$€£¥₹])[-−])?"
    r"(?:\\[dt]?frac\s?\{\s?(?P<upper>\d{1,30})\s?\}\s?\{\s?(?P<lower>\d{1,30})\s?\}"
    r"|(?=\.?\d)(?P<whole>\d{1,3}(?:,\d{2})*(?:,\d{3})+(?!\d)|\d+)?(?P<part>\.\d+)?"
    r"(?:[eE](?P<power>[-+]?\d{1,3})(?![\w.])|\s?(?:×|\\times|\*)\s?10\s?\^\s?\{?(?P<ten>[-−+]?\d{1,3})\}?"
    r"|\s?/\s?(?P<divisor>\d{1,30})(?![\d/.]))?)"
)
_NUMBER = re.compile(_PATTERN)
_OPERATOR = re.compile(r"\s*(?:[-−+/×÷·^]|\*(?!\*)|\\times|\\cdot|\\div)\s*[\d(\\$]")
_LEAD_IN = re.compile(
    r"(?:\s|[*_`:=≈~(\[$]|\\[(\[$]|\\approx|\b(?:approximately|about|exactly|therefore|thus|only)\b)*", re.IGNORECASE
)
_MARK = re.compile(r"####")
_LINE = re.compile(r"[^\n]{0,400}")
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)")
_GROUPS = re.compile(r"(?<=\d)(?:\{,\}|\\[,!:;]|\u2009|\u202f)(?=\d{3})")


def parse_number(text: str) -> str | None:
    r"""The number a response gives as its answer, in plain digits, or None.

    A marked number wins over numbers that follow it, for what follows is a check, a unit or the next question. Marks
    are ``####``, ``\boxed{…}``, ``<answer>`` and "answer is" or "answer:"; of several, the last one that has a number
    decides. Without a mark it is the last number of the text. After a mark the number is the first one, or the first
    one after the last "=" ("#### 3 + 4 = 7"); a sum that is not carried out is no marked number.

    Understood are thousands separators, signs (also the Unicode minus), currencies, scientific notation (``1.5e3``,
    ``1.5 × 10^3``) and simple fractions (``3/4``, ``\frac{3}{4}``). A percent sign is a unit: 25% is 25.
    """
    text = answer_part(text)
    content = tagged(text)
    text = _GROUPS.sub(lambda match: "," if match.group() == "{,}" else "", (content or text)[-LONGEST:])
    turn = first_turn(text)
    return _marked(turn) or _marked(text) or _last(text)


def _last(text: str) -> str | None:
    found = list(_NUMBER.finditer(text))
    return _plain(found[-1]) if found else None


def _marked(text: str) -> str | None:
    places = [(box.start, box.content) for box in boxes(text)]
    for mark in _MARK.finditer(text):
        line = _LINE.match(text, mark.end())
        places.append((mark.start(), line.group() if line else ""))
    places += [(start, _SENTENCE_END.split(line, maxsplit=1)[0]) for start, line in stated(text)]
    numbers = (_stated_number(piece) for _, piece in sorted(places, reverse=True))
    return next((number for number in numbers if number is not None), None)


def _stated_number(piece: str) -> str | None:
    """The number that a marked piece of text states: at its beginning, or after its last equals sign."""
    result = piece.rpartition("=")[2]
    lead_in = _LEAD_IN.match(result)
    number = _NUMBER.match(result, lead_in.end() if lead_in else 0)
    if number is None or _OPERATOR.match(result, number.end()):
        return None
    return _plain(number)


def _plain(number: re.Match[str]) -> str:
    sign = "-" if (number["sign"] is None) != (number["inner"] is None) else ""
    if number["upper"]:
        return f"{sign}{number['upper']}/{number['lower']}"
    digits = (number["whole"] or "0").replace(",", "") + (number["part"] or "")
    if number["divisor"]:
        return f"{sign}{digits}/{number['divisor']}"
    power = number["power"] or number["ten"]
    return f"{sign}{digits}" + (f"e{power.replace('−', '-')}" if power else "")


def same_number(first: str, second: str) -> bool:
    """Whether two numerals have one value: 18 and 18.0 do, so do 3/4 and 0.75."""
    values = [_value(text) for text in (first, second)]
    return None not in values and values[0] == values[1]


def _value(text: str) -> Fraction | str | None:
    number = _NUMBER.fullmatch(text.strip().rstrip(".%"))
    if number is None:
        return None
    numeral = _plain(number)
    if len(numeral) > _LONGEST_NUMBER:
        return numeral
    upper, _, lower = numeral.partition("/")
    if not lower:
        return Fraction(upper)
    return Fraction(upper) / Fraction(lower) if int(lower) else None


def score_number(example: Example, text: str) -> Score:
    """Score a worked solution by its number; ``format_ok`` asks for a last line ``#### N``."""
    parsed = parse_number(text)
    correct = parsed is not None and example.answer is not None and same_number(parsed, example.answer)
    last = text.rstrip().rpartition("####")
    form = _NUMBER.fullmatch(last[2].strip().rstrip(".")) if last[1] else None
    return Score(correct=correct, parsed=parsed, format_ok=form is not None)
