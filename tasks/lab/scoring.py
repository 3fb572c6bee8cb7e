"""One scorer for lab domains and skills."""

from __future__ import annotations

from cl_bench.tasks.base import Example, Score
from cl_bench.tasks.lab.domains.tool_use import canonical_call
from cl_bench.tasks.lab.styles import format_ok, parse_answer


def same_answer(domain: str, given: str, gold: str) -> bool:
    """Whether two answers agree: tool calls as parsed JSON, everything else exactly."""
    if domain == "tool-use":
        call = canonical_call(given)
        return call is not None and call == canonical_call(gold)
    return given == gold


def score_text(example: Example, text: str) -> Score:
    """Score a response: the answer read in any declared style, compared with the canonical one."""
    parsed = parse_answer(text)
    correct = parsed is not None and same_answer(str(example.meta["domain"]), parsed, example.answer or "")
    return Score(correct=correct, parsed=parsed, format_ok=format_ok(text))
