"""Figures of a comparison: retention against acquisition, and shift against what was forgotten or learned.

Drawn with matplotlib alone: seaborn takes three times as long to import, and its band knows no clusters.
"""

from __future__ import annotations

import math
import textwrap
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from cl_bench.harness.compare.comparison import Comparison
from cl_bench.harness.compare.correlation import Relation
from cl_bench.harness.compare.estimates import OverSeeds
from cl_bench.harness.compare.regression import line_band
from cl_bench.harness.compare.table import MethodRow, Panel
from cl_bench.reports.compare_relations import OUTCOMES
from cl_bench.reports.compare_styles import Style, styles
from cl_bench.reports.content import LAB_SENTENCE
from cl_bench.reports.plots import literal, png

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PLACES = 60
_SIZE, _LEGEND_WIDTH = (6.4, 4.4), 2.2  # inches
_LEGEND_ROWS = 18
_TITLE, _FOOTNOTE = 80, 110
"""Characters a line."""
_LONGEST_LABEL = 28
"""Characters of a label in a legend: the figure grows no wider for it."""


def figures(comparison: Comparison) -> dict[str, bytes]:
    """All figures as PNG, by file name; only those that have a point."""
    found = {}
    marks = styles(row.label for panel in comparison.panels for row in panel.rows)
    for number, panel in enumerate(comparison.panels, start=1):
        figure = tradeoff(panel, marks)
        if figure is not None:
            suffix = f"-{number}" if len(comparison.panels) > 1 else ""
            found[f"retention-acquisition{suffix}.png"] = _labelled(figure, comparison)
    for relation in comparison.relations:
        if len(relation.points) > 1:
            name = f"shift-{relation.outcome.replace('_', '-')}-{relation.kind}.png"
            found[name] = _labelled(scatter(relation, marks), comparison)
    return found


def tradeoff(panel: Panel, marks: Mapping[str, Style]) -> Figure | None:
    """Retention change against gain: a small mark a seed, a large one with intervals for the mean.

    Args:
        panel: The panel.
        marks: How each method is drawn.

    Returns:
        The figure; None where no run has both.
    """
    rows = [row for row in panel.rows if _both(row)]
    if not rows:
        return None
    figure, axes = _figure(panel.title)
    axes.axhline(0, color="0.7", linewidth=0.8)
    for row in rows:
        mark = marks[row.label]
        pairs = [(100 * x, 100 * y) for x, y in _both(row)]
        axes.scatter(
            [x for x, _ in pairs], [y for _, y in pairs], s=14, edgecolors=mark.colour, facecolors=mark.fill,
            marker=mark.marker, alpha=0.45, linewidths=0.8,
        )  # fmt: skip
        gain, retention = row.measures["gain"], row.measures["retention_change"]
        if gain.mean is None or retention.mean is None:
            axes.scatter([], [], s=14, edgecolors=mark.colour, facecolors=mark.fill, marker=mark.marker,
                         label=label_of(row.label))  # fmt: skip
            continue
        axes.errorbar(
            [100 * gain.mean], [100 * retention.mean], xerr=_error(gain), yerr=_error(retention), color=mark.colour,
            marker=mark.marker, markerfacecolor=mark.fill, markersize=8, capsize=2, linewidth=1, linestyle="none",
            label=label_of(row.label),
        )  # fmt: skip
    axes.set_xlabel("gain on the tasks learned, points")
    axes.set_ylabel("retention change, points")
    _legend(figure, axes)
    return figure


def scatter(relation: Relation, marks: Mapping[str, Style]) -> Figure:
    """Shift against an outcome, with the least-squares line and the band of lines over whole runs.

    Args:
        relation: The points and their line.
        marks: How each method is drawn.
    """
    import numpy as np

    outcome = OUTCOMES[relation.outcome]
    points = "first stages" if relation.kind == "primary" else "all rows"
    figure, axes = _figure(f"shift and {outcome}, {points}")
    axes.axhline(0, color="0.7", linewidth=0.8)
    methods = list(dict.fromkeys(point.method for point in relation.points))
    values = [_outcome(relation, place) for place in range(len(relation.points))]
    for method in methods:
        mark = marks[method]
        places = [place for place, point in enumerate(relation.points) if point.method == method]
        x = [relation.points[place].shift for place in places]
        y = [100 * values[place] for place in places]
        axes.scatter(
            x, y, s=22, edgecolors=mark.colour, facecolors=mark.fill, marker=mark.marker, alpha=0.8, linewidths=0.9,
            label=label_of(method),
        )  # fmt: skip
    if relation.slope.value is not None and relation.intercept.value is not None:
        x = [point.shift for point in relation.points]
        at = np.linspace(min(x), max(x), _PLACES)
        axes.plot(at, 100 * (relation.intercept.value + relation.slope.value * at), color="0.2", linewidth=1.2)
        band = line_band(x, values, [point.run_cluster for point in relation.points], at)
        if band is not None:
            axes.fill_between(at, 100 * band[0], 100 * band[1], color="0.5", alpha=0.2, linewidth=0)
    axes.set_xlabel("forward KL from the untouched model, nats per token")
    axes.set_ylabel(f"{outcome}, points")
    axes.set_title(literal(_summary(relation), _FOOTNOTE), fontsize=8)
    _legend(figure, axes)
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


def label_of(name: str) -> str:
    """A method's label as a legend shows it, in full or its two ends.

    Matplotlib would leave out what begins with an underscore.
    """
    half = _LONGEST_LABEL // 2
    short = name if len(name) <= _LONGEST_LABEL else f"{name[: half - 1]}…{name[-half:]}"
    shown = literal(short)
    return f" {shown}" if shown.startswith("_") else shown


def _figure(title: str) -> tuple[Figure, Axes]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=_SIZE, layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(literal(title, _TITLE), fontsize=10)
    axes = figure.subplots()
    axes.tick_params(labelsize=8)
    return figure, axes


def _legend(figure: Figure, axes: Axes) -> None:
    """The legend beside the axes, in as many columns as it needs; each further one widens the figure."""
    columns = max(1, math.ceil(len(axes.get_legend_handles_labels()[1]) / _LEGEND_ROWS))
    figure.set_size_inches(_SIZE[0] + _LEGEND_WIDTH * (columns - 1), _SIZE[1])
    axes.legend(fontsize=7, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5), ncols=columns)


def _labelled(figure: Figure, comparison: Comparison) -> bytes:
    lab = any(view.spec.lab_version is not None for view in comparison.found.views)
    notes: Sequence[str] = [LAB_SENTENCE] if lab else []
    if any(view.spec.limit is not None for view in comparison.found.views):
        notes = [*notes, "PARTIAL runs."]
    figure.supxlabel(textwrap.fill(" ".join(notes), _FOOTNOTE), fontsize=6)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)  # a box stands for it, as it should
        return png(figure)
