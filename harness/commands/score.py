"""``cl-bench score``: predictions of a task, or the recorded responses of a run, scored without any model."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cl_bench.harness.code_leave import check_code_leave
from cl_bench.harness.commands.execution import prepare_libraries, print_json, talking_on_stderr
from cl_bench.harness.commands.output_file import check_output, write_output
from cl_bench.harness.errors import EXIT_DONE, EXIT_FAILED, StoreError, UsageError
from cl_bench.harness.escaping import visible
from cl_bench.harness.files import plain
from cl_bench.harness.registry import Registry
from cl_bench.harness.spec import DataSpec, Execution, data_options
from cl_bench.tasks.base import SplitName, Task
from cl_bench.tasks.sources.base import OptionOrder

if TYPE_CHECKING:
    from cl_bench.harness.measure.rescored_run import RescoredCell


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
    if run is not None and (options.task or options.predictions or options.split or options.source):
        raise UsageError("score takes a run, or --task with --predictions and what belongs to them, not both")
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
    if options.output is not None:
        check_output(options.output, [predictions], [execution.data_root] if execution.data_root else [])
    source = options.source or ("hub" if execution.data_root else "lab")
    with talking_on_stderr():
        data = data_options(DataSpec(source=source, option_order=options.option_order), execution)
        texts = read_predictions(predictions)
        task = Registry(execution.include_paths).task(name, data)
        check_code_leave([task], None, execution.allow_code, print, of_a_run=False)
        scored = score_predictions(task, texts, options.split)
        if options.output is not None:
            write_output(options.output, "".join(f"{_line(row)}\n" for row in scored.documents()))
        for remark in task.remarks:
            print(f"task {name}: {remark}")
    counts = scored.counts()
    _name_missing(scored.missing)
    order = options.option_order if source == "hub" and _has_options(task, options.split) else None
    if options.json:
        print_json({"task": name, **counts})
    else:
        print(_table(name, counts, task.chance, order))
    return EXIT_DONE


def _has_options(task: Task, split: SplitName | None) -> bool:
    return any(example.choices for example in (task.split(split) if split else task.scorable()))


def _line(row: Any) -> str:
    return json.dumps(plain(row), ensure_ascii=False, allow_nan=False)


def _name_missing(missing: list[str]) -> None:
    if not missing:
        return
    print(f"{len(missing)} rows without a prediction count as wrong: {visible(', '.join(missing))}", file=sys.stderr)


def _table(name: str, counts: Mapping[str, int], chance: float, order: OptionOrder | None) -> str:
    from cl_bench.harness.measure.statistics.intervals import wilson

    n = counts["n"]
    keys = ("correct", "parsed", "format_ok")
    lines = [f"  {key:<9}  {counts[key]:>6}  {100 * counts[key] / n:5.1f} %" for key in keys]
    interval = wilson(counts["correct"], n)
    if interval is not None:
        low, high = interval
        lines[0] += f"  95 % interval {100 * low:.1f} to {100 * high:.1f}"
    lines.append(f"  {'chance':<9}  {'':>6}  {100 * chance:5.1f} %")
    options = "" if order is None else f", letters refer to the options {order.replace('-', ' ')}"
    return "\n".join([f"{name}: {n} rows{options}", *lines])


def _score_run(directory: Path, options: ScoreOptions) -> int:
    from cl_bench.harness.commands.recorded import as_before
    from cl_bench.harness.measure.rescored_run import rescored_cells
    from cl_bench.harness.run_directory import load_run

    if options.output is not None:
        root = options.execution.data_root
        check_output(options.output, holding=[root] if root else [], fixed=directory)
    root = options.execution.data_root
    given: dict[str, Any] = {"allow_code": options.execution.allow_code}
    given |= {"data_root": root} if root else {}
    given |= {"include_paths": options.execution.include_paths} if options.execution.include_paths else {}
    execution = as_before(directory, given, needed=("tasks",))
    with talking_on_stderr():
        view = load_run(directory, verify=True, weights=False)
        if not view.stages:
            raise StoreError(f"{directory} has no finished row", hint="cl-bench resume it first")
        registry = Registry(execution.include_paths)
        cells = rescored_cells(view, execution, registry)
    document: dict[str, Any] = {"run": str(directory), "cells": {name: asdict(cell) for name, cell in cells.items()}}
    if options.output is not None:
        write_output(options.output, json.dumps(plain(document), indent=1, ensure_ascii=False, allow_nan=False) + "\n")
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
