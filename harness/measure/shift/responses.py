"""Response drift: how the answers changed, in text (greedy, scored rows) and as the untouched model embeds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from cl_bench.harness.measure.shift.records import Against, Record
from cl_bench.methods.training.rewriting import edit_similarity

Responses = Mapping[str, Sequence[Mapping[str, Any]]]
"""Rows of ``samples.jsonl`` by column."""
SCORED = "scored rows"
_GREEDY = "greedy answers that evaluation stored, row by row"
_LONGEST = 2_000
"""Characters of an answer that edit similarity looks at, whose cost grows with the square of the length."""


def generated(rows: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Rows with a generated answer, by id; a choice by likelihood is none."""
    return {str(row["id"]): row for row in rows if row.get("response") is not None and row.get("tokens")}


def in_both(before: Responses, after: Responses) -> tuple[Responses, Responses]:
    """The rows of each side that have a generated answer on both."""
    sides = [{column: generated(rows) for column, rows in responses.items()} for responses in (before, after)]
    shared = {column: sides[0][column].keys() & rows.keys() for column, rows in sides[1].items() if column in sides[0]}
    one, other = (
        {column: [row for id_, row in side[column].items() if id_ in ids] for column, ids in shared.items()}
        for side in sides
    )
    return one, other


def drift_records(before: Responses, after: Responses, against: Against) -> list[Record]:
    """Length ratio, exact match and edit similarity of the answers to the same rows, over all and by column.

    Args:
        before: Answers of the untouched model or of the row before.
        after: Answers after the stage.
        against: Which of the two ``before`` is.
    """
    pairs: dict[str, list[tuple[Mapping[str, Any], Mapping[str, Any]]]] = {}
    for column, rows in after.items():
        earlier = generated(before.get(column, ()))
        own = [(earlier[id_], row) for id_, row in generated(rows).items() if id_ in earlier]
        if own:
            pairs[column] = own
    everything = [pair for own in pairs.values() for pair in own]
    measures = {
        "response_length_ratio": (_length_ratio, "mean length after / mean length before", "1"),
        "response_exact_match": (_exact_match, "mean over answers", "fraction"),
        "response_edit_similarity": (
            _similarity,
            f"mean over answers, by words of the first {_LONGEST:,} characters",
            "fraction",
        ),
    }
    return [
        Record(
            measure=measure,
            against=against,
            prompts=SCORED,
            contexts=_GREEDY,
            reduction=reduction,
            unit=unit,
            n=len(everything),
            value=function(everything) if everything else None,
            reason="" if everything else "no scored row has a generated answer in both rows",
            by={column: function(own) for column, own in pairs.items()},
        )
        for measure, (function, reduction, unit) in measures.items()
    ]


_Pairs = Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]


def _length_ratio(pairs: _Pairs) -> float:
    return sum(int(after["tokens"]) for _, after in pairs) / sum(int(before["tokens"]) for before, _ in pairs)


def _exact_match(pairs: _Pairs) -> float:
    return sum(bool(before["response"] == after["response"]) for before, after in pairs) / len(pairs)


def _similarity(pairs: _Pairs) -> float:
    return sum(_alike(str(before["response"]), str(after["response"])) for before, after in pairs) / len(pairs)


def _alike(one: str, other: str) -> float:
    return 1.0 if one == other else edit_similarity(one[:_LONGEST], other[:_LONGEST])


def unbiased_mmd2(first: Tensor, second: Tensor) -> float | None:
    """Squared maximum mean discrepancy between paired samples [n, D] and [n, D], an RBF kernel of median width.

    The U-statistic of Gretton et al. (JMLR 2012, equation 4): unbiased, so that it can be negative, and exactly 0 for
    equal samples. Pairs are the answers of two models to the same prompt; the statistic leaves a pair's own kernel
    values out, so it holds where both answers were drawn with the same random numbers. The width is the median of the
    distances between different rows of both samples.

    Returns:
        The estimate; None with fewer than two pairs, or where all rows are equal.
    """
    n = len(first)
    if n < 2:
        return None
    rows = torch.cat([first, second]).double()
    distances = torch.cdist(rows, rows, compute_mode="donot_use_mm_for_euclid_dist")
    positive = distances[distances > 0]
    if not len(positive):
        return None
    kernel = torch.exp(-distances.square() / (2 * positive.median().square()))
    apart = ~torch.eye(n, dtype=torch.bool)
    terms = kernel[:n, :n] + kernel[n:, n:] - kernel[:n, n:] - kernel[n:, :n]
    return float(terms[apart].mean())
