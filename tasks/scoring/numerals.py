"""Numerals as people write them: what they look like, their plain digits, and their exact value."""

from __future__ import annotations

import re
import unicodedata
from fractions import Fraction

_LONGEST = 300
"""Digits beyond which two numerals are compared as text: exact arithmetic on longer ones only costs time."""

_SCALES = {"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12}
# Of the last alternatives: 1.5e3, 1.5 × 10^3, 1.5 million, 3/4. A sign that stands between two terms is no sign.
_PATTERN = (
    r"(?P<sign>(?<![\w)\]}])(?<![\d)\]}] )(?:[-−]|–(?=[\d.$€£]))|\b(?:minus|negative)\s(?<!\d minus\s))?"
    r"\s?(?:US)?[$€£¥₹]?\s?(?P<inner>(?<=[$€£¥₹])[-−])?"
    r"(?:\\[dt]?frac\s?\{\s?(?P<upper>\d{1,30})\s?\}\s?\{\s?(?P<lower>\d{1,30})\s?\}"
    r"|(?P<units>\d{1,12}) (?P<of>\d{1,6})\s?/\s?(?P<parts>\d{1,6})(?![\d/.])"
    r"|(?=\.?\d)(?P<whole>\d{1,3}(?:,\d{2})*(?:,\d{3})+(?!\d)|\d+)?(?P<part>\.\d+)?"
    r"(?:[eE](?P<power>[-+]?\d{1,3})(?![\w.])|\s?(?:×|\\times|\*)\s?10\s?\^\s?\{?(?P<ten>[-−+]?\d{1,3})\}?"
    r"|\s?(?P<scale>hundred|thousand|million|billion|trillion)\b|\s?/\s?(?P<divisor>\d{1,30})(?![\d/.]))?)"
)
NUMBER = re.compile(_PATTERN)

_GROUPS = re.compile(r"(?<=\d)(?:\{,\}|\\[,!:;]|[\u00a0\u2009\u202f'’])(?=\d{3}(?!\d))")
# With ordinary spaces only at the end of a line, mark or clause: "3 100 dollar bills" are two numbers.
_SPACED = re.compile(r"(?<![\d.,/])(?<!\d )\d{1,3}(?: \d{3}){1,6}(?=[.$}*)]{0,4}(?:\s*$|\n|<))")
_MIXED = re.compile(r"(?<=\d)\s?\\[dt]?frac\s?\{\s?(\d{1,6})\s?\}\s?\{\s?(\d{1,6})\s?\}")
_VULGAR = re.compile(r"(?:(?<=\d) ?)?([¼-¾⅐-⅞])")


def tidied(text: str) -> str:
    r"""The text with one way to write numerals: thousands apart only by commas, mixed numbers as "3 1/2".

    Rewritten are ``1{,}234``, ``1\,234``, 1'234, 1 234 (with an ordinary space only as the end of a statement),
    ``3\frac{1}{2}`` and 3½.
    """
    text = _GROUPS.sub(lambda match: "," if match.group() == "{,}" else "", text)
    text = _SPACED.sub(lambda match: match.group().replace(" ", ""), text)
    return _VULGAR.sub(_spelled, _MIXED.sub(r" \1/\2", text))


def _spelled(fraction: re.Match[str]) -> str:
    digits = unicodedata.normalize("NFKC", fraction.group(1)).replace("\u2044", "/")
    return f" {digits}" if fraction.start() and fraction.string[fraction.start() - 1].isdigit() else digits


def plain_digits(number: re.Match[str]) -> str:
    """A numeral that ``NUMBER`` has matched as "-1250.5", "7/2" or "1.5e3"."""
    sign = "-" if (number["sign"] is None) != (number["inner"] is None) else ""
    if number["upper"]:
        return f"{sign}{number['upper']}/{number['lower']}"
    if number["units"]:
        upper = int(number["units"]) * int(number["parts"]) + int(number["of"])
        return f"{sign}{upper}/{number['parts']}"
    digits = (number["whole"] or "0").replace(",", "") + (number["part"] or "")
    if number["divisor"]:
        return f"{sign}{digits}/{number['divisor']}"
    power = _SCALES.get(number["scale"] or "") or number["power"] or number["ten"]
    return f"{sign}{digits}" + (f"e{str(power).replace('−', '-')}" if power else "")


def value_of(text: str) -> Fraction | str | None:
    """Exact value of a numeral; its plain digits where it is too long for that; None where it is no numeral."""
    number = NUMBER.fullmatch(tidied(text.strip()).rstrip(".%"))
    if number is None:
        return None
    numeral = plain_digits(number)
    if len(numeral) > _LONGEST:
        return numeral
    upper, _, lower = numeral.partition("/")
    if not lower:
        return Fraction(upper)
    return Fraction(upper) / Fraction(lower) if int(lower) else None


def same_number(first: str, second: str) -> bool:
    """Whether two numerals have one value: 18 and 18.0 do, so do 3/4 and 0.75."""
    values = [value_of(text) for text in (first, second)]
    return None not in values and values[0] == values[1]
