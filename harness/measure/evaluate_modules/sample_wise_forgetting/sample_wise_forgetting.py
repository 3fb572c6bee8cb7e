"""``evaluate`` module: which items were forgotten and gained between two rows, and what guessing explains of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import datasets
import evaluate

from cl_bench.harness.measure.samplewise import sample_wise

_DESCRIPTION = """
Sample-wise forgetting and backward transfer: items right before and wrong after, and the other way round, as shares of
all items, plain and less the transitions that guessing alone would make.
"""
_INPUTS = """
Args:
    predictions: Whether each item is right in the later row (0 or 1).
    references: Whether the same item is right in the earlier row (0 or 1).
    options: Number of options of each item; None for open answers.
Returns:
    Counts (n, kept, forgotten, gained, never) and shares; the adjusted shares may be negative.
"""
_CITATION = "Sample-wise forgetting, arXiv:2510.17776."


class SampleWiseForgetting(evaluate.Metric):  # type: ignore[misc]  # evaluate has no types
    """The metric that ``evaluate.load`` finds."""

    def _info(self) -> evaluate.MetricInfo:
        features = datasets.Features({name: datasets.Value("int8") for name in ("predictions", "references")})
        return evaluate.MetricInfo(
            description=_DESCRIPTION, citation=_CITATION, inputs_description=_INPUTS, features=features
        )

    def _compute(
        self, predictions: Sequence[int], references: Sequence[int], options: int | None = None
    ) -> dict[str, Any]:
        found = sample_wise(references, predictions, options)
        counts = {name: getattr(found, name) for name in ("n", "kept", "forgotten", "gained", "never")}
        return {
            **counts,
            "accuracy_before": found.accuracy_before,
            "accuracy_after": found.accuracy_after,
            "forgetting": found.forgetting,
            "backward_transfer": found.backward_transfer,
            "chance_transition": found.chance_transition,
            "forgetting_adjusted": found.adjusted(found.forgetting),
            "backward_transfer_adjusted": found.adjusted(found.backward_transfer),
            "known_before": found.known_before,
            "known_after": found.known_after,
        }
