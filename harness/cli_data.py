"""``cl-bench data``: its commands and their help; the work is in ``harness.commands.data``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cl_bench.harness.cli_options import GROUP_SETTINGS, DataRoot, IncludePath, Json, Offline, Quiet

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
    include_path: IncludePath = None,
    offline: Offline = False,
    quiet: Quiet = False,
    json: Json = False,
) -> int:
    """Download all that a run will need.

    Revisions are pinned, files are checked against the hub's hashes, and what is there already is kept. A call that was
    interrupted is gone on with by the same command. Exit code 1: something could not be had; the rest is there.
    """
    from cl_bench.harness.commands.data import PrepareOptions, prepare_command

    given = PrepareOptions(to, data_root, profile, tier, tuple(include_path or ()), offline, not quiet, json)
    return prepare_command(names, given)


@data_app.command("list")
def data_list(data_root: DataRoot = None, include_path: IncludePath = None, json: Json = False) -> int:
    """List the data sets of all tasks and suites, and which of them are here."""
    from cl_bench.harness.commands.data import list_command

    return list_command(data_root, include_path or (), json)


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
