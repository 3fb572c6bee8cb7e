"""Rows that ask the same again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cl_bench.tasks.base import Example
from cl_bench.tasks.scoring.options import LETTERS

REPEATED = "repeats an earlier row"
CONTRADICTED = "gold contradicts that of another row with the same question and options"

_Content = tuple[object, ...]


def without_repetitions(examples: Iterable[Example]) -> tuple[list[Example], list[tuple[Example, str]]]:
    """Divide rows into those that are kept and those that ask what another row asks.

    Multiple-choice rows ask the same where question and options are the same, whatever the order of the options. The
    first is kept, and none where they disagree about the right option: nothing says which of them is wrong. Rows of
    other kinds ask the same where their prompts are equal; the first is kept.

    Args:
        examples: Rows with letters and options as published.

    Returns:
        The rows kept, in order, and the others, each with the reason.
    """
    groups: dict[_Content, list[Example]] = {}
    for example in examples:
        groups.setdefault(_content(example), []).append(example)
    kept: list[Example] = []
    aside: list[tuple[Example, str]] = []
    for rows in groups.values():
        if len({_gold_option(example) for example in rows}) > 1:
            aside += [(example, CONTRADICTED) for example in rows]
        else:
            kept.append(rows[0])
            aside += [(example, REPEATED) for example in rows[1:]]
    return kept, aside


def _content(example: Example) -> _Content:
    if example.choices is None:
        return tuple(message["content"] for message in example.messages)
    return (str(example.meta["question"]), *sorted(example.choices))


def _gold_option(example: Example) -> str:
    options: Sequence[str] = example.choices or ()
    return options[LETTERS.index(str(example.answer))] if options else ""
