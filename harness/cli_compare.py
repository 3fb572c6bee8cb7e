"""``cl-bench compare`` and ``cl-bench report``: their options and their help; the work is in ``harness.commands``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from cl_bench.harness.cli_options import Json
from cl_bench.harness.errors import UsageError


def compare(
    runs: Annotated[
        list[str], typer.Argument(metavar="RUN...|GLOB", help="Run directories, folders of runs, or patterns of those.")
    ],
    form: Annotated[
        Literal["text", "markdown", "csv", "json"] | None, typer.Option("--format", help="What is printed (text).")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", help="Folder for the page, the tables as CSV, JSON, and the figures.")
    ] = None,
    mark: Annotated[
        bool, typer.Option("--mark", help="Show runs that are not comparable, with marks, instead of refusing.")
    ] = False,
    items: Annotated[
        bool,
        typer.Option("--items", help="Compare the last checkpoints' answers item by item too."),
    ] = False,
    reference: Annotated[
        str | None, typer.Option("--reference", help="Method that the others are compared with (sft).")
    ] = None,
    json: Json = False,
) -> int:
    """Compare methods over seeds, and relate shift to what was forgotten and learned."""
    from cl_bench.harness.commands.compare import CompareOptions, compare_command

    if json and form not in (None, "json"):
        raise UsageError(f"--json and --format {form} exclude each other")
    return compare_command(runs, CompareOptions("json" if json else form or "text", output, mark, items, reference))


def report(
    directory: Annotated[Path, typer.Argument(metavar="RUN_DIR", help="Run directory.")], json: Json = False
) -> int:
    """Write a run's Markdown report and figures anew."""
    from cl_bench.harness.commands.report import report_command

    return report_command(directory, json)
