"""What a run cost, as the report shows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cl_bench.harness.measure.run_cost import EVALUATION, PARTS
from cl_bench.reports.content import MISSING, Grid, count

LABELS = {
    "data_generation": "data generation",
    "generate": "rollouts",
    "train": "training",
    "teacher": "teacher",
    "anchor": "anchor",
    EVALUATION: "evaluation",
}
PFLOP = 1e15


def cost_grid(cost: Mapping[str, Any]) -> Grid | None:
    """Operations of each row by part; None for a run without finished rows."""
    stages = cost["stages"]
    if not stages:
        return None
    found = {part for stage in stages.values() for part in stage["pflops"]}
    parts = [part for part in (*PARTS, *sorted(found - set(PARTS))) if part in found]
    rows = [(row, *(_operations(stage["pflops"].get(part)) for part in parts)) for row, stage in stages.items()]
    total = cost["total"]["pflops"]
    rows.append(("all", *(_operations(total.get(part)) for part in parts)))
    header = ("after", *(LABELS.get(part, part) for part in parts))
    return Grid("Cost (FLOP)", header, tuple(rows), (_quality(cost), _WHAT))


_WHAT = (
    "2 N a token of a forward pass and 6 N of training, N the model's parameters; prompts and rejected samples count, "
    "and so does what came from a cache."
)


def _operations(pflops: float | None) -> str:
    return MISSING if pflops is None else count(pflops * PFLOP)


def _quality(cost: Mapping[str, Any]) -> str:
    """Points learned and kept for the operations of adaptation."""
    shown = [f"{name.replace('_', ' ')} {_per_pflop(found)}" for name, found in cost["per_pflop"].items()]
    return "Points per PFLOP of adaptation: " + ", ".join(shown) + "."


def _per_pflop(found: Mapping[str, Any]) -> str:
    return f"undefined ({found['reason']})" if found["value"] is None else f"{100 * found['value']:+.3g}"
