"""The command line: options and their help; the work is in ``harness.commands``, imported when a command runs."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from contextlib import nullcontext, redirect_stdout
from functools import cache
from io import TextIOWrapper
from pathlib import Path
from types import FrameType
from typing import Annotated, Literal

import typer
from typer.core import TyperGroup
from typer.main import get_group

from cl_bench.harness.cli_cache import cache_app
from cl_bench.harness.cli_compare import compare, report
from cl_bench.harness.cli_data import data_app
from cl_bench.harness.cli_errors import exit_code
from cl_bench.harness.cli_extensions import new_app, validate_app
from cl_bench.harness.cli_items import recover, show
from cl_bench.harness.cli_options import (
    GROUP_SETTINGS,
    AllowCode,
    CheckpointEvery,
    DataRoot,
    Device,
    IncludePath,
    Json,
    Keep,
    Offline,
    Output,
    Quiet,
    RunDevice,
    RunThreads,
    Threads,
)
from cl_bench.harness.cli_reproduce import reproduce
from cl_bench.harness.cli_score import score
from cl_bench.harness.cli_selfcheck import selfcheck_app
from cl_bench.harness.escaping import VisibleStream

_HELP = (
    """Measure what a language model learns and what it forgets when it is post-trained on one task after another."""
)
app = typer.Typer(name="cl-bench", help=_HELP, add_completion=False, **GROUP_SETTINGS)
models_app = typer.Typer(help="Models that come with cl-bench or are fetched by it.", **GROUP_SETTINGS)


def _show_version(asked: bool) -> None:
    if asked:
        from cl_bench import __version__

        print(f"cl-bench {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    # What it says about itself is the application's help; the option does its work in the callback.
    pass


app.add_typer(cache_app, name="cache")
app.add_typer(data_app, name="data")
app.add_typer(models_app, name="models")
app.add_typer(new_app, name="new")
app.add_typer(selfcheck_app, name="selfcheck")
app.add_typer(validate_app, name="validate")


@app.command()
def run(
    spec: Annotated[
        Path | None, typer.Argument(metavar="SPEC.yaml", help="Request or saved specification; options override it.")
    ] = None,
    method: Annotated[str | None, typer.Option(help="Method, or one of the bounds base and joint.")] = None,
    modifiers: Annotated[list[str] | None, typer.Option("--with", help="Modifier; repeatable.")] = None,
    joint_with: Annotated[str | None, typer.Option(help="Method that trains the bound joint (sft).")] = None,
    sequence: Annotated[str | None, typer.Option(help="Sequence of tasks.")] = None,
    order: Annotated[str | None, typer.Option(help="Named order, stages with commas, or random:SEED.")] = None,
    profile: Annotated[str | None, typer.Option(help="Profile; by default the one that fits the model.")] = None,
    recipe: Annotated[str | None, typer.Option(help="Recipe of method settings.")] = None,
    model: Annotated[str | None, typer.Option(help="Lab model, fetched model, folder or hub id.")] = None,
    thinking: Annotated[
        bool | None, typer.Option("--thinking/--no-thinking", help="Reasoning blocks, where the model can switch them.")
    ] = None,
    aligner: Annotated[str | None, typer.Option(help="Larger model: a name, next-size-up, self or none.")] = None,
    suite: Annotated[str | None, typer.Option(help="Retention suite, or none.")] = None,
    tier: Annotated[str | None, typer.Option(help="How much of the suite: a tier of its file.")] = None,
    seeds: Annotated[str | None, typer.Option(help="For example 0,1,2 or 0-4; by default 0.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="GROUP.NAME=VALUE", help="One setting, as method.learning_rate=5e-5; repeatable."
        ),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Rows a stage and a task are cut to: a partial run.")] = None,
    eval_every: Annotated[int | None, typer.Option(min=1, help="Optimizer steps between evaluations.")] = None,
    data_root: DataRoot = None,
    gold_ids: Annotated[Path | None, typer.Option(help="File of row ids that science tasks are restricted to.")] = None,
    include_path: IncludePath = None,
    output: Output = Path("runs"),
    offline: Offline = False,
    device: Device = "cpu",
    threads: Threads = None,
    checkpoint_every: CheckpointEvery = "60s",
    keep_checkpoints: Keep = "all",
    allow_code: AllowCode = None,
    branch_from: Annotated[
        Path | None, typer.Option("--from", metavar="RUN_DIR", help="Go on from a finished stage of another run.")
    ] = None,
    from_stage: Annotated[
        str | None, typer.Option("--from-stage", metavar="N", help="With --from: the stage, by number or row.")
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start over in a directory of its own beside a run that is there.")
    ] = False,
    save_spec: Annotated[
        Path | None,
        typer.Option(help="Write the full specification to a file; with several seeds one NAME-sSEED.yaml each."),
    ] = None,
    tune: Annotated[bool, typer.Option("--tune", help="Try the recipe's grid on dev rows first.")] = False,
    write_recipe: Annotated[
        Path | None, typer.Option(help="With --tune: put the choice into this recipe file.")
    ] = None,
    quiet: Quiet = False,
    json: Json = False,
) -> int:
    """Train on a sequence of tasks, evaluating after every stage."""
    from cl_bench.harness.commands.execution import execution_of
    from cl_bench.harness.commands.run import RunOptions, run_command
    from cl_bench.harness.request import Request, parse_seeds, parse_settings

    request = Request(
        method=method,
        modifiers=tuple(modifiers) if modifiers else None,
        joint_with=joint_with,
        sequence=sequence,
        order=order,
        profile=profile,
        recipe=recipe,
        model=model,
        thinking=thinking,
        aligner=aligner,
        suite=suite,
        tier=tier,
        seeds=parse_seeds(seeds) if seeds is not None else None,
        limit=limit,
        eval_every=eval_every,
        settings=parse_settings(settings or ()),
    )
    execution = execution_of(
        output=output,
        data_root=data_root,
        gold_ids=gold_ids,
        include_paths=include_path or (),
        device=device,
        threads=threads,
        offline=offline,
        progress=not quiet,
        checkpoint_every=checkpoint_every,
        keep_checkpoints=keep_checkpoints,
        allow_code=allow_code,
        branch_from=branch_from,
    )
    return run_command(RunOptions(request, spec, execution, json, save_spec, tune, write_recipe, fresh, from_stage))


@app.command()
def resume(
    directory: Annotated[Path, typer.Argument(metavar="RUN_DIR", help="Run directory of an unfinished run.")],
    data_root: DataRoot = None,
    include_path: IncludePath = None,
    offline: Offline = False,
    device: RunDevice = None,
    threads: RunThreads = None,
    checkpoint_every: Annotated[
        str | None, typer.Option("--checkpoint-every", help="60s, 200steps or never; by default the run's own.")
    ] = None,
    keep_checkpoints: Annotated[
        str | None, typer.Option("--keep-checkpoints", help="all, last or none; by default the run's own.")
    ] = None,
    allow_code: AllowCode = None,
    quiet: Quiet = False,
    json: Json = False,
) -> int:
    """Go on with an unfinished run, with the options that it had."""
    from cl_bench.harness.commands.resume import resume_command

    given = {
        "data_root": data_root,
        "include_paths": include_path or None,
        "device": device,
        "threads": threads,
        "checkpoint_every": checkpoint_every,
        "keep_checkpoints": keep_checkpoints,
        "allow_code": allow_code,
    }
    options = {name: value for name, value in given.items() if value is not None}
    return resume_command(directory, {**options, "offline": offline, "progress": not quiet}, json)


app.command()(reproduce)
app.command()(score)


ListKind = Literal["methods", "modifiers", "tasks", "sequences", "suites", "models", "profiles", "recipes"]


@app.command("list")
def list_(
    kind: Annotated[ListKind, typer.Argument(help="What to list.")],
    include_path: IncludePath = None,
    json: Json = False,
) -> int:
    """List what can be named on the command line."""
    from cl_bench.harness.commands.list import list_command

    return list_command(kind, include_path or (), json)


app.command()(compare)
app.command()(report)
app.command()(show)
app.command()(recover)


@models_app.command("list")
def models_list(json: Json = False) -> int:
    """List lab models and models that can be fetched."""
    from cl_bench.harness.commands.list import list_command

    return list_command("models", (), json)


@models_app.command("path")
def models_path(
    name: Annotated[str, typer.Argument(help="Model.")], offline: Offline = False, json: Json = False
) -> int:
    """Print the folder that a model's name stands for."""
    from cl_bench.harness.commands.models import path_command

    return path_command(name, offline, json)


@models_app.command("build")
def models_build(
    name: Annotated[str, typer.Argument(help="Lab model.")],
    out: Annotated[Path, typer.Option("--out", help="Folder for the model.")] = Path("lab-models"),
    steps: Annotated[int | None, typer.Option(min=1, help="Stop after so many steps of the schedule.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of weights and rows.")] = 0,
    threads: Threads = None,
    quiet: Quiet = False,
    json: Json = False,
) -> int:
    """Pre-train a lab model from scratch."""
    from cl_bench.harness.commands.models import build_command

    return build_command(name, out, steps, seed, threads, quiet, json)


@models_app.command("fetch")
def models_fetch(name: Annotated[str, typer.Argument(help="Model that can be fetched.")], json: Json = False) -> int:
    """Fetch a small real model into the cache."""
    from cl_bench.harness.commands.models import fetch_command

    return fetch_command(name, json)


@app.command()
def env(json: Json = False) -> int:
    """Print versions, threads, cache and device."""
    from cl_bench.harness.commands.env import env_command

    return env_command(json)


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point: parses, runs, and turns every error into a message and an exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    signal.signal(signal.SIGTERM, _interrupt)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a closed one is None
            stream.reconfigure(errors="replace")  # where the terminal's encoding lacks a character
    sys.exit(exit_code_of(given))


def exit_code_of(arguments: Sequence[str]) -> int:
    """Run one command line in this process; prints what it prints and returns its exit code."""
    given = list(arguments)
    with redirect_stdout(VisibleStream(sys.stdout)) if sys.stdout is not None else nullcontext():  # type: ignore[type-var]
        return exit_code(
            lambda: _parser().main(args=given, prog_name="cl-bench", standalone_mode=False), "--json" in given
        )


@cache
def _parser() -> TyperGroup:
    """All commands with their options; made once, for it reads every signature."""
    return get_group(app)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
