"""Why an answer counts as wrong: it had no readable, finished form, or it said something else than the truth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

Sample = Mapping[str, Any]
"""One row of a ``samples.jsonl``."""
Failure = Literal["skipped", "nothing parsed", "no end"]
Cause = Literal["format failure", "wrong answer"]
SKIPPED = "skipped"
NO_VERDICT = "no verdict"
WRONG_ANSWER: Cause = "wrong answer"


def verdict(sample: Sample) -> bool | None:
    """Whether an answer is right; None where the row has no verdict (skipped, or graded by shares)."""
    correct = sample["correct"]
    return None if correct is None else bool(correct)


def failure_of(sample: Sample) -> Failure | None:
    """What is wrong with an answer's form; None where an answer was read from a finished response.

    ``skipped``: the prompt did not fit the model's context. ``nothing parsed``: the scorer read no answer.
    ``no end``: one was read, but the response ran into its length limit.
    """
    if sample["ended"] == SKIPPED:
        return "skipped"
    if sample["parsed"] is None:
        return "nothing parsed"
    return "no end" if sample["ended"] == "length" else None


def cause_of(sample: Sample) -> Cause | None:
    """Why an answer is not right; None for a right one, and for a row that has no verdict but was answered.

    A right answer in a poor form is right: scorers take any form that they can read.
    """
    if verdict(sample) is None:
        return "format failure" if sample["ended"] == SKIPPED else None
    if verdict(sample):
        return None
    return "wrong answer" if failure_of(sample) is None else "format failure"
