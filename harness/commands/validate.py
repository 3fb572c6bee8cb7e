"""``cl-bench validate``: checks that say what is wrong before anything is spent."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cl_bench.harness.code_leave import check_code_leave
from cl_bench.harness.commands.execution import prepare_libraries, print_json, talking_on_stderr
from cl_bench.harness.errors import EXIT_DONE, EXIT_FAILED, UsageError
from cl_bench.harness.plugins import name_of
from cl_bench.harness.progress import SilentProgress, make_progress
from cl_bench.harness.registry import Registry
from cl_bench.harness.spec import DataSpec, Execution, data_options

if TYPE_CHECKING:
    from cl_bench.harness.conformance.check import Check

_COMPANION = "sft"
"""The method that modifiers are tried beside: the plainest one."""


def validate_method_command(name: str, include_paths: Sequence[Path], static: bool, json: bool) -> int:
    """Check a method's class and, unless ``static``, what it does to a tiny model and on a few rows in the lab.

    Args:
        name: Registered name, or the path of a Python file (its folder is then included).
        include_paths: Further folders.
        static: Train nothing.
        json: Print one line of JSON.
    """
    execution = Execution()
    prepare_libraries(execution)
    from cl_bench.harness.conformance.class_checks import method_class_checks

    name, registry = _registered(name, include_paths, "methods")
    checks = method_class_checks(registry.method_class(name))
    if not static and all(check.passed for check in checks):
        checks += _trained_checks(name, None, registry, execution)
    return report(f"method {name}", checks, {}, json)


def validate_modifier_command(name: str, include_paths: Sequence[Path], static: bool, json: bool) -> int:
    """Check a modifier's class and, unless ``static``, what it does beside sft; arguments as for a method."""
    execution = Execution()
    prepare_libraries(execution)
    from cl_bench.harness.conformance.class_checks import modifier_class_checks

    name, registry = _registered(name, include_paths, "modifiers")
    checks = modifier_class_checks(registry.modifier_class(name))
    if not static and all(check.passed for check in checks):
        checks += _trained_checks(_COMPANION, name, registry, execution)
    return report(f"modifier {name}", checks, {}, json)


def _trained_checks(method: str, modifier: str | None, registry: Registry, execution: Execution) -> list[Check]:
    """Checks on a tiny model, then, where all of them pass, a short run in the lab."""
    from cl_bench.harness.conformance.behaviour import behaviour_checks
    from cl_bench.harness.conformance.lab_run import lab_checks
    from cl_bench.harness.conformance.trials import Trials

    with (
        talking_on_stderr(),
        make_progress() as progress,
        tempfile.TemporaryDirectory(prefix="cl-bench-") as work,
    ):
        progress.phase("train a tiny model")
        beside = registry.modifier_class(modifier) if modifier else None
        checks = behaviour_checks(Trials(registry.method_class(method), Path(work), beside))
        if all(check.passed for check in checks):
            checks += lab_checks(method, registry, execution, progress, modifier)
    return checks


def validate_spec_command(file: Path, execution: Execution, json: bool) -> int:
    """Resolve a file and print the directory of every seed."""
    prepare_libraries(execution)
    from cl_bench.harness.request import read_request
    from cl_bench.harness.resolve import resolve
    from cl_bench.harness.run_directory import run_path

    with talking_on_stderr():
        specs = resolve(read_request(file), execution, Registry(execution.include_paths), SilentProgress().note)
    directories = [str(run_path(execution.output, spec)) for spec in specs]
    if json:
        print_json({"valid": True, "directories": directories})
    else:
        print("\n".join(directories))
    return EXIT_DONE


def validate_task_command(name: str, source: Literal["lab", "hub"], execution: Execution, json: bool) -> int:
    """Load every split of a task and check rows and scorer."""
    prepare_libraries(execution)
    from cl_bench.harness.conformance.task_checks import task_checks

    with talking_on_stderr():
        registry = Registry(execution.include_paths)
        task = registry.task(name, data_options(DataSpec(source=source), execution))
        check_code_leave([task], None, execution.allow_code, print, of_a_run=False)
        counts, checks = task_checks(task)
    said = {"remarks": list(task.remarks)} if task.remarks else {}
    return report(f"task {name} ({source})", checks, {"rows": counts, **said}, json)


def validate_run_command(directory: Path, json: bool) -> int:
    """Check a run directory; raises ``StoreError`` naming the first file whose hash does not agree."""
    from cl_bench.harness.conformance.check import Check
    from cl_bench.harness.conformance.run_checks import run_checks
    from cl_bench.harness.store import load_run

    view = load_run(directory, weights=True)
    content = {"state": view.status.get("state"), "finished_stages": list(view.stages)}
    agree = Check("specification and hashes agree", "")
    return report(f"run {directory}", [agree, *run_checks(view)], content, json)


def _registered(name: str, include_paths: Sequence[Path], kind: str) -> tuple[str, Registry]:
    """Name and registry of something named by its registered name or by its file."""
    folders = list(include_paths)
    if not name.endswith(".py"):
        return name, Registry(folders)
    file = Path(name)
    if not file.is_file():
        raise UsageError(f"{file} does not exist")
    folder = file.resolve().parent
    # A file in DIR/methods belongs to the include path DIR.
    folder = folder.parent if folder.name == kind else folder
    if folder not in [path.resolve() for path in folders]:
        folders.append(folder)
    registry, name = Registry(folders), name_of(file)
    if name not in registry.names(kind):
        other = next((found for found in ("methods", "modifiers") if name in registry.names(found)), None)
        why = f"it defines a {other.removesuffix('s')}" if other else f"no class in it has the name {name!r}"
        hint = f"cl-bench validate {other.removesuffix('s')} {file}" if other else "a class and its file carry one name"
        raise UsageError(f"{file} defines no {kind.removesuffix('s')} called {name!r}", why, hint)
    return name, registry


def _in_line(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {'all' if number is None else number}" for name, number in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def report(what: str, checks: Sequence[Check], extra: dict[str, Any], json: bool) -> int:
    """Print checks with what was counted beside them; returns the exit code."""
    passed = all(check.passed for check in checks)
    if json:
        rows = [{"passed": check.passed, **asdict(check)} for check in checks]
        rows = [{"check": row.pop("name"), **row} for row in rows]
        print_json({"what": what, "valid": passed, **extra, "checks": rows})
    else:
        print(what)
        for key, value in extra.items():
            print(f"  {key}: {_in_line(value)}")
        for check in checks:
            verdict = "skip" if check.skipped else "ok  " if check.passed else "FAIL"
            print(f"  {verdict}  {': '.join(filter(None, (check.name, check.problem or check.skipped)))}")
    return EXIT_DONE if passed else EXIT_FAILED
