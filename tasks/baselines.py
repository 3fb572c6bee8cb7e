"""What a multiple-choice score is to be compared with: answers that need no knowledge of the subject."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from cl_bench.tasks.base import Example
from cl_bench.tasks.scoring.options import LETTERS

_NUMBER = re.compile(
    r"\s*([-−+]?)\s*\$?\s*(\d[\d,]*(?:\.\d+)?|\.\d+)"
    r"(?:[eE]([-−+]?\d+)|\s*[×x*·]\s*10\s*(?:\^|\*\*)\s*[{(]?\s*([-−+]?\d+)\s*[)}]?)?"
)
"""Sign, digits, and a power of ten as in 1.5e-3 or 1.5 x 10^-3."""


class Choice(NamedTuple):
    """A multiple-choice row as a baseline sees it: its options and the place of the right one."""

    options: tuple[str, ...]
    gold: int


def baselines(train: Sequence[Example], test: Sequence[Example]) -> dict[str, float | None]:
    """Expected accuracy on the test rows of rules that know nothing of the subject, as fractions.

    A test row without options counts as wrong for each of them.

    Args:
        train: Training rows, for the majority letter.
        test: The rows that are scored.

    Returns:
        ``chance``: guessing, the mean of 1/k over the test rows. ``majority_letter``: always the letter (the place)
        that is right most often in training; None where training has no multiple-choice row. ``middle_value``: the
        middle one of options that are all numbers, either of the two with even odds where their number is even, and a
        guess in other rows; None where no row has such options. All None where no test row has options.
    """
    choices = [choice_of(example) for example in test]
    known = [choice for choice in choices if choice is not None]
    if not known:
        return {"chance": None, "majority_letter": None, "middle_value": None}
    places = Counter(choice.gold for choice in map(choice_of, train) if choice is not None)
    # The smallest of equally frequent places, so that the order of the rows does not matter.
    majority = min(places, key=lambda place: (-places[place], place)) if places else None
    middle = [middle_odds(choice) for choice in known]
    guesses = [1 / len(choice.options) for choice in known]
    filled = [guess if odds is None else odds for odds, guess in zip(middle, guesses, strict=True)]
    return {
        "chance": sum(guesses) / len(choices),
        "majority_letter": None
        if majority is None
        else sum(choice.gold == majority for choice in known) / len(choices),
        "middle_value": None if all(odds is None for odds in middle) else sum(filled) / len(choices),
    }


def choice_of(example: Example) -> Choice | None:
    """Options and place of the right one; None for a row without options.

    Gold is a letter where the prompt gives the options letters, else an option's text.
    """
    options, answer = example.choices, example.answer
    if not options or answer is None:
        return None
    if answer in options and not example.question.endswith(_lettered_lines(options)):
        return Choice(options, options.index(answer))
    place = LETTERS.find(answer, 0, len(options)) if answer else -1
    return None if place < 0 else Choice(options, place)


def middle_odds(choice: Choice) -> float | None:
    """Probability that the middle one of numeric options is right; None where they are not all numbers.

    Options of one value share its places in the order: each is as likely as the others to be the middle one.
    """
    values = numeric_values(choice.options)
    if values is None:
        return None
    ordered = sorted(values)
    middle = {(len(ordered) - 1) // 2, len(ordered) // 2}
    gold = values[choice.gold]
    places = {place for place, value in enumerate(ordered) if value == gold}
    return len(places & middle) / len(places) / len(middle)


def numeric_values(options: Sequence[str]) -> list[float] | None:
    """Values of options that are all numbers with the same text after them (a unit), or None."""
    found = [_NUMBER.match(option) for option in options]
    matches = [match for match in found if match is not None]
    units = {"".join(match.string[match.end() :].split()) for match in matches}
    if len(matches) < len(options) or len(units) > 1:
        return None
    return [_value(*match.groups()) for match in matches]


def _value(sign: str, digits: str, exponent: str | None, power: str | None) -> float:
    tens = (exponent or power or "0").replace("−", "-")
    text = f"{'-' if sign in ('-', '−') else ''}{digits.replace(',', '')}e{tens}"
    return float(text)


def hide_question(example: Example) -> Example:
    """The row with nothing but the options in its last turn, in the form that they have there, under an id of its own.

    A model's accuracy on such rows is what the options alone give away.

    Raises:
        ValueError: The row has no options.
    """
    options = example.choices
    if not options:
        raise ValueError(f"{example.id} has no options to show without its question")
    lines = _lettered_lines(options)
    shown = lines if example.question.endswith(lines) else f"Options: {', '.join(options)}."
    name = f"{example.id} without its question"
    return replace(example, id=name, messages=(*example.messages[:-1], {**example.messages[-1], "content": shown}))


def _lettered_lines(options: Sequence[str]) -> str:
    return "\n".join(f"{letter}: {option}" for letter, option in zip(LETTERS, options, strict=False))
