"""Signs that a model has collapsed: answers that never end, that repeat themselves, or that are never right any more.

A stage that shows them is finished, evaluated and flagged; the run goes on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

_NGRAM, _REPEATS = 4, 5
"""A response repeats itself when the same four words in a row occur five times or more."""
_SHARE = 0.5
"""Share of a column's responses, above the untouched model's own share, from which a sign is reported."""


def repeats_itself(text: str) -> bool:
    """Whether the same four words in a row occur at least five times."""
    words = text.split()
    grams = Counter(tuple(words[i : i + _NGRAM]) for i in range(len(words) - _NGRAM + 1))
    return max(grams.values(), default=0) >= _REPEATS


def shares(samples: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Shares of generated responses of a column that did not end, that repeat themselves, and that are right."""
    responses = [row for row in samples if row.get("response") is not None]
    count = max(len(responses), 1)
    return {
        "without_end": sum(row["ended"] == "length" for row in responses) / count,
        "repeating": sum(repeats_itself(str(row["response"])) for row in responses) / count,
        "correct": sum(bool(row["correct"]) for row in responses) / count,
        "responses": float(len(responses)),
    }


def signs_of_collapse(
    now: Mapping[str, Mapping[str, float]], before: Mapping[str, Mapping[str, float]], trained: Sequence[str]
) -> list[str]:
    """Sentences for the report.

    Args:
        now: ``shares`` by column after the stage.
        before: The same for the untouched model.
        trained: Columns the stage trained on; reward falling to zero is a sign on those alone.
    """
    found = []
    for column, current in now.items():
        base = before.get(column)
        if base is None or not current["responses"]:
            continue
        for name, words in (("without_end", "never end"), ("repeating", "repeat themselves")):
            if current[name] - base[name] >= _SHARE:
                found.append(f"sign of collapse: {current[name]:.0%} of the responses to {column} {words}")
        if column in trained and base["correct"] > 0 and current["correct"] == 0:
            found.append(f"sign of collapse: no response to {column} is right, after training on it")
    return found
