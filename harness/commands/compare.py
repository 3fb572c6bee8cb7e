"""``cl-bench compare``: methods over seeds, differences between them, and shift against forgetting."""

from __future__ import annotations

import json
import os
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
        UsageError: Nothing is there, the reference is none of the methods, or ``output`` cannot be a folder.
        NotComparableError: The runs differ in what their numbers depend on; nothing was written.
        StoreError: No run can be read.
    """
    from cl_bench.harness.compare.comparison import compare_runs, to_json

    if options.output is not None:
        _check_folder(options.output)
    comparison = compare_runs(places, options.reference, options.mark, options.items)
    document = to_json(comparison)
    if options.output is not None:
        _write(options.output, comparison, document)
    _print(comparison, document, options.format)
    return EXIT_DONE


def _check_folder(output: Path) -> None:
    """Said before the runs are read, which may take a while."""
    around = next(path for path in (output, *output.absolute().parents) if path.exists())
    if not around.is_dir():
        raise UsageError(
            f"--output {output} is not a folder" if around == output else f"--output {output} cannot be made",
            f"{around} is a file",
            "name a folder, which is made where there is none",
        )
    if not os.access(around, os.W_OK | os.X_OK):
        raise UsageError(f"--output {output} cannot be written", f"{around} is read-only", "name another folder")


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
    from cl_bench.harness.files import plain, write_bytes
    from cl_bench.reports import compare, compare_csv
    from cl_bench.reports.compare_plots import figures

    drawn = figures(comparison)
    shown = {name.removesuffix(".png").replace("-", " "): name for name in drawn}
    texts = {
        "compare.md": compare.markdown(comparison, shown),
        "methods.csv": compare_csv.methods_csv(comparison),
        "differences.csv": compare_csv.differences_csv(comparison),
        "points.csv": compare_csv.points_csv(comparison),
        "compare.json": json.dumps(plain(document), indent=1, ensure_ascii=False, allow_nan=False) + "\n",
    }
    # All of them first: a page without its tables, or tables of two comparisons, would mislead.
    for name, data in {**drawn, **{name: text.encode() for name, text in texts.items()}}.items():
        write_bytes(folder / name, data)
