"""The stages that a spec plans: their row names and what each trains on."""

from __future__ import annotations

from cl_bench.harness.measure.matrix import BASE_ROW
from cl_bench.harness.spec import RunSpec, StageSpec

JOINT = "joint"


def planned_stages(spec: RunSpec) -> list[tuple[str, tuple[StageSpec, ...]]]:
    """Row name of each stage with the parts of the sequence it trains on: one each, all at once for ``joint``."""
    if spec.bound == "base":
        return []
    if spec.bound == JOINT:
        return [(JOINT, spec.sequence.stages)]
    return [(stage.name, (stage,)) for stage in spec.sequence.stages]


def planned_rows(spec: RunSpec) -> list[str]:
    """Rows of a run that has come to its end: the untouched model's, then one a stage."""
    return [BASE_ROW, *(name for name, _ in planned_stages(spec))]


def learned_columns(spec: RunSpec) -> dict[str, tuple[str, ...]]:
    """Columns that each planned stage trains on, by row name, in order."""
    return {name: tuple(dict.fromkeys(part.task for part in parts)) for name, parts in planned_stages(spec)}
