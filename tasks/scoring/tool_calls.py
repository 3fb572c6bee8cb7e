"""Reads tool calls of the form ``Action: name`` / ``Action Input: {json}`` and compares them as a multiset."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from cl_bench.tasks.base import Example, Score

Call = tuple[str, Any]
"""Name of a tool and its decoded arguments; None where they are no JSON."""

_ACTION = re.compile(r"^[ \t]*Action:[ \t]*(.+?)[ \t]*$", re.MULTILINE)
_INPUT = re.compile(r"^[ \t]*Action[ _]Input:\s*", re.MULTILINE)
_OBSERVATION = re.compile(r"^[ \t]*Observation:", re.MULTILINE)
_DECODER = json.JSONDecoder()
STOP = "Observation:"
"""Where a tool's answer would begin; nothing after it is the model's."""


def parse_calls(text: str) -> list[Call]:
    """The calls of a response, in order; each action's input is the first JSON value between it and the next action."""
    text = _OBSERVATION.split(text)[0]
    actions = list(_ACTION.finditer(text))
    ends = [*(action.start() for action in actions[1:]), len(text)]
    return [(action.group(1), _arguments(text[action.end() : end])) for action, end in zip(actions, ends, strict=False)]


def _arguments(text: str) -> Any:
    begin = _INPUT.search(text)
    if begin is None:
        return None
    try:
        value, _ = _DECODER.raw_decode(text, begin.end())
    except json.JSONDecodeError:
        return None
    return value


def gold_calls(golden: Iterable[Mapping[str, str]]) -> list[Call]:
    """Calls of a gold answer: ``Action`` and ``Action_Input``, the latter as a JSON text. Raises ValueError."""
    return [(call["Action"], json.loads(call["Action_Input"])) for call in golden]


def canonical(calls: Iterable[Call]) -> str:
    """One text for a multiset of calls: order of calls and of argument names does not matter."""
    texts = sorted(json.dumps([name, arguments], sort_keys=True, ensure_ascii=False) for name, arguments in calls)
    return "\n".join(texts)


def score_tool_calls(example: Example, text: str) -> Score:
    """Score a response: names and arguments of all calls equal gold's. ``format_ok``: every call's input is JSON."""
    calls = parse_calls(text)
    parsed = canonical(calls) if calls else None
    readable = bool(calls) and all(isinstance(arguments, dict) for _, arguments in calls)
    return Score(correct=parsed is not None and parsed == example.answer, parsed=parsed, format_ok=readable)
