"""``cl-bench show`` and ``cl-bench recover``: their options and their help; the work is in ``harness.commands``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cl_bench.harness.cli_options import (
    AllowCode,
    DataRoot,
    IncludePath,
    Json,
    Offline,
    Quiet,
    RunDevice,
    RunThreads,
)
from cl_bench.harness.errors import NotARunError, UsageError

if TYPE_CHECKING:
    from cl_bench.harness.measure.items.transitions import Transition


def show(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND|RUN_DIR",
            help="method, modifier, task, sequence, suite, model, profile, recipe or run; or a run directory itself, "
            "or a folder of runs.",
        ),
    ],
    name: Annotated[str | None, typer.Argument(help="Its name, or a run directory, or a folder of runs.")] = None,
    items: Annotated[
        bool, typer.Option("--items", help="Of a run: what became of each item between two rows.")
    ] = False,
    task: Annotated[str | None, typer.Option(help="With --items: list the items of this column.")] = None,
    forgotten: Annotated[bool, typer.Option("--forgotten", help="List items right before and wrong after.")] = False,
    gained: Annotated[bool, typer.Option("--gained", help="List items wrong before and right after.")] = False,
    never: Annotated[bool, typer.Option("--never", help="List items wrong in both rows.")] = False,
    kept: Annotated[bool, typer.Option("--kept", help="List items right in both rows.")] = False,
    before: Annotated[str | None, typer.Option("--from", help="With --items: the earlier row (base).")] = None,
    after: Annotated[str | None, typer.Option("--to", help="With --items: the later row (the last one).")] = None,
    other: Annotated[
        Path | None, typer.Option("--other-seed", help="With --items: run of another seed, for the noise floor.")
    ] = None,
    include_path: IncludePath = None,
    json: Json = False,
) -> int:
    """Show a method, modifier, task, sequence, suite, model, profile, recipe or run, or the items of a run."""
    flags = {"kept": kept, "forgotten": forgotten, "gained": gained, "never": never}
    if not items:
        if task or before or after or other or any(flags.values()):
            raise UsageError("--task, --from, --to, --other-seed and kinds of items go with --items")
        return _show(kind, name, include_path or [], json)
    from cl_bench.harness.commands.items import ItemsOptions, items_command
    from cl_bench.harness.measure.matrix import BASE_ROW

    wanted: tuple[Transition, ...] = tuple(key for key, chosen in flags.items() if chosen)  # type: ignore[misc]
    return items_command(_run(kind, name), ItemsOptions(task, wanted, before or BASE_ROW, after, other, json))


def recover(
    directory: Annotated[Path, typer.Argument(metavar="RUN_DIR", help="Run directory, with the row's checkpoint.")],
    row: Annotated[str | None, typer.Option(help="Row whose forgetting is probed; by default the last one.")] = None,
    columns: Annotated[
        list[str] | None, typer.Option("--column", help="Column to probe; repeatable; by default all.")
    ] = None,
    data_root: DataRoot = None,
    include_path: IncludePath = None,
    offline: Offline = False,
    device: RunDevice = None,
    threads: RunThreads = None,
    allow_code: AllowCode = None,
    quiet: Quiet = False,
    json: Json = False,
) -> int:
    """Measure how much of what a row forgot comes back by probes that teach none of its items."""
    from cl_bench.harness.commands.recover import recover_command

    given = {
        "data_root": data_root,
        "include_paths": include_path or None,
        "device": device,
        "threads": threads,
        "allow_code": allow_code,
    }
    options = {key: value for key, value in given.items() if value is not None}
    return recover_command(directory, row, columns or (), json, {**options, "offline": offline}, not quiet)


def _show(kind: str, name: str | None, include_paths: list[Path], json: bool) -> int:
    from cl_bench.harness.commands.show import KINDS, show_command

    if not kind or name == "":
        raise UsageError("show: an empty name", hint="name a run directory, or a kind and a name")
    if name is None:
        try:
            if Path(kind).is_dir():
                return show_command("run", kind, include_paths, json)
        except NotARunError:
            if kind.removesuffix("s") not in KINDS:  # a folder may be called as a kind is: runs, methods
                raise
        raise UsageError(
            f"show {kind}: which one?", hint=f"cl-bench show {kind} NAME, or cl-bench show RUN_DIR or FOLDER"
        )
    return show_command(kind, name, include_paths, json)


def _run(kind: str, name: str | None) -> Path:
    """The run directory, said with or without the word ``run`` before it."""
    if name is None:
        return Path(kind)
    if kind.removesuffix("s") != "run":
        raise UsageError(f"--items is about runs, not about a {kind}", hint="cl-bench show RUN_DIR --items")
    return Path(name)
