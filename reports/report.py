"""The Markdown report of a run."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cl_bench.harness import escaping
from cl_bench.harness.compare.whole import load_whole
from cl_bench.harness.measure.run_cost import run_cost
from cl_bench.harness.planned_stages import learned_columns
from cl_bench.harness.redaction import redacted, redacted_setting
from cl_bench.harness.run_directory import RunView
from cl_bench.reports import contamination, content, evaluated, generated, items
from cl_bench.reports.content import Grid
from cl_bench.reports.cost import cost_grid
from cl_bench.reports.intervals import interval_grids
from cl_bench.reports.metrics import metrics_grid
from cl_bench.reports.plots import HEATMAP
from cl_bench.reports.shift import shift_grids


def render_report(directory: Path) -> str:
    """Text of ``report.md`` of a run directory.

    Raises:
        StoreError: The directory is not a run or is damaged.
    """
    return markdown(load_whole(directory))


def markdown(view: RunView) -> str:
    """The report's text."""
    metrics = content.metrics_of(view)
    parts = [heading(1, content.headline(view)), line(content.provenance(view.spec) + ".")]
    if view.spec.lab_version is not None:
        parts.append(content.LAB_SENTENCE)
    warnings = content.warnings(view)
    if warnings:
        parts += ["## Mind", bullets(warnings)]
    parts.append("## Matrix")
    parts.append("Rows: after which stage. Brackets: what the stage trained on. Greedy decoding on fixed rows.")
    for grid in content.matrix_grids(view.matrix, learned_columns(view.spec), metrics):
        parts += [heading(3, grid.title), *grid_lines(grid)]
    if (view.directory / HEATMAP).is_file():
        parts.append(f"![matrix]({HEATMAP})")
    for optional in (
        content.strict_grid(view.matrix),
        *interval_grids(view),
        evaluated.baselines_grid(view.matrix),
        *evaluated.sampled_grids(view),
        metrics_grid(metrics),
        items.items_grid(view),
        *items.recovery_grids(view),
        *contamination.contamination_grids(view),
        content.stages_grid(view, metrics),
        cost_grid(run_cost(view, metrics)),
        generated.data_generation_grid(view),
        generated.teacher_grid(view),
    ):
        if optional is not None:
            parts += [heading(2, optional.title), *grid_lines(optional)]
    parts += [*_shift(view), *_settings(view), *_provenance(view)]
    return page(parts)


def page(parts: Iterable[str]) -> str:
    """A Markdown page of paragraphs, headings, lists and tables, without tags.

    Secrets are gone from its parts: ``heading``, ``line``, ``bullets`` and ``grid_lines`` take them out.
    """
    return escaping.page("\n\n".join(parts) + "\n")


def heading(level: int, text: str) -> str:
    """A heading in Markdown."""
    return f"{'#' * level} {line(text)}"


def line(text: str) -> str:
    """Text that stands in a line of a Markdown page, without secrets, links and line breaks."""
    return escaping.markdown(redacted(text))


def bullets(sentences: Iterable[str]) -> str:
    """A list in Markdown."""
    return "\n".join(f"* {line(sentence)}" for sentence in sentences)


def grid_lines(grid: Grid, numbers: bool = True) -> list[str]:
    """A grid in Markdown: the table, then its notes as a list; ``numbers`` aligns cells to the right."""
    aligned = ["---", *["---:" if numbers else "---"] * (len(grid.header) - 1)]
    if grid.header[-1] == "meaning":
        aligned[-1] = "---"
    lines = [_row(grid.header), _row(aligned), *(_row(row) for row in grid.rows)]
    return ["\n".join(lines), *([bullets(grid.notes)] if grid.notes else [])]


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(escaping.cell(redacted(cell)) for cell in cells) + " |"


def _shift(view: RunView) -> list[str]:
    parts = [part for grid in shift_grids(view) for part in (heading(3, grid.title), *grid_lines(grid))]
    return ["## Distribution shift", *parts] if parts else []


def _settings(view: RunView) -> list[str]:
    spec = view.spec
    parts = ["## Settings"]
    components = [("method", spec.method)] if spec.method is not None else []
    components += [("modifier", modifier) for modifier in spec.modifiers]
    for kind, component in components:
        rows = tuple((name, _setting(name, value)) for name, value in component.settings.items())
        parts += [heading(3, f"{kind} {component.name}"), *grid_lines(Grid("", ("setting", "value"), rows), False)]
    stages = tuple(
        (
            stage.name,
            stage.task,
            _setting("rows", stage.rows or "all"),
            _setting("epochs", stage.epochs or "as the method"),
        )
        for stage in spec.sequence.stages
    )
    parts += ["### sequence", *grid_lines(Grid("", ("stage", "task", "rows", "epochs"), stages), False)]
    return parts


def _setting(name: str, value: Any) -> str:
    text = redacted_setting(name, str(value)).replace("\n", "\\n")
    if "`" in text:
        return text
    return f"`{text}`" if text else "(empty)"


def _provenance(view: RunView) -> list[str]:
    spec = view.spec
    facts = [
        f"spec `{spec.digest()}` (spec.yaml)",
        f"student {spec.model.name} `{spec.model.fingerprint[:16]}`",
        *content.origin(spec),
        *([f"aligner {spec.aligner.name} `{spec.aligner.fingerprint[:16]}`"] if spec.aligner is not None else []),
        f"precision: training {spec.precision.training}, generation {spec.precision.generation}",
    ]
    sessions = view.manifest.get("sessions", [])
    if sessions:
        environment = sessions[-1]["environment"]
        versions = ", ".join(f"{name} {version}" for name, version in environment["packages"].items() if version)
        facts += [f"cost: {content.cost_sentence(view)}", f"Python {environment['python']}; {versions}"]
    return ["## Where the numbers come from", bullets(facts)]
