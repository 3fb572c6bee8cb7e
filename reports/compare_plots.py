"""Figures of a comparison: retention against acquisition, and shift against what was forgotten or learned.

Drawn with matplotlib alone: seaborn takes three times as long to import, and its band knows no clusters.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cl_bench.harness.compare.comparison import Comparison
from cl_bench.harness.compare.correlation import Relation
from cl_bench.harness.compare.estimates import OverSeeds
from cl_bench.harness.compare.regression import line_band
from cl_bench.harness.compare.table import MethodRow, Panel
from cl_bench.reports.compare_relations import OUTCOMES
from cl_bench.reports.content import LAB_SENTENCE
from cl_bench.reports.plots import png

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999933")
"""Colours that people with any colour vision tell apart (Okabe and Ito); markers repeat later than they do."""
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*", "h")
_PLACES = 60
_FOOTNOTE = 110
"""Characters a line."""


def figures(comparison: Comparison) -> dict[str, bytes]:
    """All figures as PNG, by file name; only those that have a point."""
    found = {}
    for number, panel in enumerate(comparison.panels, start=1):
        figure = tradeoff(panel)
        if figure is not None:
            suffix = f"-{number}" if len(comparison.panels) > 1 else ""
            found[f"retention-acquisition{suffix}.png"] = _labelled(figure, comparison)
    for relation in comparison.relations:
        if len(relation.points) > 1:
            name = f"shift-{relation.outcome.replace('_', '-')}-{relation.kind}.png"
            found[name] = _labelled(scatter(relation), comparison)
    return found


def tradeoff(panel: Panel) -> Figure | None:
    """Retention change against gain: a small mark a seed, a large one with intervals for the mean; None without any."""
    rows = [row for row in panel.rows if _both(row)]
    if not rows:
        return None
    figure, axes = _figure(panel.title)
    axes.axhline(0, color="0.7", linewidth=0.8)
    for number, row in enumerate(rows):
        colour, marker, fill = _style(number)
        pairs = [(100 * x, 100 * y) for x, y in _both(row)]
        axes.scatter(
            [x for x, _ in pairs], [y for _, y in pairs], s=14, edgecolors=colour, facecolors=fill, marker=marker,
            alpha=0.45, linewidths=0.8,
        )  # fmt: skip
        gain, retention = row.measures["gain"], row.measures["retention_change"]
        if gain.mean is None or retention.mean is None:
            axes.scatter([], [], s=14, edgecolors=colour, facecolors=fill, marker=marker, label=row.label)
            continue
        axes.errorbar(
            [100 * gain.mean], [100 * retention.mean], xerr=_error(gain), yerr=_error(retention), color=colour,
            marker=marker, markerfacecolor=fill, markersize=8, capsize=2, linewidth=1, linestyle="none",
            label=row.label,
        )  # fmt: skip
    axes.set_xlabel("gain on the tasks learned, points")
    axes.set_ylabel("retention change, points")
    _legend(axes)
    return figure


def scatter(relation: Relation) -> Figure:
    """Shift against an outcome, with the least-squares line and the band of lines over whole runs."""
    import numpy as np

    outcome = OUTCOMES[relation.outcome]
    points = "first stages" if relation.kind == "primary" else "all rows"
    figure, axes = _figure(f"shift and {outcome}, {points}")
    axes.axhline(0, color="0.7", linewidth=0.8)
    methods = list(dict.fromkeys(point.method for point in relation.points))
    values = [_outcome(relation, place) for place in range(len(relation.points))]
    for number, method in enumerate(methods):
        colour, marker, fill = _style(number)
        places = [place for place, point in enumerate(relation.points) if point.method == method]
        x = [relation.points[place].shift for place in places]
        y = [100 * values[place] for place in places]
        axes.scatter(
            x, y, s=22, edgecolors=colour, facecolors=fill, marker=marker, alpha=0.8, linewidths=0.9, label=method
        )
    if relation.slope.value is not None and relation.intercept.value is not None:
        x = [point.shift for point in relation.points]
        at = np.linspace(min(x), max(x), _PLACES)
        axes.plot(at, 100 * (relation.intercept.value + relation.slope.value * at), color="0.2", linewidth=1.2)
        band = line_band(x, values, [point.run_cluster for point in relation.points], at)
        if band is not None:
            axes.fill_between(at, 100 * band[0], 100 * band[1], color="0.5", alpha=0.2, linewidth=0)
    axes.set_xlabel("forward KL from the untouched model, nats per token")
    axes.set_ylabel(f"{outcome}, points")
    axes.set_title(_summary(relation), fontsize=8)
    _legend(axes)
    return figure


def _summary(relation: Relation) -> str:
    if relation.pearson.value is None:
        return f"no correlation: {relation.pearson.reason}"
    interval = relation.intervals["whole runs"].pearson
    shown = "no interval" if interval is None else f"[{interval[0]:+.2f}, {interval[1]:+.2f}]"
    claim = "" if relation.claim else "; no claim"
    return f"r = {relation.pearson.value:+.2f}, {shown} over whole runs, n = {len(relation.points)}{claim}"


def _outcome(relation: Relation, place: int) -> float:
    point = relation.points[place]
    found = point.retention_change if relation.outcome == "retention_change" else point.gain
    assert found.value is not None
    return found.value


def _both(row: MethodRow) -> list[tuple[float, float]]:
    gain, retention = row.by_seed("gain"), row.by_seed("retention_change")
    return [(gain[seed], retention[seed]) for seed in gain if seed in retention]


def _error(found: OverSeeds) -> list[list[float]] | None:
    if found.interval is None or found.mean is None:
        return None
    return [[100 * (found.mean - found.interval[0])], [100 * (found.interval[1] - found.mean)]]


def _style(number: int) -> tuple[str, str, str]:
    """Colour, marker and what fills it: every second round of colours has hollow markers."""
    colour = _COLOURS[number % len(_COLOURS)]
    filled = number // len(_COLOURS) % 2 == 0
    return colour, _MARKERS[number % len(_MARKERS)], colour if filled else "none"


def _figure(title: str) -> tuple[Figure, Axes]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.4), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title, fontsize=10)
    axes = figure.subplots()
    axes.tick_params(labelsize=8)
    return figure, axes


def _legend(axes: Axes) -> None:
    axes.legend(fontsize=7, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))


def _labelled(figure: Figure, comparison: Comparison) -> bytes:
    notes: Sequence[str] = [LAB_SENTENCE] if comparison.found.views[0].spec.lab_version is not None else []
    if any(view.spec.limit is not None for view in comparison.found.views):
        notes = [*notes, "PARTIAL runs."]
    figure.supxlabel(textwrap.fill(" ".join(notes), _FOOTNOTE), fontsize=6)
    return png(figure)
