"""The table of a run's metrics: labels, definitions, and what stands in a cell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cl_bench.harness.measure.metrics import NEAR_BASE
from cl_bench.reports.content import Grid, percent

METRICS: dict[str, tuple[str, str]] = {
    "acquisition": ("acquisition", "score on each task right after learning it, mean over stages"),
    "gain": ("gain", "acquisition minus the untouched model's score"),
    "retention": ("retention", "mean of the retention benchmarks after the last stage"),
    "retention_change": ("retention change", "retention minus the untouched model's"),
    "retention_change_detectable": (
        "smallest detectable retention change",
        "what these items show with a power of 80 % if both rows' answers were independent; paired tests show less",
    ),
    "retention_near_base": ("retention near base", f"benchmarks within {100 * NEAR_BASE:g} points of base"),
    "average_accuracy": ("average accuracy", "mean over tasks after the last stage"),
    "average_incremental_accuracy": ("average incremental accuracy", "mean over stages of the mean over tasks so far"),
    "backward_transfer": ("backward transfer (BWT)", "score at the end minus score when learned, earlier tasks"),
    "backward_transfer_under_no_change": ("size of BWT under no change", "what sampling the items alone gives"),
    "forward_transfer": ("forward transfer (FWT)", "score just before learning minus the untouched model's"),
    "forgetting": (
        "forgetting",
        "best score since learning before the last stage minus final score, earlier tasks; negative: still improving",
    ),
    "forgetting_under_no_change": ("forgetting under no change", "what the best of several noisy scores alone gives"),
    "forgetting_all_past": ("forgetting, all past", "the same, best of all stages before the last"),
    "forgetting_diagonal": ("forgetting, diagonal", "score when first learned minus final score, earlier tasks"),
    "intransigence": ("intransigence", "score of joint training minus score when learned"),
}
"""Label and short definition of each metric in ``metrics.json``; chance-adjusted ones stand beside their own."""
SIGNED = frozenset({
    "gain", "retention_change", "backward_transfer", "forward_transfer", "forgetting", "forgetting_all_past",
    "forgetting_diagonal", "intransigence",
})  # fmt: skip
"""Metrics that are differences; the others are levels."""


def metrics_grid(metrics: Mapping[str, Any]) -> Grid:
    """The run's metrics, plain and above chance, with their definitions; where there is no value, why."""
    rows = []
    for name, (label, definition) in METRICS.items():
        if name in metrics.get("clean", {}):
            clean = metrics["clean"][name]
            above = percent(metrics["clean"].get(f"{name}_above_chance", {}).get("value"), name in SIGNED)
            rows.append((f"{label}, clean items", percent(clean["value"], name in SIGNED), above, clean["reason"]))
        found = metrics["metrics"].get(name, {"value": None, "reason": "not computed by this version"})
        adjusted = metrics["metrics"].get(f"{name}_above_chance")
        above = "" if adjusted is None else percent(adjusted["value"], name in SIGNED)
        rows.append((label, percent(found["value"], name in SIGNED), above, _meaning(definition, found, adjusted)))
    notes = ("above chance: every score s of a column of chance c counted as (s - c) / (1 - c).",)
    return Grid("Metrics (%)", ("metric", "value", "above chance", "meaning"), tuple(rows), notes)


def _meaning(definition: str, found: Mapping[str, Any], adjusted: Mapping[str, Any] | None) -> str:
    if found["value"] is None:
        reason: str = found["reason"]
        return reason
    parts = [definition]
    if "range" in found:
        low, high = (percent(bound) for bound in found["range"])
        parts.append(f"95 % of simulations: {low} to {high}")
    parts.append(found.get("reason", ""))
    if adjusted is not None and adjusted["value"] is None:
        parts.append(f"above chance: {adjusted['reason']}")
    return "; ".join(part for part in parts if part)
