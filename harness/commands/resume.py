"""``cl-bench resume``: go on with a run directory, after a check that nothing it depends on has changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from cl_bench.harness.commands.execution import check_device, prepare_libraries, talking_on_stderr
from cl_bench.harness.commands.recorded import as_before
from cl_bench.harness.commands.run import report, run_all
from cl_bench.harness.errors import StoreError
from cl_bench.harness.progress import make_progress
from cl_bench.harness.registry import Registry
from cl_bench.harness.run_directory import attempt_of, read_spec, run_path
from cl_bench.harness.spec import RunSpec
from cl_bench.harness.store import Store


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

    with Store.reopen(directory).lock():
        pass  # another process on this run is named before models are read
    with talking_on_stderr(), make_progress(execution.progress) as progress:
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
