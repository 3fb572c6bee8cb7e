"""Which stretches of a response may be code: fenced blocks, marked blocks, or the text itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from cl_bench.tasks.scoring.reading import without_thoughts

_FENCE = re.compile(r"(?P<before>.*?)(?P<mark>`{3,}|~{3,})[ \t]*(?P<language>[\w+#.-]*)[ \t]*")
_LONGEST_FENCE = 200
"""Characters of a line with a fence and what stands around it."""
_PYTHON = {"", "py", "python", "python3", "py3", "python2"}


@dataclass(frozen=True, slots=True)
class Block:
    """A stretch of text.

    Attributes:
        text: Its lines, without the fence.
        closed: It has an end mark; without one, generation may have been cut, or have gone on past the answer.
    """

    text: str
    closed: bool


def answer_part(text: str) -> str:
    """The response without what the model thought aloud, and between ``[BEGIN]`` and ``[DONE]`` where it has them."""
    text = without_thoughts(text)
    head, done, _ = text.partition("[DONE]")
    return head.rpartition("[BEGIN]")[2] if done or "[BEGIN]" in text else text


def lines_of(text: str) -> list[str]:
    """Lines with their ends, split at line feeds only, as Python's own line numbers are."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def blocks(text: str) -> list[Block]:
    """Fenced blocks in order, those in other languages only where there are no others; none without a fence.

    Where the first fence names no language, it may end a block that the prompt began: the text before it is one too.
    """
    found = [(language, block) for language, block in _fenced(lines_of(text)) if block.text.strip()]
    python = [block for language, block in found if language.lower() in _PYTHON]
    return python or [block for _, block in found]


def _fenced(lines: list[str]) -> Iterator[tuple[str, Block]]:
    """Language and block, in order. A fence with a language opens a block even inside another one."""
    inside, language, mark, margin, first = [""], "", "", 0, True
    for line in lines:
        fence = _FENCE.fullmatch(line.rstrip("\n")) if len(line) <= _LONGEST_FENCE else None
        if fence is None or (mark and fence["before"].strip()) or (mark and fence["mark"][0] != mark[0]):
            inside.append(_without_margin(line, margin))
            continue
        if mark or (first and not fence["language"]):
            yield language, Block("".join(inside), closed=not fence["language"])
        opens = not mark or bool(fence["language"])
        before = fence["before"]
        mark, language = (fence["mark"], fence["language"]) if opens else ("", "")
        margin = len(before) if opens and not before.strip() else 0
        inside, first = [], False
    if mark:
        yield language, Block(re.split("`{3,}|~{3,}", "".join(inside))[0], closed=False)


def _without_margin(line: str, margin: int) -> str:
    """A fenced block in a list is indented as its fence is."""
    return line[margin:] if not line[:margin].strip() else line
