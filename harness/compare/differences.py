"""Every method against a reference method: differences paired by seed, corrected over the panel's table (Holm)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import stdev

from cl_bench.harness.compare.measures import MEASURES
from cl_bench.harness.compare.table import MethodRow, Panel
from cl_bench.harness.errors import UnknownNameError
from cl_bench.harness.measure.statistics.power import detectable_over_seeds
from cl_bench.harness.measure.statistics.seeds import Difference, holm_table, paired_difference
from cl_bench.harness.run_directory import method_label

DEFAULT_REFERENCE = "sft"
TESTED = tuple(name for name, info in MEASURES.items() if info.tested)
"""Measures in which methods are compared; acquisition is not among them, since gain differs by the same amount."""


@dataclass(frozen=True, slots=True)
class MethodDifference:
    """One method minus the reference in one measure.

    Attributes:
        method: The row's label.
        measure: Name in ``MEASURES``.
        difference: Mean, values by seed, interval, Holm-adjusted p and whether it may be called a difference.
        detectable: Smallest mean difference that these seeds find with a power of 80 %; None below five seeds.
    """

    method: str
    measure: str
    difference: Difference
    detectable: float | None


@dataclass(frozen=True, slots=True)
class Differences:
    """The differences of a panel.

    Attributes:
        reference: Label of the reference method; empty where there is none.
        entries: By method, then measure; without the bounds, which no claim is about.
        not_compared: Methods that are not comparable with the reference, with the fields.
        reason: Why there is no table.
    """

    reference: str
    entries: tuple[MethodDifference, ...]
    not_compared: Mapping[str, tuple[str, ...]]
    reason: str = ""


def differences(panel: Panel, reference: str | None) -> Differences:
    """Compare the methods of a panel with one of them.

    Args:
        panel: The panel.
        reference: Method or row label that the others are compared with; None: ``sft`` where there is one.
    """
    name = reference or DEFAULT_REFERENCE
    named = [row for row in panel.rows if name in _names(row)]
    named = [row for row in named if row.label == name or not row.marks] or named
    if len(named) != 1:
        labels = ", ".join(row.label for row in named)
        problem = f"several methods are called {name}: {labels}" if named else f"{name} is not among the methods"
        return Differences("", (), {}, f"{problem}; --reference names one")
    base = named[0]
    others = [row for row in panel.rows if row is not base and row.views[0].spec.bound is None]
    apart = {row.label: row.marks or base.marks for row in others if row.marks or base.marks}
    compared = [row for row in others if row.label not in apart]
    found = {(row.label, measure): _difference(row, base, measure) for row in compared for measure in TESTED}
    adjusted = holm_table({"\t".join(key): difference for key, difference in found.items()})
    entries = tuple(
        MethodDifference(label, measure, adjusted[f"{label}\t{measure}"], _detectable(found[label, measure]))
        for label, measure in found
    )
    reason = "" if others else "there is no other method"
    return Differences(base.label, entries, apart, reason)


def check_reference(panels: tuple[Panel, ...], reference: str | None) -> None:
    """Check that a reference that was asked for is among the methods of some panel. Raises ``UnknownNameError``."""
    labels = {label for panel in panels for row in panel.rows for label in _names(row)}
    if reference is not None and reference not in labels:
        raise UnknownNameError("method among these runs", reference, labels)


def _names(row: MethodRow) -> set[str]:
    """What a row may be called: its label, and the method without the settings that set it apart."""
    return {row.label, method_label(row.views[0].spec)}


def _difference(row: MethodRow, base: MethodRow, measure: str) -> Difference:
    found = paired_difference(row.by_seed(measure), base.by_seed(measure))
    if found.n or not set(row.seeds) & set(base.seeds):
        return found
    # The seeds are there, the values are not.
    return replace(found, reason=row.measures[measure].reason or base.measures[measure].reason or found.reason)


def _detectable(difference: Difference) -> float | None:
    if difference.interval is None:  # too few seeds, or no spread: there is no test that could find anything
        return None
    return detectable_over_seeds(stdev(difference.values), difference.n)
