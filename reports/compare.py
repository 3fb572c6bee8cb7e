"""A comparison of runs as grids, and these as text and Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from cl_bench.harness.compare.comparison import Comparison
from cl_bench.harness.compare.differences import Differences
from cl_bench.harness.compare.estimates import OverSeeds
from cl_bench.harness.compare.measures import COSTS, MEASURES, Unit
from cl_bench.harness.compare.table import MethodRow, Panel
from cl_bench.harness.measure.statistics.seeds import SMALLEST_SEEDS
from cl_bench.harness.redaction import redacted
from cl_bench.reports.compare_items import items_grids
from cl_bench.reports.compare_relations import relations_grid
from cl_bench.reports.content import LAB_SENTENCE, MISSING, Grid, count, nats, percent, provenance
from cl_bench.reports.cost import LABELS, PFLOP
from cl_bench.reports.report import bullets, grid_lines, heading, line
from cl_bench.reports.report import page as markdown_page
from cl_bench.reports.tables import page

_TITLE = "Comparison of runs"
_MARK = " *"
_METHODS_LEGEND = (
    f"Mean [95 % t interval over seeds] from {SMALLEST_SEEDS} seeds on; with fewer, mean (each seed, where they "
    "differ). In percent; shift in nats per token.",
    *(f"{info.label}: {info.definition}." for info in MEASURES.values()),
)
_DIFFERENCES_LEGEND = (
    "Method minus reference, paired by seed.",
    "p of the paired t test, adjusted over the table (Holm). A claim needs "
    f"{SMALLEST_SEEDS} paired seeds and p below .05; detectable: what these seeds find with a power of 80 %.",
)
_COSTS_LEGEND = (
    "Means over seeds. Operations in FLOP, P for 1e15: 2 N a token of a forward pass, 6 N of training.",
    *(f"{info.label}: {info.definition}." for info in COSTS.values()),
)
_LEGENDS = frozenset((*_METHODS_LEGEND, *_DIFFERENCES_LEGEND, *_COSTS_LEGEND))
"""Notes that are the same below the tables of every panel."""


def text(comparison: Comparison, width: int | None = None) -> str:
    """The comparison for a terminal.

    Args:
        comparison: What was found.
        width: Characters a line; None: the terminal's.
    """
    below = [redacted(part) for part in (*(f"! {said}" for said in warnings(comparison)), *_footer(comparison))]
    return page(_TITLE, [_without_secrets(grid) for grid in grids(comparison)], below, width)


def markdown(comparison: Comparison, figures: Mapping[str, str] | None = None) -> str:
    """The comparison as a Markdown page; differences that may be called so are bold.

    Args:
        comparison: What was found.
        figures: File names of figures by what they show.
    """
    parts = [heading(1, _TITLE), *map(line, _footer(comparison))]
    if warnings(comparison):
        parts += ["## Mind", bullets(warnings(comparison))]
    for grid in grids(comparison, bold="**"):
        parts += [heading(2, grid.title), *grid_lines(grid)]
    parts += [f"![{shown}]({name})" for shown, name in (figures or {}).items()]
    return markdown_page(parts)


def grids(comparison: Comparison, bold: str = "") -> list[Grid]:
    """Every table of a comparison.

    Args:
        comparison: What was found.
        bold: What stands around a difference that may be called so.
    """
    found: list[Grid | None] = []
    for place, (panel, compared) in enumerate(zip(comparison.panels, comparison.differences, strict=True)):
        found += [methods_grid(panel, compared), differences_grid(panel, compared, bold)]
        if comparison.items:
            found += items_grids(panel, comparison.items[place])
        found.append(costs_grid(panel))
    found.append(relations_grid(comparison))
    return _explained_once([grid for grid in found if grid is not None])


def _explained_once(grids: Sequence[Grid]) -> list[Grid]:
    """What holds for the columns of every panel stands below its first table alone."""
    shown: set[str] = set()
    once = []
    for grid in grids:
        once.append(replace(grid, notes=tuple(note for note in grid.notes if note not in shown)))
        shown.update(set(grid.notes) & _LEGENDS)
    return once


def _without_secrets(grid: Grid) -> Grid:
    header, notes, *rows = (tuple(map(redacted, texts)) for texts in (grid.header, grid.notes, *grid.rows))
    return Grid(redacted(grid.title), header, tuple(rows), notes)


def methods_grid(panel: Panel, compared: Differences) -> Grid:
    """Methods by measures over seeds, and why there is no table of differences where there is none."""
    rows = tuple(
        (_label(row), _seeds(row), *(_cell(row.measures[name], info.unit, info.difference)
                                     for name, info in MEASURES.items()))
        for row in panel.rows
    )  # fmt: skip
    header = ("method", "seeds", *(info.label for info in MEASURES.values()))
    notes = [*_METHODS_LEGEND, *_reasons(panel), *_marks(panel), *_not_compared(compared)]
    return Grid(f"Methods on {panel.title}", header, rows, tuple(notes))


def differences_grid(panel: Panel, found: Differences, bold: str = "") -> Grid | None:
    """Methods against the reference; None where there is nothing to compare."""
    if not found.entries:
        return None
    rows = []
    undefined = _undefined(found)
    for entry in found.entries:
        if entry.measure in undefined:
            continue
        info, difference = MEASURES[entry.measure], entry.difference
        mean = _number(difference.mean, info.unit, True)
        rows.append(
            (
                entry.method,
                info.label,
                str(difference.n),
                f"{bold}{mean}{bold}" if bold and difference.claim else mean,
                MISSING if difference.interval is None else _interval(difference.interval, info.unit, True),
                MISSING if difference.p is None else _p(difference.p),
                "yes" if difference.claim else "no",
                _number(entry.detectable, info.unit),
                " ".join(_number(value, info.unit, True) for value in difference.values) or difference.reason,
            )
        )
    header = ("method", "measure", "seeds", "difference", "95 %", "p (Holm)", "claim", "detectable", "each seed")
    title = f"Against {found.reference} on {panel.title}"
    return Grid(title, header, tuple(rows), tuple(_difference_notes(panel, found)))


def costs_grid(panel: Panel) -> Grid | None:
    """What the methods took: operations by part, what was gained for them, time and memory; None without any."""
    parts = list(dict.fromkeys(part for row in panel.rows for part in row.parts))
    ordered = [part for part in LABELS if part in parts] + [part for part in parts if part not in LABELS]
    if not ordered:
        return None
    empty = OverSeeds((), 0.0, None)
    rows = tuple(
        (_label(row), *(_mean(row.parts.get(part, empty), "pflop") for part in ordered),
         *(_mean(row.measures[name], info.unit, info.difference) for name, info in COSTS.items()))
        for row in panel.rows
    )  # fmt: skip
    header = ("method", *(LABELS.get(part, part) for part in ordered), *(info.label for info in COSTS.values()))
    return Grid(f"Cost on {panel.title}", header, rows, _COSTS_LEGEND)


def warnings(comparison: Comparison) -> list[str]:
    """What a reader must know before using the numbers."""
    sentences = [f"left out: {run.directory}: {run.reason}" for run in comparison.found.left_out]
    sentences += [
        f"{view.directory} diverged: {view.status.get('reason') or 'see its matrix'}"
        for view in comparison.found.views
        if view.status.get("state") == "diverged"
    ]
    if any(view.spec.limit is not None for view in comparison.found.views):
        sentences.append("some runs are partial (--limit): a quick look, no result")
    sentences += [
        f"{row.label}: seeds share stages up to {row.shared_start}, whose weights are one run's: intervals over seeds "
        "are for what follows"
        for panel in comparison.panels
        for row in panel.rows
        if row.shared_start is not None
    ]
    sentences += [f"not comparable with most: {run} ({', '.join(fields)})" for run, fields in comparison.marks.items()]
    return sentences


def _label(row: MethodRow) -> str:
    return row.label + (_MARK if row.marks else "")


def _seeds(row: MethodRow) -> str:
    return str(len(row.seeds))


def _cell(found: OverSeeds, unit: Unit, signed: bool = False) -> str:
    mean = _number(found.mean, unit, signed)
    if found.interval is not None:
        return f"{mean} {_interval(found.interval, unit, signed)}"
    shown = [_number(value, unit, signed) for value in found.values]
    if len(set(shown)) > 1:
        return f"{mean} ({', '.join(shown)})"
    return mean


def _mean(found: OverSeeds, unit: Unit, signed: bool = False) -> str:
    return _number(found.mean, unit, signed)


def _interval(interval: tuple[float, float], unit: Unit, signed: bool = False) -> str:
    low, high = (_number(end, unit, signed) for end in interval)
    return f"[{low}, {high}]"


def _number(value: float | None, unit: Unit, signed: bool = False) -> str:
    if value is None:
        return MISSING
    if unit == "share":
        return percent(value, signed)
    if unit == "pflop":
        return count(PFLOP * value)
    sign = "+" if signed else ""
    if unit == "share per pflop":
        return f"{100 * value:{sign}.3g}"
    if unit == "bytes":
        return f"{value / 2**30:.2f} GiB"
    return nats(value, signed) if unit == "nats" else f"{value:{sign}.1f}"


def _p(p: float) -> str:
    return "<.001" if p < 0.001 else f"{p:.3f}"


def _reasons(panel: Panel) -> list[str]:
    """Why cells are empty, each reason once."""
    methods: dict[tuple[str, str], list[str]] = {}
    for row in panel.rows:
        for name, info in MEASURES.items():
            found = row.measures[name]
            if found.mean is None:
                methods.setdefault((info.label, found.reason), []).append(row.label)
    labels: dict[tuple[str, str], list[str]] = {}
    for (label, reason), names in methods.items():
        labels.setdefault((", ".join(names), reason), []).append(label)
    every = ", ".join(row.label for row in panel.rows)
    shown = {key: "all methods" if key[0] == every and len(panel.rows) > 1 else key[0] for key in labels}
    return [f"{MISSING} {', '.join(found)} ({shown[key]}): undefined: {key[1]}" for key, found in labels.items()]


def _marks(panel: Panel) -> list[str]:
    return [f"* {row.label} differs from most runs in {', '.join(row.marks)}." for row in panel.rows if row.marks]


def _not_compared(found: Differences) -> list[str]:
    skipped = [
        f"{method} is not compared with {found.reference}: they differ in {', '.join(fields)}."
        for method, fields in found.not_compared.items()
    ]
    return [*([f"No differences between methods: {found.reason}."] if found.reason else []), *skipped]


def _difference_notes(panel: Panel, found: Differences) -> list[str]:
    acquired = [
        f"{row.label} {_number(row.measures['acquisition'].mean, 'share')}"
        for row in panel.rows
        if row.views[0].spec.bound is None
    ]
    undefined = _undefined(found)
    labels: dict[str, list[str]] = {}
    for measure, reason in undefined.items():
        labels.setdefault(reason, []).append(MEASURES[measure].label)
    return [
        *_DIFFERENCES_LEGEND,
        f"Acquired at which retention is compared: {', '.join(acquired)}.",
        *(f"No differences in {', '.join(names)}: undefined: {reason}." for reason, names in labels.items()),
        *dict.fromkeys(f"{entry.method}: {entry.difference.reason}." for entry in found.entries
                       if entry.difference.reason and entry.measure not in undefined),
    ]  # fmt: skip


def _undefined(found: Differences) -> dict[str, str]:
    """Measures in which no method has a difference, all for one reason, with it."""
    by_measure: dict[str, set[str]] = {}
    for entry in found.entries:
        why = entry.difference.reason if entry.difference.mean is None else ""
        by_measure.setdefault(entry.measure, set()).add(why)
    return {measure: why for measure, (why, *others) in by_measure.items() if why and not others}


def _footer(comparison: Comparison) -> list[str]:
    first = comparison.found.views[0].spec
    # Without what only its own method had.
    shared = first.model_copy(update={"method": None, "aligner": None})
    lines = [provenance(shared)] if not comparison.marks else []
    lab = any(view.spec.lab_version is not None for view in comparison.found.views)
    return [*lines, LAB_SENTENCE] if lab else lines
