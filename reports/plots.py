"""Figures of a run. matplotlib is drawn without a display and imported when a figure is asked for."""

from __future__ import annotations

import textwrap
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cl_bench.harness.escaping import visible
from cl_bench.harness.measure.matrix import Matrix
from cl_bench.harness.planned_stages import learned_columns
from cl_bench.harness.run_directory import load_run
from cl_bench.reports.content import GROUPS, headline, provenance

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HEATMAP = "matrix.png"
"""File name of the heat map in a run directory."""
_CELL_WIDTH, _CELL_HEIGHT = 0.62, 0.42  # inches


def heatmap(directory: Path) -> bytes:
    """A run's matrix as a PNG: one cell per row and column, in percent.

    Cells without a value are hatched, cells of what a stage trained on are framed, kinds of columns are set apart.

    Raises:
        StoreError: The directory is not a run or is damaged.
    """
    view = load_run(directory)
    learned = learned_columns(view.spec)
    figure = draw_matrix(view.matrix, {(row, name) for row, names in learned.items() for name in names})
    figure.suptitle(literal(headline(view)), fontsize=10)
    figure.supxlabel(literal(provenance(view.spec)), fontsize=6)
    return png(figure)


def png(figure: Figure) -> bytes:
    """The figure as PNG; the same figure gives the same bytes."""
    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=130, metadata={"Software": None})
    return buffer.getvalue()


def literal(text: str, width: int | None = None) -> str:
    """The text so that a figure shows it as it is: matplotlib would set what stands between dollars as a formula.

    Args:
        text: Any text.
        width: Characters a line; None: one line.
    """
    shown = visible(text) if width is None else textwrap.fill(visible(text), width)
    return shown.replace("$", r"\$")


def draw_matrix(matrix: Matrix, trained: set[tuple[str, str]]) -> Figure:
    """A heat map with rows and columns in the matrix's order, grouped by kind.

    Args:
        matrix: The values; fractions.
        trained: (row, column) pairs to frame.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    groups = [(title, matrix.of_kind(kind)) for kind, title in GROUPS if matrix.of_kind(kind)]
    count = sum(len(columns) for _, columns in groups)
    size = (2.2 + _CELL_WIDTH * max(count, 3), 2.4 + _CELL_HEIGHT * max(len(matrix.rows), 1))
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    if not groups or not matrix.rows:
        figure.text(0.5, 0.5, "nothing was evaluated", ha="center")
        return figure
    ratios = [len(columns) for _, columns in groups]
    axes = figure.subplots(1, len(groups), squeeze=False, width_ratios=ratios)[0]
    images, rows = [], [literal(row) for row in matrix.rows]
    for number, (axis, (title, columns)) in enumerate(zip(axes, groups, strict=True)):
        images.append(_draw_group(axis, matrix, [column.name for column in columns], trained))
        axis.set_title(title, fontsize=9)
        axis.set_yticks(range(len(rows)), rows if number == 0 else [""] * len(rows), fontsize=8)
    figure.colorbar(images[-1], ax=list(axes), shrink=0.8, label="%", pad=0.01)
    return figure


def _draw_group(axis: Axes, matrix: Matrix, names: list[str], trained: set[tuple[str, str]]) -> Any:
    import numpy as np

    values = np.array([[_percent(matrix.value(row, name)) for name in names] for row in matrix.rows])
    image = axis.imshow(np.ma.masked_invalid(values), cmap="viridis", vmin=0, vmax=100, aspect="auto")
    shown = [literal(name) for name in names]
    axis.set_xticks(range(len(names)), shown, rotation=40, ha="right", rotation_mode="anchor", fontsize=8)
    axis.tick_params(length=0)
    for i, row in enumerate(matrix.rows):
        for j, name in enumerate(names):
            _annotate(axis, i, j, values[i, j], (row, name) in trained)
    return image


def _annotate(axis: Axes, i: int, j: int, value: float, trained: bool) -> None:
    from matplotlib.patches import Rectangle

    if value != value:  # NaN: no value
        axis.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, fill=False, hatch="///", edgecolor="0.6", linewidth=0))
        return
    axis.text(j, i, f"{value:.1f}", ha="center", va="center", fontsize=7, color="white" if value < 60 else "black")
    if trained:
        frame = Rectangle((j - 0.46, i - 0.44), 0.92, 0.88, fill=False, edgecolor="crimson", linewidth=1.6)
        axis.add_patch(frame)


def _percent(value: float | None) -> float:
    return float("nan") if value is None else 100 * value
