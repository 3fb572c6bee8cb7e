"""Commands for those who extend cl-bench: ``new`` and ``validate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from cl_bench.harness.cli_options import GROUP_SETTINGS, AllowCode, DataRoot, IncludePath, Json, Offline

new_app = typer.Typer(help="Write a working starting point for an extension.", **GROUP_SETTINGS)
validate_app = typer.Typer(
    help="Check a method, modifier, specification, task, suite or run directory.", **GROUP_SETTINGS
)


@validate_app.command("method")
def validate_method(
    name: Annotated[str, typer.Argument(help="A method's name or its Python file.")],
    static: Annotated[bool, typer.Option("--static", help="Check the class alone; train nothing.")] = False,
    include_path: IncludePath = None,
    json: Json = False,
) -> int:
    """Check a method's class, then what it does.

    The class and its settings are read. Then it trains a tiny model in several ways that must agree (micro-batches,
    order of rows, padding side, a stop and a resume, the global generators), and runs twice on a few rows in the lab.
    Nothing is kept.
    """
    from cl_bench.harness.commands.validate import validate_method_command

    return validate_method_command(name, include_path or (), static, json)


@validate_app.command("modifier")
def validate_modifier(
    name: Annotated[str, typer.Argument(help="A modifier's name or its Python file.")],
    static: Annotated[bool, typer.Option("--static", help="Check the class alone; train nothing.")] = False,
    include_path: IncludePath = None,
    json: Json = False,
) -> int:
    """Check a modifier's class, then what it does beside sft over two stages."""
    from cl_bench.harness.commands.validate import validate_modifier_command

    return validate_modifier_command(name, include_path or (), static, json)


@validate_app.command("spec")
def validate_spec(
    file: Annotated[Path, typer.Argument(help="Request or saved specification.")],
    data_root: DataRoot = None,
    include_path: IncludePath = None,
    offline: Offline = False,
    json: Json = False,
) -> int:
    """Resolve a file and print what would be run where."""
    from cl_bench.harness.commands.execution import execution_of
    from cl_bench.harness.commands.validate import validate_spec_command

    execution = execution_of(data_root=data_root, include_paths=include_path or (), offline=offline)
    return validate_spec_command(file, execution, json)


@validate_app.command("task")
def validate_task(
    name: Annotated[str, typer.Argument(help="Task.")],
    source: Annotated[Literal["lab", "hub"] | None, typer.Option(help="Where its rows come from.")] = None,
    data_root: DataRoot = None,
    include_path: IncludePath = None,
    offline: Offline = False,
    allow_code: AllowCode = None,
    json: Json = False,
) -> int:
    """Load a task's rows; check them and the scorer.

    Every split, identifiers, and the scorer on the task's own answers.
    """
    from cl_bench.harness.commands.execution import execution_of
    from cl_bench.harness.commands.validate import validate_task_command

    execution = execution_of(
        data_root=data_root, include_paths=include_path or (), offline=offline, allow_code=allow_code
    )
    return validate_task_command(name, source or ("hub" if data_root else "lab"), execution, json)


@validate_app.command("suite")
def validate_suite(
    name: Annotated[str, typer.Argument(help="A suite's name or its YAML file.")],
    tier: Annotated[str | None, typer.Option(help="Tier that it must have; by default any.")] = None,
    data_root: DataRoot = None,
    include_path: IncludePath = None,
    allow_code: AllowCode = None,
    json: Json = False,
) -> int:
    """Read a suite's file and build the benchmarks whose rows are here.

    Keys and their types, then every benchmark as a run would build it: its definition, its metric, each of its rows.
    Nothing is downloaded; benchmarks without local rows are skipped with the reason.
    """
    from cl_bench.harness.commands.execution import execution_of
    from cl_bench.harness.commands.validate_suite import validate_suite_command

    execution = execution_of(data_root=data_root, include_paths=include_path or (), offline=True, allow_code=allow_code)
    return validate_suite_command(name, tier, execution, json)


@validate_app.command("run")
def validate_run(directory: Annotated[Path, typer.Argument(help="Run directory.")], json: Json = False) -> int:
    """Check a run directory against its hashes.

    Its specification against its name, its files against their hashes, its matrix against its samples.
    """
    from cl_bench.harness.commands.validate import validate_run_command

    return validate_run_command(directory, json)


Name = Annotated[str, typer.Argument(help="Name, words joined by hyphens.")]
Directory = Annotated[Path, typer.Option("--dir", help="Folder to write into.")]
Package = Annotated[bool, typer.Option("--package", help="Write a package that can be installed.")]


@new_app.command("method")
def new_method(name: Name, directory: Directory = Path("."), package: Package = False, json: Json = False) -> int:
    """Write a method file that runs, and a test for it."""
    from cl_bench.harness.commands.new import new_command

    return new_command("method", name, directory, package, json)


@new_app.command("modifier")
def new_modifier(name: Name, directory: Directory = Path("."), package: Package = False, json: Json = False) -> int:
    """Write a modifier file that runs, and a test for it."""
    from cl_bench.harness.commands.new import new_command

    return new_command("modifier", name, directory, package, json)
