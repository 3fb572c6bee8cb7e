"""Scores answers of mathematics problems by their value."""

from __future__ import annotations

import re

from cl_bench.tasks.base import Example, Score
from cl_bench.tasks.scoring.math_checker import math_checker
from cl_bench.tasks.scoring.math_values import same_math
from cl_bench.tasks.scoring.number import parse_number
from cl_bench.tasks.scoring.reading import LONGEST, Box, answer_part, boxes, first_turn, last_boxed, stated, tagged

_DISPLAY_OPEN = re.compile(r"(\\\[|\$\$)[ \n]{1,8}")
_DISPLAY_CLOSE = re.compile(r"[ \n]{1,8}(\\\]|\$\$)")
_DELIMITER = re.compile(r"(?<!\\)\$\$?|\\[()\[\]]")
_CLOSES = {"$": "$", "$$": "$$", r"\(": r"\)", r"\[": r"\]"}
_BETWEEN_ANSWERS = re.compile(r"[\s$,;.]*(?:and|or)?[\s$,;.]*")
_SENTENCE_END = re.compile(r"[.!?](?=\s+[A-Z]|\s*$)")
_COMMANDS = re.compile(
    r"\\(?:begin|end)\s?\{[a-z]*\*?\}|\\(?:text|mathrm|mbox|textbf|operatorname)\s?\{[^{}]*\}|\\[A-Za-z]+"
)
_FUNCTIONS = re.compile(r"(?<![A-Za-z])(?:sqrt|pi|sin|cos|tan|log|ln|exp|inf|infinity|oo)(?![A-Za-z])")
_WORDS = re.compile(r"[A-Za-z]{3,}")
_ONE_WORD = re.compile(r"[A-Za-z]{4,}")


def parse_math(text: str) -> str | None:
    r"""The expression a response gives as its answer, as it is written, or None.

    Read is, in this order: the last ``\boxed{…}`` (boxes joined by a comma, "and" or "or" are one answer); the content
    of ``<answer>``; what follows the last "answer is" or "answer:"; the last ``$…$``, ``\(…\)`` or ``\[…\]``; the whole
    text, where it is an expression and no prose; the last number.
    """
    text = answer_part(text)
    turn = first_turn(text)[-LONGEST:]
    if boxed := _boxed(turn) or _boxed(text[-LONGEST:]):
        return boxed
    content = tagged(text)
    if content is not None:
        return _read(content) if content else None
    return _read(turn) or _read(text[-LONGEST:])


def _boxed(text: str) -> str | None:
    found = [box for box in boxes(text) if box.content]
    if not found:
        return None
    group = [found[-1]]
    for box in reversed(found[:-1]):
        if not _BETWEEN_ANSWERS.fullmatch(text, box.end, group[-1].start) or box.end > group[-1].start:
            break
        group.append(box)
    return ", ".join(box.content for box in reversed(group))


def _read(text: str) -> str | None:
    text = _DISPLAY_CLOSE.sub(r"\1", _DISPLAY_OPEN.sub(r"\1", text)).strip()
    for _, line in stated(text):
        if expression := _stated_expression(line):
            return expression
    if segments := _segments(text):
        return segments[-1].content
    bare = _bare(text)
    return bare if _is_expression(bare) else parse_number(text)


def _stated_expression(line: str) -> str | None:
    segments = _segments(line)
    if segments:
        ends = [0, *(place for segment in segments for place in (segment.start, segment.end)), len(line)]
        between = "".join(line[begin:end] for begin, end in zip(ends[::2], ends[1::2], strict=True))
        contents = [segment.content for segment in segments]
        return ", ".join(contents) if _BETWEEN_ANSWERS.fullmatch(between) else contents[0]
    bare = _bare(_SENTENCE_END.split(line, maxsplit=1)[0])
    return bare if _is_expression(bare) else parse_number(bare)


def _segments(text: str) -> list[Box]:
    r"""What stands between ``$…$``, ``$$…$$``, ``\(…\)`` and ``\[…\]``, in order."""
    found: list[Box] = []
    opened: re.Match[str] | None = None
    for mark in _DELIMITER.finditer(text):
        if opened is not None and mark.group() == _CLOSES[opened.group()]:
            content = text[opened.end() : mark.start()].strip().rstrip(".,")
            if content:
                found.append(Box(opened.start(), mark.end(), content))
            opened = None
        elif mark.group() in _CLOSES:
            opened = mark
    return found


def _bare(text: str) -> str:
    return text.strip(" \n*`\"'").rstrip(".").strip(" *")


def _is_expression(text: str) -> bool:
    """Whether a text is a formula, or one word, rather than prose."""
    if not text or len(text) > 300 or any(mark in text for mark in ("\n", "####", r"\boxed")):
        return False
    words = _WORDS.findall(_FUNCTIONS.sub(" ", _COMMANDS.sub(" ", text)))
    return not words or _ONE_WORD.fullmatch(text) is not None


def score_math(example: Example, text: str) -> Score:
    r"""Score a worked solution by its final answer (see ``parse_math``); ``format_ok`` asks for a ``\boxed{…}``.

    Answers that are equal as text, numerals, numerals in a base, and words are decided here; the rest by math-verify,
    gold first, within a time limit. Where it takes longer or fails, the texts decide (they differ, so the answer counts
    as wrong) and ``unreliable`` says why. What math-verify calls unequal stays so: it does not see that ``x > 0`` is
    the interval ``(0, \infty)``.
    """
    parsed = parse_math(text)
    format_ok = last_boxed(answer_part(text)[-LONGEST:]) is not None
    if parsed is None:
        return Score(correct=False, parsed=None, format_ok=format_ok)
    verdict = same_math(example.answer or "", parsed, math_checker())
    return Score(correct=bool(verdict.equal), parsed=parsed, format_ok=format_ok, unreliable=verdict.problem)
