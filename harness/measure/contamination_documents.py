"""Rows of lm-eval tasks as evaluated items: the question and the options, whatever their columns are called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cl_bench.harness.measure.contamination import Item

QUESTIONS = ("question", "Question", "problem", "goal", "sentence", "ctx", "prompt", "text", "query")
"""Columns that hold the question, the first that is there counts: no wrapper of a prompt stands in them."""
OPTIONS = ("choices", "options", "endings", "mc2_targets", "mc1_targets")
OPTION_COLUMNS = (
    ("sol1", "sol2"),
    ("option1", "option2"),
    ("opa", "opb", "opc", "opd"),
    ("choice1", "choice2", "choice3", "choice4"),
    ("A", "B", "C", "D"),
)
"""Columns that hold one option each."""


def document_item(name: str, document: Mapping[str, Any], asked: str) -> Item:
    """A row as an evaluated item.

    Args:
        name: Its id in ``samples.jsonl``.
        document: The row.
        asked: The question as the prompt asks it, for rows without a column that is known to hold it.
    """
    texts = (document[column] for column in QUESTIONS if isinstance(document.get(column), str))
    return Item(name, next((text for text in texts if text.strip()), asked), _options(document))


def _options(document: Mapping[str, Any]) -> tuple[str, ...]:
    for column in OPTIONS:
        found = _listed(document.get(column))
        if found:
            return found
    for columns in OPTION_COLUMNS:
        if all(isinstance(document.get(column), str) for column in columns):
            return tuple(document[column] for column in columns)
    return ()


def _listed(value: Any) -> tuple[str, ...]:
    if isinstance(value, Mapping):
        value = value.get("text", value.get("choices"))
    if not isinstance(value, Sequence) or isinstance(value, str):
        return ()
    return tuple(str(option) for option in value)
