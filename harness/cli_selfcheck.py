"""``cl-bench selfcheck``: its commands and their help; the work is in ``harness.commands.selfcheck``."""

from __future__ import annotations

from typing import Annotated

import typer

from cl_bench.harness.cli_options import GROUP_SETTINGS, Device, IncludePath, Json, Quiet, Threads

selfcheck_app = typer.Typer(help="Checks of what cl-bench promises, on this machine.", **GROUP_SETTINGS)


@selfcheck_app.command("resume")
def selfcheck_resume(
    method: Annotated[
        list[str] | None, typer.Option("--method", help="Method, or all; repeatable; by default sft.")
    ] = None,
    modifiers: Annotated[list[str] | None, typer.Option("--with", help="Modifier; repeatable.")] = None,
    kills: Annotated[int, typer.Option(min=1, help="Kills of each method's run.")] = 5,
    each: Annotated[int, typer.Option(min=0, help="Kills in each activity, at least.")] = 1,
    later: Annotated[int, typer.Option(min=0, help="Kills in training steps after the first stage, at least.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the points at which it is killed.")] = 0,
    include_path: IncludePath = None,
    device: Device = "cpu",
    threads: Threads = None,
    quiet: Quiet = False,
    json: Json = False,
) -> int:
    """Kill short runs at seeded points, resume them, and compare with an uninterrupted run bit for bit."""
    from cl_bench.harness.commands.execution import execution_of
    from cl_bench.harness.commands.selfcheck import resume_check_command
    from cl_bench.harness.selfcheck.resume import Plan

    execution = execution_of(include_paths=include_path or (), device=device, threads=threads, progress=not quiet)
    return resume_check_command(method or (), modifiers or (), Plan(kills, each, later, seed), execution, json)
