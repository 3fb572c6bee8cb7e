"""``cl-bench resume``: go on with a run directory, after a check that nothing it depends on has changed."""

from __future__ import annotations

import json as json_module
import sys
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

from cl_bench.harness.commands.execution import prepare_libraries
from cl_bench.harness.commands.run import report, run_all
from cl_bench.harness.errors import StoreError
from cl_bench.harness.progress import make_progress
from cl_bench.harness.registry import Registry
from cl_bench.harness.run_directory import MANIFEST, read_spec
from cl_bench.harness.spec import Execution


def resume_command(directory: Path, execution: Execution, device: str | None, json: bool) -> int:
    """Resume and print; returns the exit code.

    Args:
        directory: Run directory.
        execution: Where and how; data root and include paths that it lacks are those of the run's last session.
        device: Torch device; None: that of the last session, for another one would give other numbers.
        json: Print one line of JSON.

    Raises:
        StoreError: Not a run directory, or models, data or sources are not those of the run.
    """
    spec = read_spec(directory)
    execution = replace(as_before(directory, execution, device), output=directory.resolve().parents[2])
    prepare_libraries(execution)
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


def as_before(directory: Path, execution: Execution, device: str | None) -> Execution:
    """The execution with what was not given anew from the run's manifest: places and the device."""
    before = _last_execution(directory)
    updates: dict[str, Any] = {"device": device or before.get("device") or execution.device}
    for name in ("data_root", "gold_ids"):
        if getattr(execution, name) is None and before.get(name):
            updates[name] = Path(before[name])
    if not execution.include_paths and before.get("include_paths"):
        updates["include_paths"] = tuple(Path(path) for path in before["include_paths"])
    return replace(execution, **updates)


def _last_execution(directory: Path) -> dict[str, Any]:
    try:
        manifest = json_module.loads((directory / MANIFEST).read_text(encoding="utf-8"))
        execution: dict[str, Any] = manifest["sessions"][-1]["execution"]
    except (OSError, ValueError, KeyError, IndexError):
        return {}  # killed before its manifest was written: the options alone decide
    return execution
