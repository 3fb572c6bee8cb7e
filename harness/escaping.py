"""Text from data, models and plug-ins as it is shown: a terminal and a browser find no orders in it."""

from __future__ import annotations

import re
import unicodedata
from typing import TextIO

_LAYOUT = frozenset("\n\t")
_ORDERS = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Unicode categories of control and format characters (direction of text among them), half pairs and line breaks."""
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_MACRO = re.compile(r"&(?=#?\w+;)")
_BRACKET = re.compile(r"\[(?![-+\d.,%e ]*\](?![(\[:]))")
"""What may begin a link, an image or a link's definition: any bracket but those around numbers alone."""
_BLOCK = re.compile(r"(?:(?:[-*+]|\d{1,9}[.)]) +)*(?=#|>|```|~~~)")
"""List markers, if any, before what would begin a heading, a quotation or a block of code."""
_CODE = re.compile(r"`[^`]+`")


def visible(text: str, layout: bool = False) -> str:
    r"""The text with control and other unprintable characters escaped (``\x1b``).

    Args:
        text: Any text.
        layout: Leave line breaks and tabs as they are; otherwise the result is one line.
    """
    if text.isprintable():
        return text
    kept = _LAYOUT if layout else frozenset[str]()
    return "".join(c if c in kept or not _is_order(c) else _escaped(c) for c in text)


def markdown(text: str) -> str:
    """The text as part of a Markdown line: no links, images, headings or line breaks; ``page`` takes tags off."""
    shown = _BRACKET.sub(r"\\[", visible(text.replace("\n", " ")).replace("\\", "\\\\")).lstrip()
    start = _BLOCK.match(shown)
    return shown if start is None else f"{start[0]}\\{shown[start.end() :]}"


def page(text: str) -> str:
    """A whole Markdown page, which has line breaks and links of its own, without tags and entities."""
    return visible(_TAG.sub("&lt;", _MACRO.sub("&amp;", text)), layout=True)


def cell(text: str) -> str:
    """The text as a cell of a Markdown table.

    What stands between two backquotes is code, in which a backslash is no escape but before ``|``.
    """
    shown = visible(text.replace("\n", " "))
    if _CODE.fullmatch(shown):
        if "\\|" not in shown:
            return shown.replace("|", "\\|")
        text = shown[1:-1]
    return markdown(text).replace("|", "\\|")


class VisibleStream:
    """A text stream for people: what is written to it goes on with its orders escaped."""

    def __init__(self, stream: TextIO) -> None:
        """Write to a stream."""
        self._stream = stream

    def write(self, text: str) -> int:
        """Write the text, escaped; returns the number of its characters."""
        self._stream.write(visible(text, layout=True))
        return len(text)

    def __getattr__(self, name: str) -> object:
        """Everything else is the stream's own."""
        return getattr(self._stream, name)


def _is_order(character: str) -> bool:
    return unicodedata.category(character) in _ORDERS


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode()
