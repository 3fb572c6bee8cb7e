"""``cl-bench score``: its options and their help; the work is in ``harness.commands.score``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from cl_bench.harness.cli_options import AllowCode, DataRoot, IncludePath, Json, Offline


def score(
    directory: Annotated[
        Path | None, typer.Argument(metavar="[RUN_DIR]", help="Run whose responses are scored.")
    ] = None,
    task: Annotated[str | None, typer.Option(help="Task that the predictions answer.")] = None,
    predictions: Annotated[Path | None, typer.Option(help='JSONL file of rows {"id": ..., "text": ...}.')] = None,
    source: Annotated[Literal["lab", "hub"] | None, typer.Option(help="Where the task's rows come from.")] = None,
    split: Annotated[
        Literal["train", "dev", "test", "ood"] | None, typer.Option(help="Rows to score; by default all of the task.")
    ] = None,
    option_order: Annotated[
        Literal["as-published", "permuted"], typer.Option(help="Order of options that letters refer to.")
    ] = "as-published",
    data_root: DataRoot = None,
    include_path: IncludePath = None,
    offline: Offline = False,
    allow_code: AllowCode = None,
    output: Annotated[
        Path | None, typer.Option("--output", help="File for one score a row; none of the inputs.")
    ] = None,
    json: Json = False,
) -> int:
    """Score predictions, or a run's responses again, without any model.

    Ids are those of the task's rows: cl-bench data rows TASK prints them with the prompts.
    """
    from cl_bench.harness.commands.execution import execution_of
    from cl_bench.harness.commands.score import ScoreOptions, score_command

    execution = execution_of(
        data_root=data_root, include_paths=include_path or (), offline=offline, allow_code=allow_code
    )
    options = ScoreOptions(execution, task, predictions, source, split, option_order, output, json)
    return score_command(directory, options)
