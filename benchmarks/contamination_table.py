"""Prints which evaluated items stand in which training data, for the tasks and suites found under a data root.

``python benchmarks/contamination_table.py --data-root DIR``: training rows of every task against the test rows of every
task and the full benchmarks of every suite, with no run and no model. ``--split paper`` splits row by row. Data that is
not there is left out and named on stderr.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from time import perf_counter

from cl_bench.harness.errors import ClBenchError
from cl_bench.harness.measure.contamination import KINDS, Item, Overlap, TrainingRow, contamination_table
from cl_bench.harness.measure.contamination_documents import document_item
from cl_bench.harness.measure.suite import SuiteRunner
from cl_bench.harness.registry import Registry
from cl_bench.tasks.base import Task
from cl_bench.tasks.retention.suites import load_suite
from cl_bench.tasks.sources.base import DataOptions


def main() -> None:
    """Load what is there, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-root", type=Path, required=True, help="folder with the data sets")
    parser.add_argument("--split", choices=("group", "paper"), default="group", help="how science rows are split")
    arguments = parser.parse_args()
    options = DataOptions("hub", arguments.data_root, offline=True, split=arguments.split, allow_code=True)
    registry = Registry()
    tasks = dict(_tasks(registry, options))
    training = {name: [TrainingRow.of(example) for example in task.train()] for name, task in tasks.items()}
    evaluated = {name: [Item.of(example) for example in task.test()] for name, task in tasks.items()}
    for name in registry.suites():
        evaluated |= _benchmarks(registry.suite_path(name), options)
    began = perf_counter()
    found = contamination_table(training, evaluated)
    seconds = perf_counter() - began
    for line in table(found, {name: len(rows) for name, rows in training.items()}):
        print(line)
    items = sum(map(len, evaluated.values()))
    print(f"\n{sum(map(len, training.values()))} training rows, {items} evaluated items, compared in {seconds:.1f} s")


def table(found: Mapping[str, Mapping[str, Overlap]], rows: Mapping[str, int]) -> Iterator[str]:
    """Markdown: a row for each evaluation set, a column for each training set; any: exact / 13-gram / choices."""
    header = ["evaluated", "items", *(f"{name} ({rows[name]})" for name in found)]
    yield _line(header)
    yield _line(["---", *["---:"] * (len(header) - 1)])
    columns = next(iter(found.values()), {})
    for column, overlap in columns.items():
        yield _line([column, str(overlap.n), *(_cell(overlaps[column]) for overlaps in found.values())])


def _cell(overlap: Overlap) -> str:
    counts = overlap.counts()
    return f"{counts['any']}: {' / '.join(str(counts[kind]) for kind in KINDS)}" if counts["any"] else "0"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _tasks(registry: Registry, options: DataOptions) -> Iterator[tuple[str, Task]]:
    for name in registry.tasks():
        try:
            task = registry.task(name, options)
            task.train(), task.test()
        except ClBenchError as error:
            print(f"without task {name}: {error.what}", file=sys.stderr)
        else:
            yield name, task


def _benchmarks(path: Path, options: DataOptions) -> dict[str, list[Item]]:
    entries = [entry for entry in load_suite(path, "full") if entry.source != "lab-skill"]
    rows = SuiteRunner(entries, options).rows()
    for name in (name for name, found in rows.items() if not found):
        print(f"without {path.stem}/{name}: its data is not there", file=sys.stderr)
    return {
        f"{path.stem}/{name}": [document_item(row.id, row.document, row.question) for row in found]
        for name, found in rows.items()
        if found
    }


if __name__ == "__main__":
    main()
