"""Tables for the terminal: one run, or several seeds of one spec."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from cl_bench.harness.compare.whole import load_whole
from cl_bench.harness.planned_stages import learned_columns
from cl_bench.harness.run_directory import ENDED, RunView
from cl_bench.reports import content, evaluated, generated
from cl_bench.reports.content import Grid
from cl_bench.reports.items import seeds_items_grid
from cl_bench.reports.metrics import METRICS, SIGNED, metrics_grid
from cl_bench.reports.seeds import SeedSummary, summarise_seeds

if TYPE_CHECKING:
    from rich.console import Console

_DEFAULT_WIDTH = 110
_NARROWEST = 40
_GAP = 3
"""Characters between columns: a blank on each side and the separator of the box."""


def render_run(directory: Path, width: int | None = None) -> str:
    """The final table of a run as plain text.

    Args:
        directory: Run directory; the run may have ended early.
        width: Characters a line; None: the terminal's, or 110 where there is none.

    Raises:
        StoreError: The directory is not a run or is damaged.
    """
    view = load_whole(directory)
    metrics = content.metrics_of(view)
    grids = content.matrix_grids(view.matrix, learned_columns(view.spec), metrics)
    optional = (content.stages_grid(view, metrics), generated.data_generation_grid(view), generated.teacher_grid(view))
    guesses = evaluated.baselines_grid(view.matrix)
    grids += [*([guesses] if guesses else []), *evaluated.sampled_grids(view)]
    grids += [metrics_grid(metrics), *(grid for grid in optional if grid is not None)]
    title = content.headline(view)
    if view.status.get("state") not in ENDED:
        title = f"{title}\n{content.standing(view)}"
    return page(title, grids, _footer(view), width)


def render_seeds(directories: Sequence[Path], width: int | None = None) -> str:
    """Means over seeds of one spec, with every seed's value.

    Raises:
        NotComparableError: The runs differ in more than the seed.
        StoreError: A directory is not a run or is damaged.
    """
    summary = summarise_seeds([load_whole(directory) for directory in directories])
    first = summary.views[0]
    seeds = ", ".join(str(view.spec.seed) for view in summary.views)
    title = f"{content.headline(first).rpartition(', seed')[0]}, mean of seeds {seeds}"
    grids = content.matrix_grids(summary.matrix, learned_columns(first.spec), summary.metrics)
    footer = [content.provenance(first.spec), *_lab(first)]
    items = seeds_items_grid(summary.views)
    return page(title, [*grids, seeds_grid(summary), *([items] if items else [])], footer, width)


def seeds_grid(summary: SeedSummary) -> Grid:
    """Each metric's mean, spread and values over seeds."""
    rows = [
        (
            METRICS[name][0],
            content.percent(found.mean, name in SIGNED),
            content.percent(found.deviation),
            "  ".join(content.percent(value, name in SIGNED) for value in found.values),
        )
        for name, found in summary.measures.items()
    ]
    notes = ("sd: standard deviation over seeds (n - 1). A mean is missing where a seed has no value.",)
    return Grid("Metrics over seeds (%)", ("metric", "mean", "sd", "each seed"), tuple(rows), notes)


def _footer(view: RunView) -> list[str]:
    lines = [f"! {sentence}" for sentence in content.warnings(view)]
    lines += [f"Cost: {content.cost_sentence(view)}"] if view.manifest else []
    return [*lines, content.provenance(view.spec), *content.origin(view.spec), *_lab(view)]


def _lab(view: RunView) -> list[str]:
    return [content.LAB_SENTENCE] if view.spec.lab_version is not None else []


def page(title: str, grids: Sequence[Grid], footer: Sequence[str], width: int | None) -> str:
    """Grids one below another as plain text.

    Args:
        title: First line.
        grids: Tables; one that is too wide is cut into several.
        footer: Last lines.
        width: Characters a line; None: the terminal's, or 110 where there is none.
    """
    from rich.console import Console

    columns = max(width or shutil.get_terminal_size((_DEFAULT_WIDTH, 40)).columns, _NARROWEST)
    stream = StringIO()
    console = Console(file=stream, width=columns, force_terminal=False, no_color=True, highlight=False, markup=False)
    console.print(title)
    console.print()
    for grid in grids:
        for part in split_columns(grid, columns):
            _print_grid(console, part)
        for note in grid.notes:
            console.print(f" {note}")
        if grid.notes:
            console.print()
    for line in footer:
        console.print(line)
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()) + "\n"


def _print_grid(console: Console, grid: Grid) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    # The title apart from the table, which would break it where the columns end.
    console.print(Text(grid.title))
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for number, name in enumerate(grid.header):
        last_is_text = number == len(grid.header) - 1 and name in ("meaning", "each seed")
        table.add_column(Text(name), justify="left" if number == 0 or last_is_text else "right")
    for row in grid.rows:
        table.add_row(*(Text(cell) for cell in row))
    console.print(table)


def split_columns(grid: Grid, width: int) -> list[Grid]:
    """Cut a grid that is too wide into several with the same first column; the last column may wrap instead."""
    if grid.header[-1] in ("meaning", "each seed"):
        return [grid]
    widths = [max(len(name), *(len(row[i]) for row in grid.rows)) + _GAP for i, name in enumerate(grid.header)]
    parts: list[list[int]] = [[]]
    used = widths[0]
    for i in range(1, len(grid.header)):
        if parts[-1] and used + widths[i] > width:
            parts.append([])
            used = widths[0]
        parts[-1].append(i)
        used += widths[i]
    return [
        Grid(
            grid.title if number == 0 else f"{grid.title}, continued",
            (grid.header[0], *(grid.header[i] for i in part)),
            tuple((row[0], *(row[i] for i in part)) for row in grid.rows),
        )
        for number, part in enumerate(parts)
    ]
