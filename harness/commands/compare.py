"""``cl-bench compare``: methods over seeds, differences between them, and shift against forgetting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cl_bench.harness.commands.execution import print_json
from cl_bench.harness.errors import EXIT_DONE, UsageError

if TYPE_CHECKING:
    from cl_bench.harness.compare.comparison import Comparison

Format = Literal["text", "markdown", "csv", "json"]


@dataclass(frozen=True, slots=True)
class CompareOptions:
    """What ``compare`` was asked for, but the runs.

    Attributes:
        format: What is printed.
        output: Folder that receives everything: page, tables, points, figures; or None.
        mark: Show runs that are not comparable, with marks, instead of refusing.
        items: Compare the methods' answers item by item too.
        reference: Method that the others are compared with; None: ``sft`` where there is one.
    """

    format: Format = "text"
    output: Path | None = None
    mark: bool = False
    items: bool = False
    reference: str | None = None


def compare_command(places: Sequence[str], options: CompareOptions) -> int:
    """Compare runs and print; returns the exit code.

    Raises:
        UsageError: Nothing is there, the reference is none of the methods, or ``output`` is a file.
        NotComparableError: The runs differ in what their numbers depend on; nothing was written.
        StoreError: No run can be read.
    """
    from cl_bench.harness.compare.comparison import compare_runs, to_json

    if options.output is not None and options.output.exists() and not options.output.is_dir():
        raise UsageError(f"--output {options.output} is not a folder")
    comparison = compare_runs(places, options.reference, options.mark, options.items)
    document = to_json(comparison)
    if options.output is not None:
        _write(options.output, comparison, document)
    _print(comparison, document, options.format)
    return EXIT_DONE


def _print(comparison: Comparison, document: dict[str, Any], form: Format) -> None:
    if form == "json":
        print_json(document)
        return
    from cl_bench.reports import compare, compare_csv

    if form == "csv":
        print(compare_csv.methods_csv(comparison), end="")
    else:
        print(compare.markdown(comparison) if form == "markdown" else compare.text(comparison), end="")


def _write(folder: Path, comparison: Comparison, document: dict[str, Any]) -> None:
    from cl_bench.harness.files import write_bytes, write_json, write_text
    from cl_bench.reports import compare, compare_csv
    from cl_bench.reports.compare_plots import figures

    drawn = figures(comparison)
    for name, data in drawn.items():
        write_bytes(folder / name, data)
    shown = {name.removesuffix(".png").replace("-", " "): name for name in drawn}
    write_text(folder / "compare.md", compare.markdown(comparison, shown))
    write_text(folder / "methods.csv", compare_csv.methods_csv(comparison))
    write_text(folder / "differences.csv", compare_csv.differences_csv(comparison))
    write_text(folder / "points.csv", compare_csv.points_csv(comparison))
    write_json(folder / "compare.json", document)
