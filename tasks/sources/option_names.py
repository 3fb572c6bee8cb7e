"""Whether a text names options by letter, number or place, so that their order matters to it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from cl_bench.tasks.scoring.options import LETTERS

OPTION = r"\b(?i:options?|choices?|answers?|alternatives?)"
_NUMBERED = r"\b(?i:options?|choices?|alternatives?)"
_ROMAN = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X")
_PAIR = r"(?i:both|either|neither)"
_ALONE = r"(?i:only|alone)"
_JOIN = r"\s*(?:[,;&]|\b(?:and|or|nor)\b)+\s*"
_VERDICT = r"(?:is|are)\s+(?:\w+\s+)?(?i:correct|incorrect|right|wrong|true|false)\b"
_PLACES = re.compile(
    r"\b(?:all|none|any|both|either|neither|most|two|three)\s+(?:of\s+)?(?:the\s+)?"
    r"(?:above|below|preceding|following|previous|foregoing|others|rest|these|those|them|options?|choices?|answers?)\b"
    r"|\b(?:the|as|listed|stated|mentioned)\s+above\b(?!-)"
    r"|\b(?:first|second|third|fourth|last|previous|preceding|next)\s+(?:\w+\s+)?(?:options?|choices?|answers?)\b"
    r"|\A\W*(?:all|none|any|both|either|neither)\W*\Z"
    rf"|\b(?:all|none|both|either|neither)\s+(?:of\s+)?(?:the\s+)?(?:(?:statement|assertion|claim)s?\s+)?{_VERDICT}",
    re.IGNORECASE,
)
"""Words of an option that mean other options ("none of the above"). In a question they mean no letter."""
_ORDINAL = (
    r"\b(?i:(?:first|second|third|fourth|fifth|last|previous|next)\s+(?:\w+\s+)?(?:option|choice|alternative)s?)\b"
)


def names_options(question: str, options: Sequence[str]) -> bool:
    """Whether the meaning of a row depends on the order of its options."""
    letters = LETTERS[: len(options)]
    other, named = _other_options(letters), _named(letters)
    if any(_PLACES.search(text) or other.search(text) or _is_combination(text, letters) for text in options):
        return True
    listed = all(re.search(rf"(?:^|\s)\(?{letter}[.):]\s", question) for letter in letters)
    return listed or any(named.search(text) for text in (question, *options))


def names_options_unusually(text: str, letters: str) -> bool:
    """Whether a worked answer names options in other ways than by capitals: "Option b", "(d)", "the last choice".

    Args:
        text: The worked answer.
        letters: Letters of the options.
    """
    return _unusual(letters).search(text) is not None


@cache
def _other_options(letters: str) -> re.Pattern[str]:
    """What names other options within an option."""
    capital, small, number = _capital(letters), _small(letters), _number(letters)
    bracketed, tight = rf"\([{letters.lower()}]\)", rf"\(?[{letters}]\)?"
    alternatives = (
        rf"{capital}{_JOIN}{capital}",
        rf"(?<![\w/+=-]){tight}(?:\s*[/+]\s*{tight})+(?![\w/+=-])",
        rf"\b(?:{_PAIR}|(?i:only|just|not))\s+{capital}",
        rf"{capital}\s+{_ALONE}\b",
        # Small letters are often words and variables: they count in pairs that say so, or as the whole option.
        rf"\A\W*(?:(?:{_PAIR}|(?i:only|just|not))\s+)?{small}(?:{_JOIN}{small})*(?:\s+{_ALONE})?\W*\Z",
        rf"{bracketed}(?:{_JOIN}|\s*[/+]\s*){bracketed}",
        rf"\b{_PAIR}\s+{small}{_JOIN}{small}",
        rf"{small}{_JOIN}{small}\s+(?:is|are)\b",
        rf"\b{_PAIR}\s+{number}{_JOIN}{number}",
        rf"{number}(?:{_JOIN}{number})*\s+{_VERDICT}",
        rf"{OPTION}\s+{number}",
    )
    return re.compile("|".join(alternatives))


@cache
def _named(letters: str) -> re.Pattern[str]:
    """An option named as such, in a question or an option."""
    return re.compile(rf"{OPTION}\s*:?\s*(?:{_capital(letters)}|{_certain(letters)})")


@cache
def _unusual(letters: str) -> re.Pattern[str]:
    small = _small(letters)
    alternatives = (
        rf"{OPTION}(?:\s+is)?\s*:?\s*{_certain(letters)}",
        rf"(?<!\w)\([{letters.lower()}]\)",
        rf"(?<![\w(])[{letters.lower()}]\)(?=\s)",
        rf"{small}{_JOIN}{small}",
        rf"{_NUMBERED}\s+{_number(letters)}",
        _ORDINAL,
    )
    return re.compile("|".join(alternatives))


def _capital(letters: str) -> str:
    return rf"(?<![^\s(\"'])\(?[{letters}]\)?(?![^\s).,;:!?\"'&])"


def _small(letters: str) -> str:
    return rf"(?:\([{letters.lower()}]\)|(?<![\w'-])[{letters.lower()}](?![\w'-]))"


def _certain(letters: str) -> str:
    """A small letter that is no word: "a" and "i" are words unless brackets, a sign or a verb follow."""
    small = letters.lower()
    ends = r"(?=\s*(?:\Z|[.,;:!?)/]|(?:and|or|nor|is|are|was)\b))"
    return rf"(?:\([{small}]\)|(?:(?![ai])[{small}]|[{small}]{ends})(?![\w'-]))"


def _number(letters: str) -> str:
    known = [name for place, roman in enumerate(_ROMAN[: len(letters)], start=1) for name in (str(place), roman)]
    return rf"(?<![\w.,-])\(?(?:{'|'.join(sorted(known, key=len, reverse=True))})\)?(?!\w|[.,]\d)"


def _is_combination(option: str, letters: str) -> bool:
    """Whether an option is one letter or several in order, as "B" and "ACD" are: it may mean other options."""
    found = [sign for sign in option if sign not in " .()"]
    return bool(found) and set(found) <= set(letters) and found == sorted(set(found))
