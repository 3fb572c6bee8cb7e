"""``cl-bench data``: its commands and their help; the work is in ``harness.commands.data``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from cl_bench.harness.cli_options import GROUP_SETTINGS, DataRoot, IncludePath, Json, Offline, Quiet

NoSuites = Annotated[bool, typer.Option("--no-suites", help="Leave out the suites that a sequence would bring.")]

data_app = typer.Typer(help="Public data sets: prepare, list and lay out.", **GROUP_SETTINGS)


@data_app.command("prepare")
def data_prepare(
    names: Annotated[
        list[str], typer.Argument(metavar="NAME...", help="Sequences, suites, tasks, or data sets as OWNER/NAME.")
    ],
    to: Annotated[
        Path | None, typer.Option("--to", help="Folder for the data; by default one in the cache, which runs look in.")
    ] = None,
    data_root: Annotated[
        Path | None, typer.Option("--data-root", help="Folder with data sets to copy instead of downloading them.")
    ] = None,
    profile: Annotated[
        str | None, typer.Option(help="Profile whose suite a sequence needs; by default all on public data.")
    ] = None,
    tier: Annotated[str | None, typer.Option(help="Tier of the suites; by default the last of each.")] = None,
    no_suites: NoSuites = False,
    include_path: IncludePath = None,
    offline: Offline = False,
    quiet: Quiet = False,
    json: Json = False,
) -> int:
    """Download all that a run will need.

    Revisions are pinned, files are checked against the hub's hashes, and what is there already is kept. A call that was
    interrupted is gone on with by the same command. A sequence brings the suites that its runs may measure. Exit code
    1: something could not be had; the rest is there.
    """
    from cl_bench.harness.commands.data import PrepareOptions, prepare_command

    paths = tuple(include_path or ())
    given = PrepareOptions(to, data_root, profile, tier, not no_suites, paths, offline, not quiet, json)
    return prepare_command(names, given)


@data_app.command("list")
def data_list(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME...]", help="Sequences, suites, tasks or data sets; by default all."),
    ] = None,
    profile: Annotated[
        str | None, typer.Option(help="Profile whose suite a sequence needs; by default all on public data.")
    ] = None,
    no_suites: NoSuites = False,
    data_root: DataRoot = None,
    include_path: IncludePath = None,
    json: Json = False,
) -> int:
    """List the data sets that tasks and suites read, and which of them are here with all their splits."""
    from cl_bench.harness.commands.data import PrepareOptions, list_command

    given = PrepareOptions(
        data_root=data_root,
        profile=profile,
        with_suites=not no_suites,
        include_paths=tuple(include_path or ()),
        json=json,
    )
    return list_command(names or (), given)


@data_app.command("rows")
def data_rows(
    task: Annotated[str, typer.Argument(metavar="TASK", help="Task.")],
    source: Annotated[Literal["lab", "hub"] | None, typer.Option(help="Where its rows come from.")] = None,
    split: Annotated[
        Literal["train", "dev", "test", "ood"] | None, typer.Option(help="Rows to print; by default all of the task.")
    ] = None,
    option_order: Annotated[
        Literal["as-published", "permuted"],
        typer.Option(help="Order of options; runs and their prompts have permuted, score takes either."),
    ] = "as-published",
    answers: Annotated[bool, typer.Option("--answers", help="Print the right answers too.")] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="Rows to print at most.")] = None,
    data_root: DataRoot = None,
    include_path: IncludePath = None,
    offline: Offline = False,
) -> int:
    """Print a task's prompts and ids, a line of JSON each.

    {"id", "split", "messages", "choices"}: chat turns, and options in the order of their letters. The id is the row's
    own where its data set gives one, else a hash of its content; rows {"id", "text"} with the answers are what
    cl-bench score --predictions takes. A row that repeats another has split null: no run reads it, score does. With
    --data-root the rows are those of the task's public data, otherwise the lab's; where data were prepared, --source
    hub reads them.
    """
    from cl_bench.harness.commands.data_rows import RowsOptions, rows_command
    from cl_bench.harness.commands.execution import execution_of

    execution = execution_of(data_root=data_root, include_paths=include_path or (), offline=offline)
    return rows_command(task, RowsOptions(execution, source, split, option_order, answers, limit))


@data_app.command("layout")
def data_layout(
    flat: Annotated[Path, typer.Argument(help="Folder with flat JSONL files.")],
    root: Annotated[Path, typer.Argument(help="Folder to write ROOT/<owner>/<name> into.")],
    json: Json = False,
) -> int:
    """Lay flat JSONL files out like the hub."""
    from cl_bench.harness.commands.data import layout_command

    return layout_command(flat, root, json)


@data_app.command("corpora")
def data_corpora(
    cutoff: Annotated[
        str, typer.Option(metavar="YYYY-MM-DD", help="Date that corpora are before or after.")
    ] = "2024-09-01",
    json: Json = False,
) -> int:
    """List the corpora of Experiment 1: status, date, and on which side of the cutoff."""
    from cl_bench.harness.commands.data import corpora_command

    return corpora_command(cutoff, json)
