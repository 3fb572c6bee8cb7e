"""Compares whole answers as text."""

from __future__ import annotations

from collections.abc import Iterator

from cl_bench.tasks.base import Example, Score
from cl_bench.tasks.scoring.reading import answer_part, stated, tagged_answer
from cl_bench.tasks.scoring.retractions import replacement


def normalise(text: str) -> str:
    """Lower case, single spaces, no full stop at the end."""
    return " ".join(text.lower().split()).rstrip(".")


def _readings(text: str) -> Iterator[str]:
    """The answer as it stands, then without emphasis."""
    content = tagged_answer(text)
    if content is None:
        place, content = next(stated(text), (0, text))
        new = replacement(text, text.find(content, place)) if content is not text else None
        content = content if new is None else new
    yield content
    yield content.strip(" .").strip("*`").rstrip(".")


def score_exact(example: Example, text: str) -> Score:
    """Score a response that is the answer, is tagged with it, or says "the answer is …" last.

    An answer that is said and taken back ("the answer is red. Wait, no: blue") is what replaces it, if anything does.
    ``format_ok``: it is the answer alone.
    """
    gold = normalise(example.answer or "")
    readings = [normalise(reading) for reading in _readings(answer_part(text))]
    parsed = next((reading for reading in readings if reading == gold), readings[0])
    return Score(correct=parsed == gold != "", parsed=parsed or None, format_ok=normalise(text) == gold != "")
