"""Which stretches of a response may be code: fenced blocks, marked blocks, or the text itself."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from cl_bench.tasks.scoring.reading import without_end_tokens, without_thoughts

_FENCE = re.compile(r"(?P<before>.*?)(?P<mark>`{3,}|~{3,})[ \t]*(?P<language>[\w+#.-]*)[ \t]*")
_REJECTED = re.compile(
    r"\b(?:wrong|incorrect|bad|buggy|broken)"
    r"(?: (?:way|version|code|solution|approach|implementation|example|answer))?\W*:\W*$"
    r"|^\W*(?:don't|do not|avoid|never)\b[^\n]*:\W*$",
    re.IGNORECASE,
)
_SPAN = re.compile(r"(?<!`)`([^`\n]{3,500})`(?!`)")
_INDENTED = re.compile(r"(?<=\S\n)[ \t]*\n((?:(?: {4}|\t)[^\n]*\n?|[ \t]*\n(?=(?: {4}|\t)))+)")
_ANSWER = re.compile(r"(?:^|</reasoning>)[ \t]*<answer>[ \t]*\n?", re.MULTILINE | re.IGNORECASE)
_ANSWER_END = re.compile(r"</answer>[ \t]{0,8}$", re.MULTILINE | re.IGNORECASE)
_LONGEST_FENCE = 200
"""Characters of a line with a fence and what stands around it."""
_PYTHON = {"", "py", "python", "python3", "py3", "python2"}


@dataclass(frozen=True, slots=True)
class Block:
    """A stretch of text.

    Attributes:
        text: Its lines, without the fence.
        closed: It has an end mark; without one, generation may have been cut, or have gone on past the answer.
        rejected: The line above introduces it as what not to do.
    """

    text: str
    closed: bool
    rejected: bool = False


def answer_part(text: str) -> str:
    """The response without what the model thought aloud: in its ``<answer>`` or between ``[BEGIN]`` and ``[DONE]``.

    Special tokens at its ends, which decoding has left, and a byte order mark go, too.
    """
    text = _tagged(without_thoughts(without_end_tokens(text)))
    head, done, _ = text.partition("[DONE]")
    return head.rpartition("[BEGIN]")[2] if done or "[BEGIN]" in text else text


def _tagged(text: str) -> str:
    """Content of the last ``<answer>`` that begins a line and holds anything; all of the text without one."""
    contents = (_ANSWER_END.split(piece, maxsplit=1)[0] for piece in reversed(_ANSWER.split(text)[1:]))
    return next((content for content in contents if content.strip()), text)


def lines_of(text: str) -> list[str]:
    """Lines with their ends, split at line feeds only, as Python's own line numbers are."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def blocks(text: str) -> list[Block]:
    """Fenced blocks in order, those in other languages only where there are no others; none without a fence.

    Blocks that are introduced as wrong ("Wrong way:") are left out where there are others. Where the first fence names
    no language, it may end a block that the prompt began: the text before it is one too.
    """
    if "```" not in text and "~~~" not in text:
        return []
    found = [(language, block) for language, block in _fenced(lines_of(text)) if block.text.strip()]
    found = [(language, block) for language, block in found if not block.rejected] or found
    python = [block for language, block in found if language.lower() in _PYTHON]
    return python or [block for _, block in found]


def asides(text: str) -> list[Block]:
    """What may be code in a text without fences: code spans on one line, and blocks that are indented as Markdown's."""
    spans = [(match.start(), match.group(1)) for match in _SPAN.finditer(text)]
    indented = [(match.start(), textwrap.dedent(match.group(1))) for match in _INDENTED.finditer(text)]
    return [Block(code, closed=True) for _, code in sorted(spans + indented)]


def _fenced(lines: list[str]) -> Iterator[tuple[str, Block]]:
    """Language and block, in order. A fence with a language opens a block even inside another one."""
    inside, language, mark, margin, first = [""], "", "", 0, True
    above, rejected = "", False
    for line in lines:
        fence = _FENCE.fullmatch(line.rstrip("\n")) if len(line) <= _LONGEST_FENCE else None
        if fence is None or (mark and fence["before"].strip()) or (mark and fence["mark"][0] != mark[0]):
            inside.append(_without_margin(line, margin))
            above = line if line.strip() else above
            continue
        if mark or (first and not fence["language"]):
            yield language, Block("".join(inside), closed=not fence["language"], rejected=rejected)
        opens = not mark or bool(fence["language"])
        before = fence["before"]
        mark, language = (fence["mark"], fence["language"]) if opens else ("", "")
        rejected = opens and _REJECTED.search(before.strip() or above) is not None
        margin = len(before) if opens and not before.strip() else 0
        inside, first = [], False
    if mark:
        yield language, Block(re.split("`{3,}|~{3,}", "".join(inside))[0], closed=False, rejected=rejected)


def _without_margin(line: str, margin: int) -> str:
    """A fenced block in a list is indented as its fence is."""
    return line[margin:] if not line[:margin].strip() else line
