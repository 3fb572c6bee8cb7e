"""Compares two mathematical expressions: as text and numerals where that decides, else with math-verify."""

from __future__ import annotations

import re

from cl_bench.tasks.scoring.math_checker import MathChecker, Verdict
from cl_bench.tasks.scoring.number import same_number

_LONGEST_EXPRESSION = 1_500
"""Characters beyond which an answer is compared as text only; the longest of MATH-500 has 150."""

_NUMERAL = re.compile(r"[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d*)?")
# A numeral and its unit in words, which math-verify would take for a product of letters.
_QUANTITY = re.compile(
    r"(\\?\$?[-+−]?[\d,]*\.?\d+)(?:\s*\\text\s?\{[^{}]*\}|\s*(?:cm|mm|km|kg|mg|ml|mL|ft|in|mi|lb|oz|hr|mph|dm)\b"
    r"|\s+(?!(?:and|or|plus|minus|times|over|sqrt|sin|cos|tan|log)\b)[A-Za-z]{3,}[A-Za-z /]*)(?:\s?\^\s?\{?[23]\}?)?"
)
_IN_BASE = re.compile(r"([0-9A-Za-z]+)_\{?(\d{1,2})\}?")
_TEXT = re.compile(r"\\(?:text(?:bf|it|rm)?|math(?:rm|bf|it)|mbox|operatorname)\s*\{([^{}]*)\}")
_DROPPED = re.compile(
    r"\\left(?![a-z])|\\right(?![a-z])|\\[!,;: ]|\\q?quad|\\displaystyle|\\?\$|\\?%"
    r"|\^\s*\{?\s*\\(?:circ|degree)\s*\}?|°|\\degree\b"
)
_FRACTION = re.compile(r"\\[dtc]frac")
_SHORT_FRACTION = re.compile(r"\\frac\s*(\d)\s*(\d)(?!\d)")
_PLAIN_NOTATION = (
    (re.compile(r"(?:(?<![\\A-Za-z])sqrt|√)\s?\(([^()]{1,200})\)"), r"\\sqrt{\1}"),
    (re.compile(r"√\s?(\d+|[a-z])"), r"\\sqrt{\1}"),
    (re.compile(r"(?<![\\A-Za-z])(pi|sin|cos|tan|log|ln)(?![A-Za-z])"), r"\\\1 "),
    (re.compile(r"(?<![\\A-Za-z])(?:infinity|inf|oo)(?![A-Za-z])|∞"), r"\\infty "),
    (re.compile(r"<=|≤"), r"\\le "),
    (re.compile(r">=|≥"), r"\\ge "),
    (re.compile(r"\*\*"), "^"),
    (re.compile(r"\*"), r"\\cdot "),
)
_ONE_WORD = re.compile(r"[A-Za-z]{4,}")


def normalise_math(text: str) -> str:
    """An expression as text, without what never changes its value: spacing, sizes of brackets, units of degree."""
    for _ in range(2):  # commands within commands
        text = _TEXT.sub(r"\1", text)
    text = _DROPPED.sub("", text.replace("{,}", ",").replace("−", "-"))
    text = _SHORT_FRACTION.sub(r"\\frac{\1}{\2}", _FRACTION.sub(r"\\frac", text))
    text = "".join(text.split()).rstrip(".")
    lone_letter = re.fullmatch(r"\(([A-Za-z])\)", text)
    return lone_letter.group(1) if lone_letter else text


def same_math(gold: str, answer: str, checker: MathChecker) -> Verdict:
    """Whether an answer has gold's value; a problem is named where only the texts could be compared."""
    wanted, given = normalise_math(gold), normalise_math(answer)
    if not wanted or not given:
        return Verdict(False)
    if wanted == given:
        return Verdict(True)
    if len(answer) > _LONGEST_EXPRESSION:
        return Verdict(False)
    if _NUMERAL.fullmatch(wanted) and (quantity := _QUANTITY.fullmatch(answer.strip())):
        given = normalise_math(quantity.group(1))
    for decide in (_as_numerals, _in_bases, _as_words):
        decided = decide(wanted, given)
        if decided is not None:
            return Verdict(decided)
    verdict = checker.equal(_latex(gold), _latex(answer))
    return Verdict(bool(verdict.equal), verdict.problem)


def _as_numerals(wanted: str, given: str) -> bool | None:
    """Plain numerals: decided here, a hundred times faster than by math-verify."""
    if all(_NUMERAL.fullmatch(text) and text.strip("+-.") for text in (wanted, given)):
        return same_number(wanted.lstrip("+"), given.lstrip("+"))
    return None


def _in_bases(wanted: str, given: str) -> bool | None:
    """Numerals with their base as a subscript, which math-verify drops; an answer may leave gold's base out."""
    gold, answer = (_IN_BASE.fullmatch(text) for text in (wanted, given))
    if gold:
        digits, base = answer.groups() if answer else (given, gold.group(2))
        return digits.upper().lstrip("0") == gold.group(1).upper().lstrip("0") and base == gold.group(2)
    if answer and _NUMERAL.fullmatch(wanted):
        return _value_in_base(*answer.groups()) == wanted.replace(",", "")
    return None


def _value_in_base(digits: str, base: str) -> str | None:
    try:
        return str(int(digits, int(base)))
    except ValueError:
        return None


def _as_words(wanted: str, given: str) -> bool | None:
    """Words, which math-verify takes for products of letters in any order."""
    if _ONE_WORD.fullmatch(wanted):
        return wanted.casefold() == given.casefold()
    return None


def _latex(text: str) -> str:
    """The expression in LaTeX without dollars: the usual plain notations are rewritten."""
    text = re.sub(r"\\?[$%]", "", text).strip(" .\n")
    for pattern, latex in _PLAIN_NOTATION:
        text = pattern.sub(latex, text)
    return text
