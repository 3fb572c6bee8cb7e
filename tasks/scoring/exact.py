"""Compares whole answers as text."""

from __future__ import annotations

from cl_bench.tasks.base import Example, Score
from cl_bench.tasks.scoring.reading import answer_part, stated, tagged


def normalise(text: str) -> str:
    """Lower case, single spaces, no full stop at the end."""
    return " ".join(text.lower().split()).rstrip(".")


def score_exact(example: Example, text: str) -> Score:
    """Score a response that is the answer, is tagged with it, or says "the answer is …" last.

    ``format_ok``: it is the answer alone.
    """
    gold = normalise(example.answer or "")
    part = answer_part(text)
    content = tagged(part)
    if content is None:
        content = next((line for _, line in stated(part)), part)
    parsed = normalise(content)
    return Score(correct=parsed == gold != "", parsed=parsed or None, format_ok=normalise(text) == gold != "")
