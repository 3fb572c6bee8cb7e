"""``cl-bench resume``: go on with a run directory, after a check that nothing it depends on has changed."""

from __future__ import annotations

import json as json_module
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from cl_bench.harness.commands.execution import check_device, execution_of, prepare_libraries
from cl_bench.harness.commands.run import report, run_all
from cl_bench.harness.errors import StoreError
from cl_bench.harness.progress import make_progress
from cl_bench.harness.registry import Registry
from cl_bench.harness.run_directory import MANIFEST, attempt_of, read_spec, run_path
from cl_bench.harness.spec import Execution, RunSpec


def resume_command(directory: Path, options: Mapping[str, Any], json: bool) -> int:
    """Resume and print; returns the exit code.

    Args:
        directory: Run directory.
        options: Options of ``execution_of`` that were given; the others are those of the run's last session.
        json: Print one line of JSON.

    Raises:
        StoreError: Not a run directory, or models, data or sources are not those of the run.
        UsageError: An option is of another form.
    """
    spec = read_spec(directory)
    execution = as_before(directory, options)
    execution = replace(execution, output=_output_of(directory, spec), attempt=attempt_of(directory.resolve()))
    prepare_libraries(execution)
    check_device(execution.device)
    from cl_bench.harness.resolve import changes

    with redirect_stdout(sys.stderr), make_progress(execution.progress) as progress:
        registry = Registry(execution.include_paths)
        progress.phase("reading models and data")
        changed = changes(spec, execution, registry)
        progress.close()
        if changed:
            raise StoreError(
                f"{directory} cannot be resumed",
                why=f"these are not what they were when it began: {', '.join(changed)}",
                hint="cl-bench run with the same options begins a new run",
            )
        outcomes = run_all([spec], execution, registry, progress)
    return report(outcomes, json)


def _output_of(directory: Path, spec: RunSpec) -> Path:
    """The folder that ``--output`` named; elsewhere than there the same spec would begin a new run."""
    place = directory.resolve()
    output = place.parents[min(2, len(place.parents) - 1)]
    attempt = attempt_of(place)
    wanted = run_path(Path(), spec, attempt)
    if run_path(output, spec, attempt) != place:
        raise StoreError(
            f"{directory} is not where its run belongs",
            why=f"the run's place below an output folder is {wanted}",
            hint=f"move it to FOLDER/{wanted} and resume it there",
        )
    return output


def as_before(directory: Path, options: Mapping[str, Any]) -> Execution:
    """The execution that the options give, with what they leave out from the run's manifest.

    Places, device and threads decide whether the rest of the run equals what one session would have given.
    """
    given = {field for option in options for field in _FIELDS_OF.get(option, (option,))}
    before = {name: value for name, value in _last_execution(directory).items() if name in _RESTORED - given}
    for name in ("data_root", "gold_ids", "branch_from"):
        if before.get(name):
            before[name] = Path(before[name])
    if "include_paths" in before:
        before["include_paths"] = tuple(Path(path) for path in before["include_paths"])
    return replace(execution_of(**options), **before)


_FIELDS_OF = {"checkpoint_every": ("checkpoint_every_seconds", "checkpoint_every_steps")}
"""Options that fill fields of other names."""
_RESTORED = frozenset(field.name for field in fields(Execution)) - {"output", "progress", "offline", "attempt"}


def _last_execution(directory: Path) -> dict[str, Any]:
    try:
        manifest = json_module.loads((directory / MANIFEST).read_text(encoding="utf-8"))
        execution: dict[str, Any] = manifest["sessions"][-1]["execution"]
    except (OSError, ValueError, KeyError, IndexError, TypeError):
        return {}  # killed before its manifest was written: the options alone decide
    return execution if isinstance(execution, dict) else {}
