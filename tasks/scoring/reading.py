"""Finds the part of a free-text response that states its answer: what every scorer of real tasks reads with.

All functions take time linear in the length of the text, whatever the text: a response may be a megabyte of braces.
What scorers do beyond that, they do on the last ``LONGEST`` characters.
"""

from __future__ import annotations

import re
import unicodedata
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

LONGEST = 20_000
"""Characters at the end of a response (its reasoning blocks aside) in which an answer is looked for."""

_MOST_TAGS = 20

BOX_OPEN, BOX_CLOSE = "\x02", "\x03"
r"""Stand for the braces of ``\boxed{…}`` in plain text."""

_THOUGHT_START = re.compile(r"<(?:think|thinking|thought)>", re.IGNORECASE)
_THOUGHT_END = re.compile(r"</(?:think|thinking|thought)>", re.IGNORECASE)
_REASONING = re.compile(r"<(/?)reasoning>", re.IGNORECASE)
_ANSWER_START = re.compile(r"<answer>", re.IGNORECASE)
_ANSWER_END = re.compile(r"</answer>", re.IGNORECASE)
_BRACES = re.compile(r"\\(?:boxed|fbox)\s*\{|\\.|[{}]", re.DOTALL)
_STATED = re.compile(
    r"\banswer(?:\s+(?:to|for|of|in|here|that|which)\b[^.\n:=]{0,60}?)?(?:\s+(?:is|was|equals|should\s+be|must\s+be|"
    r"would\s+be|will\s+be)\b|\s*(?:\*+\s*)?[:=])\s*(?:\*+\s*)?:?",
    re.IGNORECASE,
)
_LINE = re.compile(r"\s*([^\n]{0,1000})")

_SPECIAL_TOKEN = re.compile(r"<\|[^|<>\n]{1,30}\|>|</?s>|<(?:eos|end_of_turn|endoftext)>")
_END_TOKENS = re.compile(
    rf"^(?:\s{{0,8}}(?:{_SPECIAL_TOKEN.pattern})){{1,20}}|(?:(?:{_SPECIAL_TOKEN.pattern})\s{{0,8}}){{1,20}}$"
)
_INVISIBLE = re.compile("[\x00-\x08\x0e-\x1f\x7f\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufe0e\ufe0f\ufeff]")
_SIDE_BY_SIDE = re.compile(r"[\s$,;.]*(?:and|or|/|and/or)?[\s$,;.]*")
_NEXT_QUESTION = re.compile(r"\n[ \t]*(?:#{1,3} ?)?(?:Question|Q|Problem|User|Human|Instruction)[ \d]{0,4}:")
_NO_BREAK_SPACES = str.maketrans(dict.fromkeys("\u00a0\u2007\u2009\u202f", " "))
_QUOTES = str.maketrans({"“": '"', "”": '"', "‘": "'", "’": "'", "。": ".", "、": ","})
_LATEX_TEXT = re.compile(r"\\(?:text(?:bf|it|rm|sf|tt)?|math(?:bf|rm|it|sf)|mbox|operatorname|emph)\s?\{([^{}]*)\}")
_LATEX_SPACE = re.compile(r"\\(?:quad|qquad|[,;:!]|(?=\s))")
_LATEX_MATH = re.compile(r"\\[()\[\]]|\\?\$|\\(?:boxed|fbox)\s?\{?")
_HTML = re.compile(r"</?(?:b|strong|i|em|u|p|br|span|code|center|h[1-6])\s?/?>", re.IGNORECASE)
_LINE_MARK = re.compile(r"^[ \t]*(?:#{1,6}(?=[ \t])|>+)[ \t]*", re.MULTILINE)
_SPACES = re.compile(r"[^\S\n]+")
_BLANK_LINES = re.compile(r" ?\n(?:[^\S\n]*\n)*[^\S\n]*")


class Box(NamedTuple):
    r"""A ``\boxed{…}``: where it begins and ends (past the closing brace), and what it holds."""

    start: int
    end: int
    content: str


def without_thoughts(text: str) -> str:
    """What follows the last ``</think>``, up to a ``<think>`` that is never closed; all of a text without them."""
    ends = list(_THOUGHT_END.finditer(text))
    if ends:
        text = text[ends[-1].end() :]
    start = _THOUGHT_START.search(text)
    return text if start is None else text[: start.start()]


def answer_part(text: str) -> str:
    """The response without its reasoning blocks, special tokens that decoding has left, and invisible characters.

    Thoughts go as ``without_thoughts`` says. A ``<reasoning>…</reasoning>`` block is cut out; where one of its tags is
    missing, an ``<answer>`` is kept.
    """
    return _without_reasoning(without_thoughts(without_invisible(_SPECIAL_TOKEN.sub("", text))))


def without_invisible(text: str) -> str:
    """The text without what no reader sees: null bytes, a byte order mark, zero-width and direction marks."""
    return _INVISIBLE.sub("", text)


def without_end_tokens(text: str) -> str:
    """The text without special tokens and a byte order mark at its ends; those within it may be part of a program."""
    return _END_TOKENS.sub("", text.strip("\ufeff\x00"))


def _without_reasoning(text: str) -> str:
    kept: list[str] = []
    # A first mark that closes a block: the prompt had opened it.
    begin, inside = 0, False
    for number, mark in enumerate(_REASONING.finditer(text)):
        closing = bool(mark.group(1))
        if number == 0 and closing:
            kept.append(_from_answer_tag(text[: mark.start()]))
            begin = mark.end()
        elif closing == inside:
            if not inside:
                kept.append(text[begin : mark.start()])
            begin, inside = mark.end(), not inside
    kept.append(_from_answer_tag(text[begin:]) if inside else text[begin:])
    return "".join(kept)


def _from_answer_tag(reasoning: str) -> str:
    answer = _ANSWER_START.search(reasoning)
    return "" if answer is None else reasoning[answer.start() :]


def first_turn(text: str) -> str:
    """The text up to where the model goes on with a question of its own, as base models do; all of it otherwise."""
    following = _NEXT_QUESTION.search(text)
    return text if following is None else text[: following.start()]


def tagged(text: str) -> str | None:
    """Content of the last ``<answer>`` that holds anything (a closing tag may be missing); None without the tag."""
    pieces = _ANSWER_START.split(text)[1:]
    if not pieces:
        return None
    contents = [_ANSWER_END.split(piece, maxsplit=1)[0].strip() for piece in pieces]
    return next((content for content in reversed(contents) if content), "")


def tagged_answer(text: str) -> str | None:
    """What the tags of a response answer: content of the last that holds anything, as ``tagged`` gives it.

    Different answers in tags side by side (``<answer>A</answer> or <answer>B</answer>``) are all its answer, joined by
    "or"; a later tag after other text is a correction. None without a tag, "" where all are empty.
    """
    last = tagged(text)
    if not last:
        return last
    contents = [last]
    pieces = [_ANSWER_END.split(piece, maxsplit=1) for piece in _ANSWER_START.split(text)[1:]]
    pieces = [piece for piece in pieces if piece[0].strip()]
    for content, *after in reversed(pieces[-_MOST_TAGS:-1]):
        if not after or not side_by_side(after[0]):
            break
        contents.append(content.strip())
    return " or ".join(dict.fromkeys(reversed(contents)))


def side_by_side(between: str) -> bool:
    """Whether two final answers with this text between them are one statement: nothing, a comma, "and", "or"."""
    return len(between) <= 40 and _SIDE_BY_SIDE.fullmatch(between) is not None


def tag_form(text: str) -> str | None:
    """Content of the answer if the response is ``<reasoning>…</reasoning><answer>…</answer>`` and nothing else.

    A ``<think>`` block before that is the model's own affair.
    """
    ends = list(_THOUGHT_END.finditer(text))
    body = text[ends[-1].end() :].strip() if ends else text.strip()
    if not (body.startswith("<reasoning>") and body.endswith("</answer>")):
        return None
    head, _, answer = body.removesuffix("</answer>").rpartition("<answer>")
    return answer.strip() if head.rstrip().endswith("</reasoning>") else None


def boxes(text: str) -> list[Box]:
    r"""Every ``\boxed{…}`` and ``\fbox{…}`` with balanced braces, in the order of their ends."""
    found: list[Box] = []
    stack: list[re.Match[str]] = []
    for brace in _BRACES.finditer(text):
        token = brace.group()
        if token == "}":
            if stack:
                opened = stack.pop()
                if opened.group() != "{":
                    found.append(Box(opened.start(), brace.end(), text[opened.end() : brace.start()].strip()))
        elif token.endswith("{") and token != "\\{":
            stack.append(brace)
    return found


def last_boxed(text: str) -> str | None:
    """What the last box that holds anything holds, or None."""
    return next((box.content for box in reversed(boxes(text)) if box.content), None)


def stated(text: str) -> Iterator[tuple[int, str]]:
    """What follows each of the last 20 "answer is" or "answer:", from the last to the first.

    Yields:
        Position, and the text to the end of the line (of the next line with text, where that one is empty), at most
        1,000 characters of it. Statements with nothing after them are left out.
    """
    for match in reversed(deque(_STATED.finditer(text), maxlen=20)):
        line = _LINE.match(text, match.end())
        if line is not None and line.group(1).strip():
            yield match.start(), line.group(1).strip()


def plain(text: str) -> str:
    """The text without markup: Markdown and HTML emphasis, LaTeX text commands and dollars, heading and quote marks.

    Compatibility characters become the usual ones, white space single, blank lines vanish, and each box stands between
    ``BOX_OPEN`` and ``BOX_CLOSE``.
    """
    text = unicodedata.normalize("NFKC", without_invisible(text).translate(_NO_BREAK_SPACES)).translate(_QUOTES)
    text = _mark_boxes(text)
    for _ in range(3):  # commands within commands
        text = _LATEX_TEXT.sub(r"\1", text)
    for pattern, replacement in ((_LATEX_MATH, ""), (_LATEX_SPACE, " "), (_HTML, ""), (_LINE_MARK, "")):
        text = pattern.sub(replacement, text)
    text = text.replace("*", "").replace("`", "").replace("__", "")
    return _BLANK_LINES.sub("\n", _SPACES.sub(" ", text)).strip()


def _mark_boxes(text: str) -> str:
    pieces: list[str] = []
    done = 0
    for box in boxes(text):
        if box.start >= done:
            pieces += [text[done : box.start], BOX_OPEN, box.content, BOX_CLOSE]
            done = box.end
    return "".join([*pieces, text[done:]])
