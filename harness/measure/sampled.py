"""Sampled evaluation: several answers an item at a temperature, beside the greedy one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from cl_bench.harness.generation.base import Completion, GenerationSettings, Prompt, Sampler
from cl_bench.harness.measure.statistics.intervals import Interval, bootstrap_mean, wilson
from cl_bench.harness.seeds import row_seed

SampledRow = Mapping[str, Any]
_RIGHT: Final = object()
"""What all right answers vote for."""
"""One sampled answer: ``response, correct, parsed, format_ok, tokens, ended``."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How many answers an item gets, and how they are drawn.

    Attributes:
        n: Answers an item.
        temperature: Logits are divided by it; no top-k, no top-p.
    """

    n: int
    temperature: float = 1.0


def sampled_answers(
    column: str,
    items: Sequence[tuple[str, Sequence[int]]],
    sampler: Sampler,
    settings: GenerationSettings,
    sampling: Sampling,
) -> list[list[Completion]]:
    """Draw the answers of one column.

    A row's seed depends on column, item and number of the answer alone: models are compared on the same random
    numbers, whatever the seed of their runs.

    Args:
        column: Name of the column.
        items: Id and prompt ids of each item.
        sampler: A sampler built around the model.
        settings: The greedy settings; limit, stop strings and batch size are kept.
        sampling: Number and temperature.

    Returns:
        ``sampling.n`` completions an item.
    """
    prompts = [
        Prompt(tuple(ids), row_seed(0, column, "evaluate", item, 0, number))
        for item, ids in items
        for number in range(sampling.n)
    ]
    drawn = replace(settings, temperature=sampling.temperature)
    completions = sampler.generate(prompts, drawn) if prompts else []
    return [list(completions[start : start + sampling.n]) for start in range(0, len(completions), sampling.n)]


def sampled_values(
    items: Sequence[Sequence[SampledRow]], votes: bool = True
) -> tuple[dict[str, float], dict[str, Interval]]:
    """Scores of sampled answers with 95 % intervals over items.

    ``avg@n``: mean share of right answers; ``maj@n``: share of items whose most frequent answer is right (right ones
    count as one answer, however they are written; of equally frequent answers the one drawn first has the vote, and
    those without a parsed one have none); ``pass@n``: share of items with a right answer among the n.

    Args:
        items: The answers of each item, n each; items that were skipped are left out by the caller.
        votes: Whether answers can be equal at all; programs and whole texts cannot, and have no ``maj@n``.

    Returns:
        Values by metric, empty without items, and the intervals of those that have enough items for one.
    """
    if not items:
        return {}, {}
    n = len(items[0])
    shares = [sum(bool(row["correct"]) for row in rows) / n for rows in items]
    shown = {f"pass@{n}": sum(share > 0 for share in shares)}
    if votes:
        shown[f"maj@{n}"] = sum(_majority_is_right(rows) for rows in items)
    values = {f"avg@{n}": sum(shares) / len(items), **{name: count / len(items) for name, count in shown.items()}}
    intervals = {
        f"avg@{n}": bootstrap_mean(shares),
        **{name: wilson(count, len(items)) for name, count in shown.items()},
    }
    return values, {name: interval for name, interval in intervals.items() if interval is not None}


def _majority_is_right(rows: Sequence[SampledRow]) -> bool:
    # Counter keeps the order of first appearance, and most_common is stable.
    votes = Counter(_vote(row) for row in rows if row["parsed"] is not None)
    return bool(votes) and votes.most_common(1)[0][0] is _RIGHT


def _vote(row: SampledRow) -> object:
    """What an answer votes for: the right answer in any form, or what it says; numbers by their value."""
    if row["correct"]:
        return _RIGHT
    text = " ".join(str(row["parsed"]).split()).strip("$. ").lower()
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return text
