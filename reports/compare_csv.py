"""A comparison of runs as CSV: methods, differences and points, a line each, values as fractions."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from io import StringIO

from cl_bench.harness.compare.comparison import Comparison
from cl_bench.harness.compare.measures import COSTS, MEASURES
from cl_bench.harness.escaping import visible
from cl_bench.harness.redaction import redacted

_FORMULA = tuple("=+-@＝＋－＠")
_NUMBER = r"(?:[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?)?"
_NUMBERS = re.compile(rf"{_NUMBER}(?:;{_NUMBER})*")


def methods_csv(comparison: Comparison) -> str:
    """Every measure of every method, a line each: mean, spread, interval, each seed's value."""
    header = ("panel", "method", "measure", "unit", "mean", "sd", "low", "high", "seeds", "values", "reason", "marks")
    units = {name: info.unit for name, info in (MEASURES | COSTS).items()}
    rows = [
        (
            panel.title, row.label, name, units.get(name, "pflop"), found.mean, found.deviation,
            *(found.interval or (None, None)), _joined(row.seeds), _joined(found.values), found.reason,
            "; ".join(row.marks),
        )
        for panel in comparison.panels
        for row in panel.rows
        for name, found in {**row.measures, **{f"pflops {part}": found for part, found in row.parts.items()}}.items()
    ]  # fmt: skip
    return _csv(header, rows)


def differences_csv(comparison: Comparison) -> str:
    """Every difference from the reference, a line each."""
    header = ("panel", "reference", "method", "measure", "n", "mean", "low", "high", "p_holm", "claim", "detectable",
              "seeds", "values", "reason")  # fmt: skip
    rows = [
        (
            panel.title, found.reference, entry.method, entry.measure, entry.difference.n, entry.difference.mean,
            *(entry.difference.interval or (None, None)), entry.difference.p, entry.difference.claim, entry.detectable,
            _joined(entry.difference.seeds), _joined(entry.difference.values), entry.difference.reason,
        )
        for panel, found in zip(comparison.panels, comparison.differences, strict=True)
        for entry in found.entries
    ]  # fmt: skip
    return _csv(header, rows)


def points_csv(comparison: Comparison) -> str:
    """Every point of shift against forgetting, a line each."""
    header = ("run", "method", "model", "task", "row", "seed", "primary", "shift_nats", "retention_change", "gain",
              "log_learning_rate_x_steps", "at_floor")  # fmt: skip
    rows = [
        (
            point.run, point.method, point.model, point.task, point.row, point.seed, point.primary, point.shift,
            point.retention_change.value, point.gain.value, point.log_budget.value, point.at_floor,
        )
        for point in comparison.points.points
    ]  # fmt: skip
    return _csv(header, rows)


def _joined(values: Iterable[object]) -> str:
    return ";".join("" if value is None else str(value) for value in values)


def _csv(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    stream = StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([_text(value) if isinstance(value, str) else value for value in row] for row in rows)
    return stream.getvalue()


def _text(text: str) -> str:
    """Text as a cell that a spreadsheet takes for no formula; lists of numbers stay as they are."""
    shown = visible(redacted(text))
    return f"'{shown}" if shown.startswith(_FORMULA) and not _NUMBERS.fullmatch(shown) else shown
