"""Compares two mathematical expressions: as text and numerals where that decides, else with math-verify."""

from __future__ import annotations

import itertools
import re
from fractions import Fraction

from cl_bench.tasks.scoring.math_checker import MathChecker, Verdict
from cl_bench.tasks.scoring.math_notation import has_decimal, latex, mixed_numbers
from cl_bench.tasks.scoring.numerals import same_number, value_of

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
    r"\\left(?![a-z])|\\right(?![a-z])|\\[!,]|\\displaystyle|\\?\$|\\?%"
    r"|\^\s*\{?\s*\\(?:circ|degree)\s*\}?|°|\\degree\b"
)
_SPACE = re.compile(r"\\[;: ]|\\q?quad")
_SPACE_IN_FORMULA = re.compile(r"(?<!\d) | (?!\d)")
_SPACED_DIGITS = re.compile(r"\d \d")
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(?: \d{3})+(?:\.\d+)?")
_UNEQUAL = re.compile(r"\\neq?(?![A-Za-z])|\\not\s?=|≠|!=")
_PERCENTAGE = re.compile(r"\s*([-+−]?[\d,]*\.?\d+)\s*\\?%\s*")
_FRACTION = re.compile(r"\\[dtc]frac")
_SHORT_FRACTION = re.compile(r"\\frac\s*(\d)\s*(\d)(?!\d)")
_EQUALS = re.compile(r"(?<![<>!:=\\])=(?![=<>])")
_SEVERAL = re.compile(r",(?!\d{3}(?!\d))|;|\\cup|\\(?:text|mbox|mathrm)\s?\{\s?(?:and|or)\b|\b(?:and|or)\b")
_SUBSCRIPT = re.compile(r"_(?:\{[^{}]*\}|[A-Za-z0-9])")
# A name has letters and no arithmetic: x, y_1, f(x), AB, \angle ABC, \text{Area}.
_NAME = re.compile(r"(?=[^A-Za-z]*[A-Za-z])(?!\\d?frac|\\sqrt|\\pi\b)[A-Za-z\\(){}'\s|°]+")
_ARITHMETIC = re.compile(r"\\(?:[dt]?frac|sqrt|cdot|times|div|pm|pi|infty)(?![A-Za-z])")
_ONE_WORD = re.compile(r"[A-Za-z]{4,}")


def normalise_math(text: str) -> str:
    """An expression as text, without what never changes its value: spacing, sizes of brackets, units of degree."""
    text = mixed_numbers(text)
    for _ in range(2):  # commands within commands
        text = _TEXT.sub(r"\1", text)
    text = _DROPPED.sub("", text.replace("{,}", ",").replace("−", "-"))
    text = _SHORT_FRACTION.sub(r"\\frac{\1}{\2}", _FRACTION.sub(r"\\frac", text))
    # Between digits a space stays: "1 2" is not 12.
    text = _SPACE_IN_FORMULA.sub("", " ".join(_SPACE.sub(" ", text).split())).rstrip(".")
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
    if (percentage := _PERCENTAGE.fullmatch(answer)) and "%" not in gold:
        return Verdict(_as_percentage(wanted, percentage.group(1)))
    if _NUMERAL.fullmatch(wanted) and (quantity := _QUANTITY.fullmatch(answer.strip())):
        given = normalise_math(quantity.group(1))
    if _THOUSANDS.fullmatch(given):
        given = given.replace(" ", "")
    for decide in (_as_numerals, _in_bases, _as_words, _as_other_kind):
        decided = decide(wanted, given)
        if decided is not None:
            return Verdict(decided)
    return _by_value(gold, answer, checker)


def _by_value(gold: str, answer: str, checker: MathChecker) -> Verdict:
    """By math-verify. Decimals are exact unless gold is one: 0.333333 is not a third, which math-verify rounds to."""
    member, problem = _chain_member(gold, answer, checker)
    if member is None:
        return Verdict(False, problem)
    verdict = checker.equal(latex(gold), latex(member, exact=not has_decimal(gold)))
    return Verdict(bool(verdict.equal), verdict.problem)


def _chain_member(gold: str, answer: str, checker: MathChecker) -> tuple[str | None, str | None]:
    """What an equation or a chain of them comes to: 5 in "x = 5", "2 + 3 = 5", "x = 2 + 3 = 5"; None in "3 = 5".

    Names of the unknown are left out; the other members must have one value, and the last one counts. (math-verify
    reads the right side of whatever equation.) With as many equals signs as gold has, the answer stays as it is.

    Returns:
        The member, or None; and the problem that math-verify had, if any.
    """
    members = [member.strip() for member in _EQUALS.split(answer)]
    if len(members) <= len(_EQUALS.split(gold)) or _SEVERAL.search(answer):
        return answer, None
    values = [member for member in members if not _is_name(member)]
    if not values:
        return answer, None
    for left, right in itertools.pairwise(values):
        verdict = checker.equal(latex(left, exact=True), latex(right, exact=True))
        if not verdict.equal:
            return None, verdict.problem
    name = members[0] if _is_name(members[0]) and _EQUALS.search(gold) else None
    return f"{name} = {values[-1]}" if name else values[-1], None


def _is_name(text: str) -> bool:
    bare = _SUBSCRIPT.sub("", _TEXT.sub("Name", text))
    return _ARITHMETIC.search(bare) is None and _NAME.fullmatch(bare) is not None


def _as_percentage(wanted: str, percent: str) -> bool:
    """A percentage for a plain gold: 50% is both 50 (the question may ask for per cent) and 1/2."""
    gold, answer = value_of(wanted), value_of(percent)
    return isinstance(gold, Fraction) and isinstance(answer, Fraction) and gold in (answer, answer / 100)


def _as_other_kind(wanted: str, given: str) -> bool | None:
    """What math-verify reads over: digits that a space separates, and a sign of inequality that gold has not."""
    spaced = _SPACED_DIGITS.search(given) and not _SPACED_DIGITS.search(wanted)
    return False if spaced or (_UNEQUAL.search(given) and not _UNEQUAL.search(wanted)) else None


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
