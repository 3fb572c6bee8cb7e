"""Rows that ask the same again."""

from __future__ import annotations

from collections.abc import Iterable

from cl_bench.tasks.base import Example
from cl_bench.tasks.scoring.options import LETTERS
from cl_bench.tasks.sources.reading import Reader

REPEATED = "repeats an earlier row"
CONTRADICTED = "gold contradicts that of another row with the same question and options"

_Content = tuple[object, ...]


def without_repetitions(examples: Iterable[Example], reader: Reader) -> tuple[list[Example], list[tuple[Example, str]]]:
    """Divide rows into those that are kept and those that ask what another row asks.

    Of rows that ask the same the first is kept, and none where their gold answers disagree: nothing says which of them
    is wrong.

    Args:
        examples: Rows with letters and options as published.
        reader: Whose rows these are.

    Returns:
        The rows kept, in order, and the others, each with the reason.
    """
    groups: dict[_Content, list[Example]] = {}
    for example in examples:
        groups.setdefault(asked(example), []).append(example)
    kept: list[Example] = []
    aside: list[tuple[Example, str]] = []
    for rows in groups.values():
        if all(agree(rows[0], example, reader) for example in rows[1:]):
            kept.append(rows[0])
            aside += [(example, REPEATED) for example in rows[1:]]
        else:
            aside += [(example, CONTRADICTED) for example in rows]
    return kept, aside


def asked(example: Example) -> _Content:
    """What a row asks: question and options in whatever order, or the prompt of a row without options."""
    if example.choices is None:
        return tuple(message["content"] for message in example.messages)
    return (str(example.meta["question"]), *sorted(example.choices))


def agree(one: Example, other: Example, reader: Reader) -> bool:
    """Whether two rows that ask the same have the same gold answer: the same option, or one that is right for both.

    Programs always agree: what a prompt asks for can be written in many ways, and none is run to find out.
    """
    if one.choices is not None and other.choices is not None:
        return _gold_option(one) == _gold_option(other)
    if one.answer == other.answer or reader.executes_code:
        return True
    worked = other.demonstration or str(other.answer)
    return reader.score(other, worked).correct and reader.score(one, worked).correct


def _gold_option(example: Example) -> str:
    return (example.choices or ())[LETTERS.index(str(example.answer))]
