"""Probe: the model is right once its answer is made to begin as the untouched model's answers usually do."""

from __future__ import annotations

from cl_bench.harness.measure.items.openings import common_opening
from cl_bench.harness.measure.items.probed import Attempt, ProbeInput

NAME = "forced_opening"


def forced_opening(given: ProbeInput) -> Attempt:
    """Force the untouched model's most frequent opening in the column and go on greedily."""
    column = given.column
    if given.scored_by_options:
        return Attempt(reason="nothing is generated: the column is scored by the log-likelihoods of its options")
    opening = common_opening(given.base_samples, column.gives_away)
    if opening is None:
        return Attempt(reason="the untouched model's answers have no opening in common")
    return Attempt(column.answers(given.model, given.ids, opening), details={"opening": opening})
