"""Several seeds of one spec: means and spreads, refused where the runs differ in more than the seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from cl_bench.harness.compare.estimates import OverSeeds, over_seeds
from cl_bench.harness.errors import NotComparableError, UsageError
from cl_bench.harness.measure.matrix import Cell, Matrix
from cl_bench.harness.measure.run_metrics import run_metrics
from cl_bench.harness.planned_stages import learned_columns
from cl_bench.harness.run_directory import RunView
from cl_bench.reports.content import metrics_of
from cl_bench.reports.metrics import METRICS


@dataclass(frozen=True, slots=True)
class SeedSummary:
    """Runs of one spec that differ in the seed.

    Attributes:
        views: The runs, by seed.
        matrix: Mean of each cell; null where a seed has none.
        metrics: Metrics of that mean matrix, for the rows' retention.
        measures: Each metric over seeds.
    """

    views: tuple[RunView, ...]
    matrix: Matrix
    metrics: Mapping[str, Any]
    measures: Mapping[str, OverSeeds]


def summarise_seeds(views: Sequence[RunView]) -> SeedSummary:
    """Means and spreads over seeds.

    Raises:
        UsageError: No run.
        NotComparableError: The specs differ in something else, or a seed comes twice; the fields are named.
    """
    if not views:
        raise UsageError("no runs to summarise")
    ordered = tuple(sorted(views, key=lambda view: view.spec.seed))
    _check_same_spec(ordered)
    matrix = mean_matrix([view.matrix for view in ordered])
    found = [metrics_of(view)["metrics"] for view in ordered]
    measures = {name: over_seeds([run.get(name, {}).get("value") for run in found]) for name in METRICS}
    return SeedSummary(ordered, matrix, run_metrics(matrix, learned_columns(ordered[0].spec)), measures)


def mean_matrix(matrices: Sequence[Matrix]) -> Matrix:
    """Mean of each cell over matrices of the same columns, for the rows that any has; null where one has none."""
    mean = Matrix(matrices[0].columns)
    for row in dict.fromkeys(row for matrix in matrices for row in matrix.rows):
        mean.add_row(row)
        for column in mean.columns:
            cells = [m.cell(row, column.name) if row in m.rows else Cell(None, "row missing") for m in matrices]
            missing = [cell.reason for cell in cells if cell.value is None]
            present = [cell.value for cell in cells if cell.value is not None]
            if missing:
                mean.set(row, column.name, Cell(None, f"{len(missing)} of {len(cells)} seeds: {missing[0]}"))
            else:
                mean.set(row, column.name, Cell(fmean(present)))
    return mean


def _check_same_spec(views: Sequence[RunView]) -> None:
    seeds = [view.spec.seed for view in views]
    if len(set(seeds)) < len(seeds):
        raise NotComparableError("a seed comes twice", f"seeds: {', '.join(map(str, seeds))}", "give each run once")
    payloads = [view.spec.seedless_payload() for view in views]
    for view, payload in zip(views, payloads, strict=True):
        differing = [name for name in payload if payload[name] != payloads[0][name]]
        if differing:
            raise NotComparableError(
                f"{view.directory} is no other seed of {views[0].directory}",
                f"they differ in {', '.join(differing)}",
                "average runs of one spec only",
            )
