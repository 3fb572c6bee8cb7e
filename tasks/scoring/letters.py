"""Reads option letters in plain text: one, or a list of several, at a place where a statement names its answer."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from cl_bench.tasks.scoring.options import Options

TOKEN = re.compile(r"([(\[{\"'\x02]{0,3})([A-Ja-j])([)\]}\"'\x03]{0,3})(?![A-Za-z0-9_(=#\[@+'])")
_ONE_LETTER = re.compile(r"[(\[{\"'\x02]{0,3}[A-Z](?=[)\]}\"'\x03.]{0,4}\s*(?:\n|$))")
_SEPARATOR = re.compile(
    r"(?:\.(?=\sor\s[(\[]?[A-J]\b))?\s*(?:,?\s?but also|,?\s?as well as|,?\s?along with|"
    r"(,)\s*(?:or|and)?|(\band)|/|&|\+|;|\bor\b|and/or"
    r"|[-–](?=[A-J]\b)|\((?=(?:or|and|possibly|maybe|perhaps|alternatively)\b)(?:or|and)?|(?=\x02))"
    r"\s*(?:(?:also|maybe|possibly|perhaps|alternatively|else|even|the|option|choice|answer|letter),?\s+){0,6}",
    re.IGNORECASE,
)
# "B C", "B. C.": nothing but letters to the end of the line.
_NEIGHBOUR = re.compile(r"\.? (?=(?:[(\[]?[A-J][)\].]* ?){1,9}(?:$|\n))")
# After "A," or "A and": a second letter with a verb begins another sentence ("the answer is A, B is wrong").
_VERB = re.compile(
    r"\s+(?:is|are|was|were|has|have|gives?|would|could|can|cannot|does|do|isn't|can't|doesn't)\b", re.IGNORECASE
)
_FILLER = re.compile(
    r"(?:(?:either|both|only|simply|just|therefore|thus|then|hence|clearly|indeed|obviously|still|definitely|certainly|"
    r"most likely|likely|probably|in fact|also|actually|the|correct|approximately|about|roughly|around|"
    r"option|choice|answer|letter|number|statement)"
    r"\b[,:]?\s*|:\s*|[-•]\s(?=[(\[]?[A-J]\b)){0,12}",
    re.IGNORECASE,
)
_NOT = re.compile(r"(?:not|never|neither|none of)\b\s*", re.IGNORECASE)
_BUT = re.compile(
    r"\s*[,;.—–-]?\s*(?:(?:but|rather|instead|it's|it is|it must be|the answer is)\b\s*){1,6}", re.IGNORECASE
)
_OTHER_MARK = re.compile(r"[(\[]?[A-J][)\]]?\s?[;—–]\s?(?=[(\[]?[A-J][)\].!]{0,2}\s*(?:\n|$))")
# "The answer is 46.07 (B)."
_CLOSING = re.compile(r"[^\s(]\s\(([A-J])\)[.\s]*$")
_STRICT_END = re.compile(r"\s*(?:$|\n|[.;!](?:\s|$)|\x03)")
_TRAILING_OFF = re.compile(r"\.{2,9}\s?(?:$|\n)")
_ARROW = re.compile(r" [-=]{1,2}> ?[(\[]?[A-J](?![A-Za-z0-9_])")
_WORD = re.compile(r"\s*([A-Za-z]+)")
# "A" before any other word is the article, "I" the pronoun.
_AFTER_A = re.compile(
    r"(?:because|since|as|is|was|has|does|can|will|must|should|could|would|due|which|for|the|this|that|if|so|but|rather|"
    r"instead|from|in|on|by|with|it|we|not|than|and|or|while|whereas|although|though)",
    re.IGNORECASE,
)
_AFTER_I = re.compile(r"(?:because|since|is|due|which)", re.IGNORECASE)


class Reading(NamedTuple):
    """What stands at a place: one letter, or None for several (which is no answer); and where it ends."""

    letter: str | None
    end: int


def read_answer(text: str, start: int, options: Options, words: bool = True) -> Reading | None:
    """The answer that a statement names from ``start`` on: an option's own words, a letter, or a list of letters.

    "not A but B" is B; "not A" alone names nothing; "A or B" is a reading without a letter, and so is a lone capital
    that is no option.

    Args:
        text: A plain text.
        start: Where the answer should begin.
        options: The options.
        words: Whether an option may be named by its text.
    """
    place = _skip(_FILLER, text, start)
    if counted := options.counted(text, place):
        return Reading(*counted)
    found = _read_words(text, (place, start), options) if words else None
    if found is None and (negation := _NOT.match(text, place)):
        return read_contrast(text, negation.end(), options)
    return found or read_letters(text, place, options)


def read_contrast(text: str, start: int, options: Options) -> Reading | None:
    """What is named after a denial that ends at ``start``: B in "(not) A but B", "(not) A, it is B" or "(not) A; B"."""
    place = _skip(_FILLER, text, start)
    if other := _OTHER_MARK.match(text, place):
        return read_letters(text, other.end(), options)
    excluded = read_letters(text, place, options)
    contrast = _BUT.match(text, excluded.end) if excluded else None
    return read_letters(text, _skip(_FILLER, text, contrast.end()), options) if contrast else None


def _skip(pattern: re.Pattern[str], text: str, start: int) -> int:
    match = pattern.match(text, start)
    return match.end() if match else start


def _read_words(text: str, places: Iterable[int], options: Options) -> Reading | None:
    for place in dict.fromkeys(places):
        piece = text[place : place + options.reach].split("\n", 1)[0]
        closing = None if _NOT.match(piece) else _CLOSING.search(piece)
        letter = closing.group(1) if closing else options.named(piece) or options.begins(piece)
        if letter:
            return Reading(letter if letter in options.letters else None, place + len(piece))
    return None


def read_letters(text: str, start: int, options: Options) -> Reading | None:
    """The letter, or the list of letters, that begins at ``start``; None where none does."""
    token = TOKEN.match(text, start)
    if token is None or not _stands_alone(text, token, options):
        return Reading(None, start + 1) if _ONE_LETTER.match(text, start) else None
    first = token.group(2).upper()
    letters, end = {first}, token.end()
    while separator := _separator(text, token.group(2), end, options):
        token = TOKEN.match(text, separator.end())
        if token is None or not _continues(text, token, separator, options):
            break
        letters.add(token.group(2))
        end = token.end()
    known = len(letters) == 1 and first in options.letters and not options.contradicts(first, text, end)
    return Reading(first if known else None, end)


def _separator(text: str, letter: str, end: int, options: Options) -> re.Match[str] | None:
    """What joins the letter to another one, before or after the letter's own text ("A) ice or B) steam")."""
    own = options.own_end(letter, text, end)
    after_own = None if own is None else _SEPARATOR.match(text, own)
    if after_own or (own is not None or options.is_letter(letter)):
        return after_own or _SEPARATOR.match(text, end)
    return _SEPARATOR.match(text, end) or _NEIGHBOUR.match(text, end)


def _continues(text: str, token: re.Match[str], separator: re.Match[str], options: Options) -> bool:
    if token.group(2).islower():
        return False
    if separator.lastindex and _VERB.match(text, token.end()):
        return False
    return _SEPARATOR.match(text, token.end()) is not None or _stands_alone(text, token, options)


def _stands_alone(text: str, token: re.Match[str], options: Options) -> bool:
    """Whether a letter is set off from what follows it, so that it is neither an article nor part of a word."""
    letter, end = token.group(2), token.end()
    wrapped = bool(token.group(1) and token.group(3))
    if letter.islower():
        return letter.upper() in options.letters and (wrapped or _STRICT_END.match(text, end) is not None)
    rest = text[end : end + options.reach + 2]
    if not rest.strip() or rest[0] == "\n":
        return True
    if token.group(3) or options.own_at(letter, text, end) or _list_goes_on(text, end):
        return True
    if _TRAILING_OFF.match(rest):
        return True
    if rest[0] in ".:":
        return _ends_at_mark(letter, rest, options)
    if rest[0] == " ":
        return _ends_at_space(letter, text[token.start(2) : end] + rest, rest, options)
    return rest[0] in ",;!?—–→" or ord(rest[0]) > 0x2E80  # from there on: Chinese, Japanese, Korean


def _list_goes_on(text: str, start: int) -> bool:
    separator = _SEPARATOR.match(text, start) or _NEIGHBOUR.match(text, start)
    following = TOKEN.match(text, separator.end()) if separator else None
    return following is not None and following.group(2).isupper()


def _ends_at_mark(letter: str, rest: str, options: Options) -> bool:
    following = rest[1:2]
    if following in ("", "\n") or rest[0] == ":":
        return True
    if following == " ":
        # "C. elegans" is a name; only the letter's own text may go on in lower case, or a reason.
        word = _WORD.match(rest, 1)
        return not (options.texts and word and word.group(1)[0].islower() and not _AFTER_A.fullmatch(word.group(1)))
    return following.isupper() and rest[2:3].islower()


def _ends_at_space(letter: str, whole: str, rest: str, options: Options) -> bool:
    word = _WORD.match(rest)
    if word is None:
        return _ARROW.match(rest) is not None or rest.strip()[0] not in "=+*/<>^&|~≈%0123456789"
    if letter in "AI":
        return (_AFTER_A if letter == "A" else _AFTER_I).fullmatch(word.group(1)) is not None
    return options.begins(whole) is None
