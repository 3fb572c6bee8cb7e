"""Shift against forgetting on the lab: every method, single stages and ``science``, five seeds; writes a page.

``python benchmarks/shift_and_forgetting.py --output DIR`` runs (or finishes) everything, one process a method and
sequence, two at a time with one thread each; finished runs are read back. ``docs/shift-and-forgetting.md`` and its
figures are made from the run directories alone. Learning rates are those that ``methods_on_lab.py`` chose on dev rows,
each from the same number of trials.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import yaml

from cl_bench.harness.compare.comparison import Comparison, compare_runs
from cl_bench.harness.files import write_bytes
from cl_bench.harness.run_directory import load_run
from cl_bench.reports.compare import grids
from cl_bench.reports.compare_plots import figures
from cl_bench.reports.content import Grid
from cl_bench.reports.items import recovery_grids
from cl_bench.reports.report import grid_lines

HERE = Path(__file__).resolve().parent
DOCS = HERE.parent / "docs"
PAGE, FIGURES = DOCS / "shift-and-forgetting.md", DOCS / "figures"
RECIPE, RATES = HERE / "methods_on_lab.yaml", HERE / "shift_and_forgetting.yaml"
MODEL, LIMIT, EVALUATED = "lab-s", 256, 64
SEEDS = "0-4"
TASKS = ("chemistry", "biology", "materials", "physics")
PROBED = "science"
"""Sequence whose last rows go through the recovery probes, first seed."""

INTRODUCTION = """# Shift and forgetting on the lab

Printed by `benchmarks/shift_and_forgetting.py`: `{model}`, every method on each science task alone and on
`science`, {limit} training rows a stage, {evaluated} rows a column, seeds {seeds}, settings of
`benchmarks/methods_on_lab.yaml` and the learning rates of `benchmarks/shift_and_forgetting.yaml`, which
`benchmarks/methods_on_lab.py` chose on dev rows, for every method from the same trials by the same rule.

These are numbers of a small generated world and one model: they say whether shift and forgetting went together here. A
correlation is no cause, and says nothing about other models. [comparing.md](comparing.md) and [items.md](items.md)
explain every table; recovery was probed on the first seed of `science`, last row.
"""


def single(task: str) -> str:
    """Name of the sequence of one stage."""
    return f"{task}-alone"


def write_sequences(folder: Path) -> None:
    """The sequences of one stage, where ``--include-path`` finds them."""
    (folder / "sequences").mkdir(parents=True, exist_ok=True)
    for task in TASKS:
        content = {"name": single(task), "stages": [{"task": task}], "suites": ["lab"]}
        (folder / "sequences" / f"{single(task)}.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")


def command(method: str, rate: float, sequence: str, output: Path) -> list[str]:
    """Five seeds of a method on a sequence."""
    parts = ["run", "--method", method, "--sequence", sequence, "--model", MODEL, "--recipe", str(RECIPE)]
    parts += ["--limit", str(LIMIT), "--set", f"evaluation.rows={EVALUATED}", "--seeds", SEEDS]
    parts += ["--set", f"method.learning_rate={rate:g}", "--include-path", str(output / "include")]
    return [*parts, "--threads", "1", "--quiet", "--output", str(output / "runs")]


def called(arguments: Sequence[str]) -> None:
    """Call the program; a run that diverged is a result."""
    line = [sys.executable, "-m", "cl_bench.harness.cli", *arguments]
    done = subprocess.run(line, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{' '.join(arguments)}\n{done.stderr}")
    print(f"exit {done.returncode}: {' '.join(arguments)}", flush=True)


def run_all(rates: Mapping[str, float], output: Path, processes: int) -> None:
    """Everything that is not there yet, single stages first."""
    write_sequences(output / "include")
    sequences = [*(single(task) for task in TASKS), PROBED]
    wanted = [command(name, rate, sequence, output) for sequence in sequences for name, rate in rates.items()]
    with ThreadPoolExecutor(processes) as pool:
        list(pool.map(called, wanted))
        probed = [place for place in sorted((output / "runs" / PROBED).glob("*/*")) if "-s0-" in place.name]
        missing = [place for place in probed if not (place / "recovery.json").is_file()]
        list(pool.map(called, [["recover", str(place), "--quiet"] for place in missing]))


def recovered(output: Path) -> Grid:
    """What the probes brought back after the last row, of every method's first seed; all columns together."""
    found: list[Grid] = []
    rows = []
    for place in sorted((output / "runs" / PROBED).glob("*/*-s0-*")):
        for grid in recovery_grids(load_run(place)):
            found.append(grid)
            rows += [(place.parent.name, *row[1:]) for row in grid.rows[-1:]]
    notes = tuple(note for note in (found[0].notes[:2] if found else ()))
    return Grid(
        "What of the forgotten comes back", ("method", *found[0].header[1:]) if found else (), tuple(rows), notes
    )


def page(comparison: Comparison, output: Path) -> str:
    """The page, what it is about first; figures are written beside it."""
    places = sorted(range(len(comparison.panels)), key=lambda place: comparison.panels[place].sequence != PROBED)
    comparison = replace(
        comparison,
        panels=tuple(comparison.panels[place] for place in places),
        differences=tuple(comparison.differences[place] for place in places),
    )
    drawn = figures(comparison)
    for name, data in drawn.items():
        write_bytes(FIGURES / f"shift-and-forgetting-{name}", data)
    *panels, relations = grids(comparison, bold="**")
    probed = [grid for grid in panels if PROBED in grid.title]
    alone = [grid for grid in panels if grid not in probed]
    head = INTRODUCTION.format(model=MODEL, limit=LIMIT, evaluated=EVALUATED, seeds=SEEDS).strip()
    parts = [head, *section(relations), *(image(name) for name in drawn if name.startswith("shift-"))]
    parts += [line for grid in (*probed, recovered(output)) for line in section(grid)]
    parts += [image(name) for name in drawn if not name.startswith("shift-")]
    return "\n\n".join([*parts, *(line for grid in alone for line in section(grid))]) + "\n"


def section(grid: Grid) -> list[str]:
    """A table under its title."""
    return [f"## {grid.title}", *grid_lines(grid)]


def image(name: str) -> str:
    """A figure of the page."""
    shown = name.removesuffix(".png").replace("-", " ")
    return f"![{shown}](figures/shift-and-forgetting-{name})"


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True, help="folder of the runs")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--methods", help="names with commas; by default all of the rates' file")
    parser.add_argument("--page-only", action="store_true", help="write the page from what is there")
    given = parser.parse_args()
    rates: dict[str, float] = yaml.safe_load(RATES.read_text(encoding="utf-8"))["learning_rate"]
    if given.methods:
        rates = {name: rates[name] for name in given.methods.split(",")}
    if not given.page_only:
        run_all(rates, given.output, given.processes)
    PAGE.write_text(page(compare_runs([str(given.output / "runs")]), given.output), encoding="utf-8")
    print(PAGE)


if __name__ == "__main__":
    main()
