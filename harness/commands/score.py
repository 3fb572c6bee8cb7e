"""``cl-bench score``: predictions of a task, or the recorded responses of a run, scored without any model."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cl_bench.harness.code_leave import check_code_leave
from cl_bench.harness.commands.execution import prepare_libraries, print_json
from cl_bench.harness.errors import EXIT_DONE, EXIT_FAILED, StoreError, UsageError
from cl_bench.harness.files import write_json, write_jsonl
from cl_bench.harness.registry import Registry
from cl_bench.harness.spec import DataSpec, Execution, data_options
from cl_bench.tasks.base import SplitName
from cl_bench.tasks.sources.base import OptionOrder

if TYPE_CHECKING:
    from cl_bench.harness.measure.rescored_run import RescoredCell

_SHOWN = 10
"""Ids that are named one by one before the rest is only counted."""


@dataclass(frozen=True, slots=True)
class ScoreOptions:
    """What ``score`` was asked for, but the run directory.

    Attributes:
        execution: Where data are, and whether programs may be run.
        task: Task whose rows the predictions answer, or None.
        predictions: JSONL file of rows ``{"id", "text"}``, or None.
        source: Where the task's rows come from; None: public data where a data root is given, else the lab.
        split: Rows that should have a prediction; None: all rows of the task.
        option_order: Order of the options that letters in the predictions refer to.
        output: File that receives one score an item, or None.
        json: Print one line of JSON.
    """

    execution: Execution
    task: str | None = None
    predictions: Path | None = None
    source: Literal["lab", "hub"] | None = None
    split: SplitName | None = None
    option_order: OptionOrder = "as-published"
    output: Path | None = None
    json: bool = False


def score_command(run: Path | None, options: ScoreOptions) -> int:
    """Score predictions (``--task`` and ``--predictions``) or a run; returns the exit code.

    Raises:
        UsageError: Neither or both were given, or a name, file or row is wrong; nothing was written.
        StoreError: The run directory is damaged.
    """
    if run is not None and (options.task or options.predictions):
        raise UsageError("score takes a run, or --task with --predictions, not both")
    prepare_libraries(options.execution)
    if run is not None:
        return _score_run(run, options)
    if options.task is None or options.predictions is None:
        raise UsageError(
            "nothing to score", hint="a run directory, or --task NAME --predictions FILE.jsonl with rows {id, text}"
        )
    return _score_predictions(options.task, options.predictions, options)


def _score_predictions(name: str, predictions: Path, options: ScoreOptions) -> int:
    from cl_bench.harness.measure.rescoring import read_predictions, score_predictions

    execution = options.execution
    source = options.source or ("hub" if execution.data_root else "lab")
    with redirect_stdout(sys.stderr):
        data = data_options(DataSpec(source=source, option_order=options.option_order), execution)
        texts = read_predictions(predictions)
        task = Registry(execution.include_paths).task(name, data)
        check_code_leave([task], None, execution.allow_code, print)
        rows = task.split(options.split) if options.split else task.scorable()
        scored = score_predictions(task, texts, rows)
        if options.output is not None:
            write_jsonl(options.output, scored.documents())
    counts = scored.counts()
    _name_missing(scored.missing)
    print_json({"task": name, **counts}) if options.json else print(_table(name, counts))
    return EXIT_DONE


def _name_missing(missing: list[str]) -> None:
    if not missing:
        return
    rest = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
    names = ", ".join(missing[:_SHOWN]) + rest
    print(f"{len(missing)} rows without a prediction count as wrong: {names}", file=sys.stderr)


def _table(name: str, counts: Mapping[str, int]) -> str:
    from cl_bench.harness.measure.intervals import wilson

    n = counts["n"]
    low, high = wilson(counts["correct"], n)
    keys = ("correct", "parsed", "format_ok")
    lines = [f"  {key:<9}  {counts[key]:>6}  {100 * counts[key] / n:5.1f} %" for key in keys]
    lines[0] += f"  95 % interval {100 * low:.1f} to {100 * high:.1f}"
    return "\n".join([f"{name}: {n} rows", *lines])


def _score_run(directory: Path, options: ScoreOptions) -> int:
    from cl_bench.harness.commands.resume import as_before
    from cl_bench.harness.measure.rescored_run import rescored_cells
    from cl_bench.harness.run_directory import load_run

    given = {"data_root": options.execution.data_root, "allow_code": options.execution.allow_code}
    execution = as_before(directory, {key: value for key, value in given.items() if value is not None})
    with redirect_stdout(sys.stderr):
        view = load_run(directory, verify=True, weights=False)
        if not view.stages:
            raise StoreError(f"{directory} has no finished row", hint="cl-bench resume it first")
        registry = Registry((*execution.include_paths, *options.execution.include_paths))
        cells = rescored_cells(view, execution, registry)
    document: dict[str, Any] = {"run": str(directory), "cells": {name: asdict(cell) for name, cell in cells.items()}}
    if options.output is not None:
        write_json(options.output, document)
    differing = {name: cell for name, cell in cells.items() if cell.recorded != cell.rescored}
    if options.json:
        print_json({**document, "differ": sorted(differing)})
    else:
        print(_run_table(cells, differing))
    return EXIT_FAILED if differing else EXIT_DONE


def _run_table(cells: Mapping[str, RescoredCell], differing: Mapping[str, RescoredCell]) -> str:
    lines = [f"{len(cells)} cells scored again, {len(cells) - len(differing)} as recorded"]
    lines += [
        f"  {name}: recorded {_number(cell.recorded)}, now {_number(cell.rescored)}" for name, cell in differing.items()
    ]
    return "\n".join(lines)


def _number(value: float | None) -> str:
    return "none" if value is None else f"{100 * value:.2f} %"
