"""Puts the options of multiple-choice rows into an order that a hash decides, so that no letter is right too often."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from cl_bench.tasks.base import Example
from cl_bench.tasks.scoring.choice import score_choice
from cl_bench.tasks.scoring.options import LETTERS
from cl_bench.tasks.sources.option_names import OPTION, names_options, names_options_unusually
from cl_bench.tasks.sources.reading import choice_demonstration, lettered

NAMED = "options kept in the published order: the row names options by letter or place"
NAMED_IN_ANSWER = "options kept in the published order: the worked answer names letters"


def reorder(example: Example, remarks: Counter[str]) -> Example:
    """The row with its options in an order that a hash over its id and content decides.

    Gold letter, prompt and demonstration follow. A row whose options or question name options by letter or place ("both
    A and B", "none of the above") is returned as it is, and so is one whose own worked answer names letters in a way
    that cannot be followed safely.

    Args:
        example: A multiple-choice row, options and letters as published, the question in ``meta["question"]``.
        remarks: Counts the rows that are returned as they are, by reason.
    """
    question, options = str(example.meta["question"]), example.choices or ()
    if names_options(question, options):
        remarks[NAMED] += 1
        return example
    order = _order(example.id, question, options)
    letters = {LETTERS[old]: LETTERS[new] for new, old in enumerate(order)}
    changed = tuple(options[old] for old in order)
    moved = replace(
        example,
        messages=(*example.messages[:-1], {**example.messages[-1], "content": lettered(question, changed)}),
        answer=letters[str(example.answer)],
        choices=changed,
    )
    if example.demonstration is None:
        return moved
    demonstration = _moved_demonstration(example, moved, letters)
    if demonstration is None:
        remarks[NAMED_IN_ANSWER] += 1
        return example
    return replace(moved, demonstration=demonstration)


def _order(row: str, question: str, options: Sequence[str]) -> list[int]:
    """Published places of the options, in the new order."""
    content = json.dumps([row, question, list(options)], ensure_ascii=False)
    return sorted(range(len(options)), key=lambda place: hashlib.sha256(f"{place}:{content}".encode()).digest())


def _moved_demonstration(example: Example, moved: Example, letters: Mapping[str, str]) -> str | None:
    """The demonstration with the new letters; None where that cannot be told."""
    old, new = str(example.answer), str(moved.answer)
    option = (example.choices or ())[LETTERS.index(old)]
    if example.demonstration == choice_demonstration(old, option):
        return choice_demonstration(new, option)
    text = _moved_letters(str(example.demonstration), letters)
    return text if text is not None and score_choice(moved, text).correct else None


def _moved_letters(text: str, letters: Mapping[str, str]) -> str | None:
    """A text in which every letter of an option is exchanged.

    Exchanged are letters in an answer tag, in a box, and after the words "option", "choice" and "answer (is)". Any
    other capital that could be a letter of an option - the article "A", vitamin C - makes the text unsafe, and so does
    an option that is named otherwise ("option b", "the last choice"): None.
    """
    if names_options_unusually(text, "".join(letters)):
        return None
    letter = "[" + "".join(letters) + "]"
    stated = re.compile(rf"(<answer>\s*|\\boxed\{{\s*|{OPTION}(?:\s+is)?\s*:?\s*\(?)({letter})(?![\w'-])")
    if re.search(rf"(?<![\w'-]){letter}(?![\w'-])", stated.sub("", text)):
        return None
    return stated.sub(lambda match: match.group(1) + letters[match.group(2)], text)
