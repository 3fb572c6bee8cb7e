"""Scores answers of mathematics problems by their value."""

from __future__ import annotations

import re

from cl_bench.tasks.base import Example, Score
from cl_bench.tasks.scoring.math_checker import math_checker
from cl_bench.tasks.scoring.math_values import same_math
from cl_bench.tasks.scoring.number import parse_number
from cl_bench.tasks.scoring.reading import (
    LONGEST,
    Box,
    answer_part,
    boxes,
    first_turn,
    last_boxed,
    side_by_side,
    stated,
    tagged_answer,
)
from cl_bench.tasks.scoring.retractions import retraction

_DISPLAY_OPEN = re.compile(r"(\\\[|\$\$)[ \n]{1,8}")
_DISPLAY_CLOSE = re.compile(r"[ \n]{1,8}(\\\]|\$\$)")
_DELIMITER = re.compile(r"(?<!\\)\$\$?|\\[()\[\]]")
_CLOSES = {"$": "$", "$$": "$$", r"\(": r"\)", r"\[": r"\]"}
_DENIED_BEFORE = re.compile(
    r"(?:\b(?:not|never|neither|nor|cannot be)|n't|n’t)\s(?:(?:be|equal(?: to)?)\s)?[\s$\\(\[{*]{0,6}$"
)
_DENIED = re.compile(r"(?:not|never|neither)\b", re.IGNORECASE)
_UNEQUAL = re.compile(r"\s*(?:\\neq?(?![A-Za-z])|\\not\s?=|≠|!=)")
_REMARK = re.compile(r",\s(?=[a-z]{2,}\b)|\s\((?=[a-z]{3,}\b)")
_LINE = re.compile(r"[^\n]{0,400}")
_SENTENCE_END = re.compile(r"[.!?](?=\s+[A-Z]|\s*$)")
_GIVES_REASON = re.compile(r"\b(?:because|since|as)\b", re.IGNORECASE)
_CHECKS = re.compile(
    r"(?:^|[.!?:;\n]\s{0,4})(?:let us |let me |let's |we |I |to )?(?:check|verif\w+|indeed)\b", re.IGNORECASE
)
_CONCLUDES = re.compile(r"\b(?:so|therefore|thus|hence|finally|conclu\w+)\b|∴|\\therefore", re.IGNORECASE)
_ENDS_SENTENCE = re.compile(r"[.!?](?:\s|$)|\n")
_HASH = re.compile(r"####[ \t]*(?=\S)")
_HEADING = re.compile(r"[A-Za-z]{4,}|\(?[a-z]\)")
_COMMANDS = re.compile(
    r"\\(?:begin|end)\s?\{[a-z]*\*?\}|\\(?:text|mathrm|mbox|textbf|operatorname)\s?\{[^{}]*\}|\\[A-Za-z]+"
)
_FUNCTIONS = re.compile(r"(?<![A-Za-z])(?:sqrt|pi|sin|cos|tan|log|ln|exp|inf|infinity|oo)(?![A-Za-z])")
_WORDS = re.compile(r"[A-Za-z]{3,}")
_ONE_WORD = re.compile(r"[A-Za-z]{4,}")


def parse_math(text: str) -> str | None:
    r"""The expression a response gives as its answer, as it is written, or None.

    Read is, in this order: the last ``\boxed{…}`` (boxes joined by a comma, "and" or "or" are one answer); the content
    of ``<answer>``; what follows the last ``####``, then the last "answer is" or "answer:"; the last ``$…$``, ``\(…\)``
    or ``\[…\]`` that is neither in the reason for an earlier one nor in its check; the whole text, where it is an
    expression and no prose; the last number.

    The last commitment counts: what is taken back ("wait, no", "that's wrong") is replaced by the expression that
    follows, or by none (see ``retractions``); what is denied ("not 2", ``\neq 2``) is not read.
    """
    text = answer_part(text)
    turn = first_turn(text)[-LONGEST:]
    for part in dict.fromkeys((turn, text[-LONGEST:])):
        if boxed := _boxed(part):
            return _settled(part, boxed)
    content = tagged_answer(text)
    if content is not None:
        return _read(content) if content else None
    return _read(turn) or _read(text[-LONGEST:])


def _boxed(text: str) -> Box | None:
    """The last box that holds anything, with those that stand side by side with it."""
    found = [box for box in boxes(text) if box.content and not _DENIED_BEFORE.search(text[: box.start][-40:])]
    if not found:
        return None
    group = [found[-1]]
    for box in reversed(found[:-1]):
        if box.end > group[-1].start or not side_by_side(text[box.end : group[-1].start]):
            break
        group.append(box)
    return Box(group[-1].start, group[0].end, ", ".join(box.content for box in reversed(group)))


def _settled(text: str, found: Box) -> str | None:
    """An expression, or what replaces it where it is taken back; nothing where nothing does."""
    expression, place = None if _UNEQUAL.match(found.content) else found.content, found.end
    while expression is not None and (taken := retraction(text, place)):
        line = _LINE.match(text, taken.end)
        new = _corrected(line.group() if line else "", word=_ONE_WORD.fullmatch(expression) is not None)
        if new is None and taken.firm:
            return _stated_again(text[taken.end :], expression)
        expression, place = new or expression, taken.end
    return expression


def _stated_again(text: str, expression: str) -> str | None:
    """What a text that begins with "wait" states in the end, or comes back to."""
    for _, line in stated(text):
        if again := _stated_expression(line):
            return again
    segments = _segments(text)
    last = segments[-1].content if segments else parse_number(text) or ""
    return expression if last.rpartition("=")[2].strip() == expression.strip() else None


def _corrected(line: str, word: bool) -> str | None:
    """The formula that begins a line, or an expression that is all of its sentence; a word only where asked for."""
    segments = _segments(line)
    if segments and not line[: segments[0].start].strip():
        return segments[0].content
    bare = _bare(_SENTENCE_END.split(line, maxsplit=1)[0])
    if bare.endswith(")") and bare.count(")") > bare.count("("):
        bare = bare[:-1]
    if not _is_expression(bare) or _UNEQUAL.match(bare) or (_ONE_WORD.fullmatch(bare) and not word):
        return None
    return bare


def _read(text: str) -> str | None:
    text = _DISPLAY_CLOSE.sub(r"\1", _DISPLAY_OPEN.sub(r"\1", text)).strip()
    if hashed := _hashed(text):
        return _settled(text, hashed)
    denied = False
    for start, line in stated(text):
        denied = denied or _DENIED.match(line) is not None
        if expression := _stated_expression(line):
            return _settled(text, Box(start, text.find(line, start), expression))
    last = _last_result(text)
    if last and not denied and not _DENIED_BEFORE.search(text[: last.start][-40:]):
        return _settled(text, last)
    bare = _bare(text)
    if _UNEQUAL.match(bare):
        return None
    return bare if _is_expression(bare) else parse_number(text)


def _hashed(text: str) -> Box | None:
    """The expression on the last line of the form ``#### x + 1``; headings and numbers with their unit are none."""
    for mark in reversed(list(_HASH.finditer(text))):
        line = _LINE.match(text, mark.end())
        said = line.group().strip() if line else ""
        segments = _segments(said)
        whole = Box(0, len(said), _bare(said))
        found = segments[0] if segments and segments[0].start == 0 else whole
        if _is_expression(found.content) and not _HEADING.fullmatch(found.content):
            return Box(mark.start(), mark.end() + found.end, found.content)
    return None


def _last_result(text: str) -> Box | None:
    """The last formula that belongs neither to the reason for an earlier one nor to its check."""
    last, done, reason, check = None, 0, False, False
    for segment in _segments(text):
        between = text[done : segment.start]
        if _CONCLUDES.search(between):
            reason = check = False
        reason = reason and not _ENDS_SENTENCE.search(between)
        reason = reason or (last is not None and _GIVES_REASON.search(between) is not None)
        check = check or (last is not None and _CHECKS.search(between) is not None)
        if not reason and not check:
            last = segment
        done = segment.end
    return last


def _stated_expression(line: str) -> str | None:
    if _DENIED.match(line):
        return None
    segments = _segments(line)
    if segments:
        ends = [0, *(place for segment in segments for place in (segment.start, segment.end)), len(line)]
        between = "".join(line[begin:end] for begin, end in zip(ends[::2], ends[1::2], strict=True))
        contents = [segment.content for segment in segments]
        return ", ".join(contents) if side_by_side(between) else contents[0]
    bare = _bare(_SENTENCE_END.split(line, maxsplit=1)[0])
    head = _bare(_REMARK.split(bare, maxsplit=1)[0])
    return next((text for text in (bare, head) if _is_expression(text)), None) or parse_number(bare)


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
    as wrong) and ``unreliable`` says why. Values are exact, unless gold itself is a decimal: 0.333333 is not a third.
    """
    parsed = parse_math(text)
    format_ok = last_boxed(answer_part(text)[-LONGEST:]) is not None
    if parsed is None:
        return Score(correct=False, parsed=None, format_ok=format_ok)
    verdict = same_math(example.answer or "", parsed, math_checker())
    return Score(correct=bool(verdict.equal), parsed=parsed, format_ok=format_ok, unreliable=verdict.problem)
