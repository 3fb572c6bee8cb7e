"""Reads tool calls and compares them as a multiset.

Accepted forms, all with arguments in JSON (a Python dictionary in single quotes is not readable):

- the one that the prompts ask for, a line ``Action: name`` and ``Action Input: {json}``, with code fences, bold, list
  and heading marks and any case of the labels read over;
- ``<tool_call>{"name": …, "arguments": {…}}</tool_call>``, once or several times;
- a text that is such an object, or a list of them, and nothing else (in a code fence or not).

In the latter two ``parameters`` may stand for ``arguments``. They are never ``format_ok``.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from cl_bench.tasks.base import Example, Score
from cl_bench.tasks.scoring.native_calls import Call, native_calls
from cl_bench.tasks.scoring.reading import answer_part

# List, heading and bold marks around the labels and a code fence around the JSON are read over, so is the case of the
# labels; a name may stand on the next line.
_LABEL = r"^[ \t]*(?:(?:[-*+]|\d{{1,3}}[.)]|#{{1,6}})[ \t]+)?(?:\*\*)?{}(?:\*\*)?[ \t]*:(?:\*\*)?"
_FLAGS = re.MULTILINE | re.IGNORECASE
_ACTION = re.compile(_LABEL.format("Action") + r"\s*(?!(?:\*\*)?Action[ _]Input\b)(\S[^\n]*)", _FLAGS)
_INPUT = re.compile(_LABEL.format("Action[ _]Input") + r"\s*(?:```[a-zA-Z]*\s*)?", _FLAGS)
_ONE_LINE = re.compile(
    r"^([^\n{}:]{0,12}Action[ \t*]{0,4}:[^\n{}:]{1,200}?)[ \t]+(?=(?:\*\*)?Action[ _]Input\b)", _FLAGS
)
_NO_TOOL = {"none", "null", "n/a", "no action"}
_ALTERNATIVE = re.compile(r"[\s`]*(?:or|and|,|/|\|)?[\s`]*[\[{]", re.IGNORECASE)
_OBSERVATION = re.compile(_LABEL.format("Observation"), _FLAGS)
_FORM = re.compile(r"^Action:[ \t]*(\S[^\n]*)\nAction Input:\s*(?=\{)", re.MULTILINE)
_MOST_CALLS = 1_000
"""Calls of a response beyond which it is no answer; the longest gold has a few."""
_EXACT_INTEGERS = 2**53
STOP = "Observation:"
"""Where a tool's answer would begin; nothing after it is the model's."""


def parse_calls(text: str) -> list[Call]:
    """The calls of a response, in order; each action's input is the JSON value between it and the next action.

    An action with two inputs, with an input that names an argument twice, or with another value after its input
    ("{…} or {…}") has no readable input. Both labels may stand on one line. "Action: None" without an input is no call,
    for it says that none is made. More than a thousand actions are read as none. Calls in native form (see the module)
    follow.
    """
    text = _ONE_LINE.sub(r"\1\n", _OBSERVATION.split(answer_part(text), maxsplit=1)[0])
    actions = list(itertools.islice(_ACTION.finditer(text), _MOST_CALLS + 1))
    if len(actions) > _MOST_CALLS:
        return []
    ends = [*(action.start() for action in actions[1:]), len(text)]
    calls = [(_name(action), _arguments(text[action.end() : end])) for action, end in zip(actions, ends, strict=False)]
    calls = [call for call in calls if call[1] is not None or call[0].casefold() not in _NO_TOOL]
    return [*calls, *native_calls(text, _decoded)]


def _name(action: re.Match[str]) -> str:
    return action.group(1).strip().removeprefix("**").removesuffix("**").strip(" `")


def _arguments(text: str) -> Any:
    inputs = list(itertools.islice(_INPUT.finditer(text), 2))
    if len(inputs) != 1:
        return None
    try:
        value, end = _DECODER.raw_decode(text, inputs[0].end())
        _writable(value)
    except (ValueError, RecursionError):
        return None
    return None if _ALTERNATIVE.match(text, end) else value


def _decoded(text: str) -> Any:
    value = _DECODER.decode(text)
    _writable(value)
    return value


def _writable(value: Any) -> None:
    # What was read must also be writable: nesting can be too deep for the one and not for the other.
    canonical([("", value)])


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    arguments = dict(pairs)
    if len(arguments) < len(pairs):
        raise ValueError("an argument is named twice")
    return arguments


_DECODER = json.JSONDecoder(object_pairs_hook=_without_doubles)


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

    ``correct`` reads over code fences, line breaks, the case of labels, and list, heading and bold marks.
    ``format_ok``: every call is a line ``Action: name`` and then ``Action Input:`` with a JSON object.
    """
    calls = parse_calls(text)
    parsed = canonical(calls) if calls else None
    readable = bool(calls) and all(isinstance(arguments, dict) for _, arguments in calls)
    format_ok = readable and len(_FORM.findall(answer_part(text))) >= len(calls)
    return Score(correct=parsed is not None and parsed == example.answer, parsed=parsed, format_ok=format_ok)
