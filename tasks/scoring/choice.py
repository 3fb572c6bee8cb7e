"""Reads the letter of a multiple-choice answer."""

from __future__ import annotations

import re

from cl_bench.tasks.base import Example, Score

LETTERS = "ABCDEFGHIJ"

_TAGGED = re.compile(r"<answer>(.*?)(?:</answer>|\Z)", re.DOTALL | re.IGNORECASE)
_STATED = re.compile(
    r"(?:answer|option|choice)(?:\s+is)?(?:\s+option)?\s*[:=]?\s*(?:\*\*|\()?\s*([A-J])(?![A-Za-z'])",
    re.IGNORECASE,
)
_WRAPPED = re.compile(r"\*\*\s*\(?([A-J])[).:]?\s*\*\*|\\boxed\{\s*([A-J])\s*\}")
_BARE = re.compile(r"\(?([A-J])(?:\s*[).:](?:\s.*)?)?", re.DOTALL)
_LISTED = re.compile(r"^\s*\(?([A-J])[).:]", re.MULTILINE)
_FORM = re.compile(r"\s*<reasoning>.*?</reasoning>\s*<answer>\s*([A-J])\s*</answer>\s*", re.DOTALL)


def parse_choice(text: str, count: int = 4) -> str | None:
    """The letter a response settles on, or None.

    In order: the content of the last ``<answer>``; the last statement such as "the answer is B" or "Answer: (B)"; the
    last letter in bold or in a box; a response that is a letter alone, or begins with one set off ("B. Water").

    Args:
        text: The response.
        count: Number of options; later letters are no answers.
    """
    letters = LETTERS[:count]
    tagged = _TAGGED.findall(text)
    if tagged:
        return _last(letters, _bare(tagged[-1])) or _last(letters, *_statements(tagged[-1]))
    return _last(letters, *_statements(text)) or _last(letters, *_wrapped(text)) or _last(letters, _bare(text))


def _statements(text: str) -> list[str]:
    # "a" is an article far more often than an answer, so a stated letter must be a capital.
    return [match.group(1) for match in _STATED.finditer(text) if match.group(1).isupper()]


def _wrapped(text: str) -> list[str]:
    return [match.group(1) or match.group(2) for match in _WRAPPED.finditer(text)]


def _bare(text: str) -> str:
    stripped = text.strip()
    if len(stripped) == 1:
        return stripped.upper()
    if len(set(_LISTED.findall(stripped))) > 1:
        # The options said again are no answer, though the text begins with a letter set off.
        return ""
    match = _BARE.fullmatch(stripped)
    return match.group(1) if match else ""


def _last(letters: str, *found: str) -> str | None:
    known = [letter for letter in found if letter and letter in letters]
    return known[-1] if known else None


def score_choice(example: Example, text: str) -> Score:
    """Score a multiple-choice response.

    ``correct`` takes any form that ``parse_choice`` reads; ``format_ok`` asks for ``<reasoning>…</reasoning>`` followed
    by ``<answer>X</answer>`` and nothing else.
    """
    count = len(example.choices or LETTERS[:4])
    parsed = parse_choice(text, count)
    form = _FORM.fullmatch(text)
    format_ok = form is not None and form.group(1) in LETTERS[:count]
    return Score(correct=parsed is not None and parsed == example.answer, parsed=parsed, format_ok=format_ok)
