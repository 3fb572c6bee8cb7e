"""Reads tool calls of the form ``Action: name`` / ``Action Input: {json}`` and compares them as a multiset."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from cl_bench.tasks.base import Example, Score
from cl_bench.tasks.scoring.reading import answer_part

Call = tuple[str, Any]
"""Name of a tool and its decoded arguments; None where they are no JSON."""

# Bold marks around the labels and a code fence around the JSON are read over; a name may stand on the next line.
_LABEL = r"^[ \t]*(?:\*\*)?{}(?:\*\*)?[ \t]*:(?:\*\*)?"
_ACTION = re.compile(_LABEL.format("Action") + r"\s*(?!(?:\*\*)?Action[ _]Input\b)(\S[^\n]*)", re.MULTILINE)
_INPUT = re.compile(_LABEL.format("Action[ _]Input") + r"\s*(?:```[a-zA-Z]*\s*)?", re.MULTILINE)
_OBSERVATION = re.compile(r"^[ \t]*(?:\*\*)?Observation(?:\*\*)?[ \t]*:", re.MULTILINE)
_FORM = re.compile(r"^Action:[ \t]*(\S[^\n]*)\nAction Input:\s*(?=\{)", re.MULTILINE)
_DECODER = json.JSONDecoder()
_EXACT_INTEGERS = 2**53
STOP = "Observation:"
"""Where a tool's answer would begin; nothing after it is the model's."""


def parse_calls(text: str) -> list[Call]:
    """The calls of a response, in order; each action's input is the first JSON value between it and the next action."""
    text = _OBSERVATION.split(answer_part(text), maxsplit=1)[0]
    actions = list(_ACTION.finditer(text))
    ends = [*(action.start() for action in actions[1:]), len(text)]
    return [(_name(action), _arguments(text[action.end() : end])) for action, end in zip(actions, ends, strict=False)]


def _name(action: re.Match[str]) -> str:
    return action.group(1).strip().removeprefix("**").removesuffix("**").strip(" `")


def _arguments(text: str) -> Any:
    begin = _INPUT.search(text)
    if begin is None:
        return None
    try:
        value, _ = _DECODER.raw_decode(text, begin.end())
        # What was read must also be writable: nesting can be too deep for the one and not for the other.
        canonical([("", value)])
    except (ValueError, RecursionError):
        return None
    return value


def gold_calls(golden: Iterable[Mapping[str, str]]) -> list[Call]:
    """Calls of a gold answer: ``Action`` and ``Action_Input``, the latter as a JSON text. Raises ValueError."""
    return [(call["Action"], json.loads(call["Action_Input"])) for call in golden]


def canonical(calls: Iterable[Call]) -> str:
    """One text for a multiset of calls: order of calls and of argument names does not matter.

    JSON has one kind of number, so 1 and 1.0 are one value; the string "1" and true are others.
    """
    values = ([name, _with_plain_numbers(arguments)] for name, arguments in calls)
    return "\n".join(sorted(json.dumps(value, sort_keys=True, ensure_ascii=False) for value in values))


def _with_plain_numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_plain_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_plain_numbers(item) for item in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT_INTEGERS:
        return int(value)
    return value


def score_tool_calls(example: Example, text: str) -> Score:
    """Score a response: names and arguments of all calls equal gold's, whatever their order.

    ``correct`` reads over code fences, bold labels and line breaks. ``format_ok``: every call is a line
    ``Action: name`` and then ``Action Input:`` with a JSON object.
    """
    calls = parse_calls(text)
    parsed = canonical(calls) if calls else None
    readable = bool(calls) and all(isinstance(arguments, dict) for _, arguments in calls)
    format_ok = readable and len(_FORM.findall(answer_part(text))) >= len(calls)
    return Score(correct=parsed is not None and parsed == example.answer, parsed=parsed, format_ok=format_ok)
