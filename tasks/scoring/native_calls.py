"""Reads tool calls in the forms that chat models are trained on: JSON objects, bare or between ``<tool_call>`` tags."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

Call = tuple[str, Any]
"""Name of a tool and its decoded arguments; None where they are not readable."""

_TAGGED = re.compile(r"<tool_call>(.*?)(?:</tool_call>|(?=<tool_call>)|\Z)", re.DOTALL)
_FENCE = re.compile(r"```[a-zA-Z]{0,10}\n")
_UNREADABLE: Call = ("", None)


def native_calls(text: str, decode: Callable[[str], Any]) -> list[Call]:
    """Calls between ``<tool_call>`` tags; without tags, those of a text that is one JSON value and nothing else.

    A call is an object with exactly ``name`` (a text) and ``arguments`` or ``parameters`` (an object); a value may be
    one call or a list of calls. What stands between tags and is no call is an unreadable one.

    Args:
        text: The response without its reasoning blocks.
        decode: Decodes JSON; raises ValueError.
    """
    contents = [match.group(1) for match in _TAGGED.finditer(text)]
    if contents:
        return [call for content in contents for call in _calls(content, decode) or [_UNREADABLE]]
    return _calls(text, decode)


def _calls(text: str, decode: Callable[[str], Any]) -> list[Call]:
    text = text.strip()
    fence = _FENCE.match(text)
    if fence and text.endswith("```"):
        text = text[fence.end() : -3].strip()
    try:
        value = decode(text)
    except (ValueError, RecursionError):
        return []
    objects = value if isinstance(value, list) else [value]
    calls = list(_readable(objects))
    return calls if len(calls) == len(objects) else []


def _readable(objects: list[Any]) -> Iterator[Call]:
    for item in objects:
        if not isinstance(item, dict) or len(item) != 2 or not isinstance(item.get("name"), str):
            continue
        arguments = item.get("arguments", item.get("parameters"))
        if isinstance(arguments, dict):
            yield item["name"], arguments
