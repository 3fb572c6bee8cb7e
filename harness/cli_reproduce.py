"""``cl-bench reproduce``: its options and their help; the work is in ``harness.commands.reproduce``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cl_bench.harness.cli_options import AllowCode, DataRoot, IncludePath, Json, Offline, Quiet, RunDevice, RunThreads


def reproduce(
    directory: Annotated[Path, typer.Argument(metavar="RUN_DIR", help="Run directory.")],
    run: Annotated[bool, typer.Option("--run", help="Carry the run out again and compare bit for bit.")] = False,
    output: Annotated[Path, typer.Option("--output", help="With --run: folder for the second run.")] = Path(
        "reproduced"
    ),
    save_spec: Annotated[Path | None, typer.Option(help="Write the specification to a file.")] = None,
    data_root: DataRoot = None,
    include_path: IncludePath = None,
    offline: Offline = False,
    device: RunDevice = None,
    threads: RunThreads = None,
    allow_code: AllowCode = None,
    quiet: Quiet = False,
    json: Json = False,
) -> int:
    """Say what of a run cannot be matched here: models, data, sources, versions, hardware."""
    from cl_bench.harness.commands.reproduce import reproduce_command

    given = {"data_root": data_root, "include_paths": include_path or None, "device": device, "threads": threads}
    options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if allow_code is not None or not run:  # without --run no program is run
        options["allow_code"] = allow_code
    options |= {"offline": offline, "progress": not quiet}
    return reproduce_command(directory, options, output, run, save_spec, json)
