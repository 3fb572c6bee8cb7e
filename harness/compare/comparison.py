"""One comparison: its runs, panels, differences and relations, and the same as a JSON document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cl_bench.harness.compare.comparability import check_comparable
from cl_bench.harness.compare.correlation import Relation, relations
from cl_bench.harness.compare.differences import Differences, check_reference, differences
from cl_bench.harness.compare.items import ItemTable, item_table
from cl_bench.harness.compare.points import Points, points_of
from cl_bench.harness.compare.runs import FoundRuns, find_runs
from cl_bench.harness.compare.table import MethodRow, Panel, method_names, panels
from cl_bench.harness.files import plain

COMPARISON_VERSION = 1


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything that a comparison found.

    Attributes:
        found: The runs, and those left out.
        marks: Fields in which a run differs from most, by directory.
        panels: Methods over seeds, by sequence and model.
        differences: Methods against the reference, one a panel.
        items: Methods against the reference item by item, one a panel; empty where it was not asked for.
        points: Checkpoints with shift and outcomes.
        relations: Shift against retention change and gain.
    """

    found: FoundRuns
    marks: Mapping[Path, tuple[str, ...]]
    panels: tuple[Panel, ...]
    differences: tuple[Differences, ...]
    items: tuple[ItemTable | None, ...]
    points: Points
    relations: tuple[Relation, ...]


def compare_runs(
    places: Sequence[str], reference: str | None = None, mark: bool = False, items: bool = False
) -> Comparison:
    """Compare runs.

    Args:
        places: Run directories, folders of runs, files of runs, or patterns of those.
        reference: Method that the others are compared with; None: ``sft`` where there is one.
        mark: Show runs that are not comparable, with marks, instead of refusing.
        items: Compare the answers to every item too, which reads all samples of the last rows.

    Raises:
        UsageError: Nothing is there, or the reference is none of the methods.
        NotComparableError: The runs differ in what their numbers depend on, and ``mark`` is false.
        StoreError: No run can be read.
    """
    found = find_runs(places)
    marks = check_comparable(found.views, mark)
    tables = panels(found.views, marks)
    check_reference(tables, reference)
    points = points_of(found.views, method_names(tables), marks)
    compared = tuple(differences(panel, reference) for panel in tables)
    by_item = tuple(item_table(*pair) for pair in zip(tables, compared, strict=True)) if items else ()
    return Comparison(found, marks, tables, compared, by_item, points, relations(points))


def to_json(comparison: Comparison) -> dict[str, Any]:
    """The comparison as plain values: every number, or null with its reason."""
    tables = zip(comparison.panels, comparison.differences, strict=True)
    items = comparison.items or (None,) * len(comparison.panels)
    return {
        "schema_version": COMPARISON_VERSION,
        "runs": [str(view.directory) for view in comparison.found.views],
        "left_out": [{"run": str(run.directory), "reason": run.reason} for run in comparison.found.left_out],
        "marks": {str(run): list(fields) for run, fields in comparison.marks.items()},
        "panels": [
            {
                "title": panel.title,
                "sequence": panel.sequence,
                "order": panel.order,
                "model": panel.model,
                "methods": [_row(row) for row in panel.rows],
                "differences": plain(found),
                "items": plain(by_item),
            }
            for (panel, found), by_item in zip(tables, items, strict=True)
        ],
        "relations": [_relation(relation) for relation in comparison.relations],
        "points": plain(comparison.points),
    }


def _row(row: MethodRow) -> dict[str, Any]:
    return {
        "method": row.label,
        "runs": {view.spec.seed: str(view.directory) for view in row.views},
        "marks": list(row.marks),
        "measures": plain(row.measures),
        "pflops": plain(row.parts),
    }


def _relation(relation: Relation) -> dict[str, Any]:
    content: dict[str, Any] = plain(relation)
    return {**content, "points": len(relation.points)}
