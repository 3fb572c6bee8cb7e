"""Tool use: requests to be answered by one call, written as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import product

from cl_bench.tasks.lab.kinds import Kind, Operands, sample_space
from cl_bench.tasks.lab.words import CITIES, DAYS, NAMES, WORDS


def _call(tool: str, **arguments: str | int) -> str:
    return json.dumps({"tool": tool, **arguments}, separators=(",", ":"))


def _calls(tool: str, *names: str) -> Callable[[Operands], tuple[str, str]]:
    def solve(operands: Operands) -> tuple[str, str]:
        values = {n: int(v) if v.isdigit() else v for n, v in zip(names, operands, strict=True)}
        return f"tool {tool}", _call(tool, **values)

    return solve


def _space(seed: str, *parts: tuple[str, ...]) -> tuple[Operands, ...]:
    return sample_space(600, seed, [tuple(o) for o in product(*parts)])


_NUMBERS = tuple(str(n) for n in range(2, 60))


def _kind(name: str, phrasings: tuple[str, ...], space: tuple[Operands, ...], *names: str, ood: bool = False) -> Kind:
    return Kind("tool-use", name, "rule", phrasings, space, _calls(name, *names), options=0, ood=ood)


KINDS = (
    _kind(
        "weather",
        (
            "Show the weather in {0} on {1} for {2}.",
            "On {1} what is the weather in {0}? Ask for {2}.",
            "{2} needs the weather of {0} for {1}.",
            "Get weather: {0}, {1}, {2}.",
        ),
        _space("weather", CITIES, DAYS, NAMES),
        "city",
        "day",
        "user",
    ),
    _kind(
        "timer",
        (
            "Set a timer of {0} minutes called {1}.",
            "Start timer {1} for {0} minutes.",
            "Please time {0} minutes and name it {1}.",
            "Make a timer: {1}, {0} minutes.",
        ),
        _space("timer", _NUMBERS, WORDS),
        "minutes",
        "label",
    ),
    _kind(
        "send",
        (
            "Send {0} to {1}.",
            "Tell {1} the word {0}.",
            "Message {1} with {0}.",
            "Write {0} in a note to {1}.",
        ),
        _space(
            "send",
            WORDS,
            NAMES,
        ),
        "text",
        "to",
    ),
    _kind(
        "order",
        (
            "Order {0} of the {1} {2}.",
            "Buy {0} times the {1} {2}.",
            "Please get {0} of {1} {2}.",
            "We need {0} more {1} {2}.",
        ),
        _space("order", _NUMBERS, WORDS[:5], ("lamp", "book", "door", "ship")),
        "count",
        "color",
        "item",
    ),
    _kind(
        "book",
        (
            "Book a trip from {0} to {1} on {2}.",
            "Plan travel to {1} from {0} for {2}.",
            "On {2} go from {0} to {1}.",
            "Reserve {2}: {0} to {1}.",
        ),
        _space("book", CITIES, CITIES, DAYS),
        "from",
        "to",
        "day",
    ),
    _kind(
        "play",
        ("Play {0} at volume {1}.", "Start the song {0} with volume {1}."),
        _space("play", WORDS, _NUMBERS),
        "song",
        "volume",
        ood=True,
    ),
    _kind(
        "remind",
        ("Remind {0} about the {1} on {2}.", "On {2} remind {0} of the {1}."),
        _space("remind", NAMES, WORDS[6:], DAYS),
        "user",
        "about",
        "day",
        ood=True,
    ),
)


def canonical_call(text: str) -> str | None:
    """The call as JSON with sorted keys, or None where the text is no JSON object."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        return None
    return json.dumps(value, sort_keys=True) if isinstance(value, dict) else None
