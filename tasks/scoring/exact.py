"""Compares whole answers as text."""

from __future__ import annotations

import re

from cl_bench.tasks.base import Example, Score

_ANSWER_IS = re.compile(r"(?:the\s+)?(?:final\s+)?answer(?:\s+is|:)\s*(.+?)\.?\s*$", re.IGNORECASE | re.DOTALL)


def normalise(text: str) -> str:
    """Lower case, single spaces, no full stop at the end."""
    return " ".join(text.lower().split()).rstrip(".")


def score_exact(example: Example, text: str) -> Score:
    """Score a response that is the answer, or ends with "the answer is …"; ``format_ok``: it is the answer alone."""
    gold = normalise(example.answer or "")
    stated = _ANSWER_IS.search(text)
    parsed = normalise(stated.group(1) if stated else text)
    return Score(correct=parsed == gold, parsed=parsed or None, format_ok=normalise(text) == gold)
