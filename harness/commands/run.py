"""``cl-bench run``: resolve, run every seed, print tables and directories."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cl_bench.harness.cli_errors import of_the_system
from cl_bench.harness.commands.execution import check_device, prepare_libraries, print_json, talking_on_stderr
from cl_bench.harness.commands.recorded import data_places
from cl_bench.harness.errors import (
    EXIT_DONE,
    EXIT_FAILED,
    ClBenchError,
    InterruptedRunError,
    UsageError,
    blamed,
    words_of,
)
from cl_bench.harness.escaping import visible
from cl_bench.harness.progress import ClosingProgress, make_progress
from cl_bench.harness.redaction import redacted
from cl_bench.harness.registry import Registry
from cl_bench.harness.request import Request, read_request
from cl_bench.harness.run_directory import next_attempt
from cl_bench.harness.spec import Execution, RunSpec

if TYPE_CHECKING:
    from cl_bench.harness.runner import RunResult


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What ``run`` was asked for.

    Attributes:
        request: Options of the command line.
        file: Request or saved specification below them, or None.
        execution: Where and how.
        json: Print one line of JSON.
        save_spec: Where to write the specification, or None.
        tune: Choose settings on dev rows first.
        write_recipe: Recipe file that receives the choice, or None.
        fresh: Start over beside a run that is there.
        from_stage: Stage of ``execution.branch_from`` to go on from, by number or row, or None.
    """

    request: Request
    file: Path | None
    execution: Execution
    json: bool = False
    save_spec: Path | None = None
    tune: bool = False
    write_recipe: Path | None = None
    fresh: bool = False
    from_stage: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one seed ended: a result, or the error that stopped it."""

    spec: RunSpec
    result: RunResult | None
    error: ClBenchError | None = None

    @property
    def status(self) -> str:
        """State of the run directory, or "failed"."""
        return self.result.status if self.result is not None else "failed"


def run_command(options: RunOptions) -> int:
    """Run and print; returns the exit code.

    Raises:
        UsageError: The request is wrong; nothing was written.
        InterruptedRunError: The user stopped the run.
    """
    if (options.execution.branch_from is None) != (options.from_stage is None):
        raise UsageError("--from and --from-stage go together")
    if options.tune and options.from_stage is not None:
        hint = "tune with --write-recipe FILE first, and give that with --recipe"
        raise UsageError("--tune tries settings from the untouched model, and --from goes on from a stage", hint=hint)
    if options.write_recipe is not None and not options.tune:
        raise UsageError("--write-recipe goes with --tune")
    options = replace(options, execution=_with_places(options.execution))
    prepare_libraries(options.execution)
    check_device(options.execution.device)
    request = _request(options)
    # Libraries print; stdout is for data alone.
    with talking_on_stderr(), make_progress(options.execution.progress) as progress:
        registry = Registry(options.execution.include_paths)
        tuned: dict[str, Any] | None = None
        if options.tune:
            request, tuned = _tune(request, options, registry, progress)
        specs = resolve_noted(request, options.execution, registry, progress)
        if options.execution.branch_from is not None:
            specs = _branched(specs, options, progress.note)
        if options.save_spec is not None:
            _save(specs, options.save_spec)
        outcomes = run_all(specs, options.execution, registry, progress, options.fresh)
    return report(outcomes, options.json, tuned)


def _with_places(execution: Execution) -> Execution:
    """Of a branch, with the data places of the run that it goes on from where none is given."""
    if execution.branch_from is None:
        return execution
    before = data_places(execution.branch_from)
    return replace(execution, **{name: place for name, place in before.items() if getattr(execution, name) is None})


def _request(options: RunOptions) -> Request:
    """What was asked for on the command line, over a file, or over the run that this one goes on from."""
    asked = options.request if options.file is None else options.request.over(read_request(options.file))
    if options.execution.branch_from is None:
        return asked
    from cl_bench.harness.branching import continued

    return continued(asked, options.execution.branch_from)


def resolve_noted(
    request: Request, execution: Execution, registry: Registry, progress: ClosingProgress
) -> list[RunSpec]:
    """Resolve with a phase of its own, for data are read in it."""
    from cl_bench.harness.resolve import resolve

    progress.phase("reading models and data")
    specs = resolve(request, execution, registry, progress.note)
    progress.close()
    return specs


def run_all(
    specs: Sequence[RunSpec],
    execution: Execution,
    registry: Registry,
    progress: ClosingProgress,
    fresh: bool = False,
) -> list[Outcome]:
    """Run specifications one after another in this process.

    An error of one seed is kept for the report and the others run; with a single specification it is raised. With
    ``fresh`` each starts over in a directory of its own where one is there.
    """
    from cl_bench.harness.runner import run_one

    outcomes = []
    for spec in specs:
        if len(specs) > 1:
            progress.note(f"seed {spec.seed}")
        try:
            attempt = next_attempt(execution.output, spec) if fresh else execution.attempt
            outcomes.append(Outcome(spec, run_one(spec, replace(execution, attempt=attempt), registry, progress)))
        except InterruptedRunError:
            raise
        except ClBenchError as error:
            if len(specs) == 1 or _meets_every_seed(error.__cause__):
                raise
            progress.note(f"seed {spec.seed} failed\n{error}")
            outcomes.append(Outcome(spec, None, error))
        except Exception as error:  # a fault of an extension in one seed takes nothing from the others
            if len(specs) == 1 or _meets_every_seed(error):
                raise
            progress.note("".join(traceback.format_exception(error)) + f"seed {spec.seed} failed")
            outcomes.append(Outcome(spec, None, ClBenchError(words_of(error), blamed(error))))
        progress.close()
    return outcomes


def _branched(specs: Sequence[RunSpec], options: RunOptions, note: Callable[[str], None]) -> list[RunSpec]:
    from cl_bench.harness.branching import branched

    assert options.execution.branch_from is not None and options.from_stage is not None
    return [branched(spec, options.execution.branch_from, options.from_stage, note) for spec in specs]


def _meets_every_seed(error: BaseException | None) -> bool:
    """Whether it is the system's refusal: a full disk, no memory."""
    from cl_bench.harness.run_errors import out_of_memory

    return isinstance(error, Exception) and (out_of_memory(error) or of_the_system(error) is not None)


def report(outcomes: Sequence[Outcome], json: bool, tuned: dict[str, Any] | None = None) -> int:
    """Print the tables and, last, the directories; or one line of JSON. Returns the exit code."""
    code = EXIT_DONE if all(outcome.status == "done" for outcome in outcomes) else EXIT_FAILED
    if json:
        print_json(_json(outcomes, code, tuned))
        return code
    from cl_bench.reports.tables import render_run, render_seeds

    directories = [outcome.result.directory for outcome in outcomes if outcome.result is not None]
    for directory in directories:
        print(render_run(directory))
    if len(directories) > 1:
        print(render_seeds(directories))
    for directory in directories:
        print(directory, flush=True)
    return code


def _json(outcomes: Sequence[Outcome], code: int, tuned: dict[str, Any] | None) -> dict[str, Any]:
    runs = [
        {
            "seed": outcome.spec.seed,
            "status": outcome.status,
            "directory": str(outcome.result.directory) if outcome.result else None,
            "hash": outcome.spec.digest(),
            "metrics": outcome.result.metrics if outcome.result else None,
            "error": redacted(str(outcome.error)) if outcome.error else None,
        }
        for outcome in outcomes
    ]
    return {"exit_code": code, "runs": runs} | ({"tune": tuned} if tuned is not None else {})


def _tune(
    request: Request, options: RunOptions, registry: Registry, progress: ClosingProgress
) -> tuple[Request, dict[str, Any]]:
    from cl_bench.harness.tune import render, tune, write_recipe

    result = tune(request, options.execution, registry, progress)
    if not options.json:
        print(visible(render(result), layout=True), file=sys.__stdout__, flush=True)
    if options.write_recipe is not None:
        write_recipe(result, options.write_recipe)
        progress.note(f"recipe written to {options.write_recipe}")
    chosen = Request(settings={"method": dict(result.chosen)})
    return chosen.over(request), result.to_json()


def _save(specs: Sequence[RunSpec], path: Path) -> None:
    """Write the specification; several seeds go to files of their own, ``NAME-sSEED.yaml``."""
    for spec in specs:
        place = path if len(specs) == 1 else path.with_name(f"{path.stem}-s{spec.seed}{path.suffix}")
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(spec.to_yaml(), encoding="utf-8")
        except OSError as error:
            raise UsageError(f"cannot write {place}", why=str(error)) from error
