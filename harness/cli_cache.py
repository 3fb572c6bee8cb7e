"""``cl-bench cache``: its commands and their help; the work is in ``harness.commands.cache``."""

from __future__ import annotations

from typing import Annotated

import typer

from cl_bench.harness.cli_options import GROUP_SETTINGS, Json

cache_app = typer.Typer(help="The cache of computed results: its size, and pruning it.", **GROUP_SETTINGS)


@cache_app.command("list")
def cache_list(json: Json = False) -> int:
    """List what is cached, with sizes."""
    from cl_bench.harness.commands.cache import list_command

    return list_command(json)


@cache_app.command("prune")
def cache_prune(
    kind: Annotated[list[str] | None, typer.Option("--kind", help="Only entries of this kind; repeatable.")] = None,
    older_than: Annotated[
        str | None, typer.Option("--older-than", metavar="AGE", help="Entries not used for longer: 30d, 12h.")
    ] = None,
    max_size: Annotated[
        str | None, typer.Option("--max-size", metavar="SIZE", help="The least recently used beyond 500MB, 2GB.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All entries.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go, and remove nothing.")] = False,
    json: Json = False,
) -> int:
    """Remove cached results; they are computed again when needed. Fetched models and data are never touched."""
    from cl_bench.harness.commands.cache import prune_command

    return prune_command(kind or (), older_than, max_size, everything, dry_run, json)
