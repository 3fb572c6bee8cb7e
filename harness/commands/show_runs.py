"""``cl-bench show FOLDER``: the runs below a folder, three lines each, with where each stands."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from cl_bench.harness.commands.execution import print_json
from cl_bench.harness.escaping import visible
from cl_bench.harness.planned_stages import planned_rows
from cl_bench.harness.run_directory import STATUS, load_run, read_or_reason

Row = dict[str, Any]


def show_runs(directories: Sequence[Path], json: bool) -> int:
    """Print runs; with ``json`` a list of objects. Files are not compared with their hashes."""
    rows = [_row(directory) for directory in directories]
    print_json(rows) if json else _print(rows)
    return 0


def _row(directory: Path) -> Row:
    from cl_bench.reports.content import headline, standing

    damaged: Row = {"directory": str(directory), "run": "", "state": "damaged", "rows_finished": 0, "rows": 0}
    view = read_or_reason(directory, partial(load_run, verify=False))
    if isinstance(view, str):
        return {**damaged, "standing": view}
    state = view.status.get("state", "not started")
    if not isinstance(state, str):
        return {**damaged, "run": headline(view), "standing": f"{directory / STATUS} is damaged: its state is no text"}
    return {
        "directory": str(directory),
        "run": headline(view),
        "state": state,
        "rows_finished": len(view.stages),
        "rows": len(planned_rows(view.spec)),
        "standing": standing(view),
    }


def _print(rows: Sequence[Row]) -> None:
    for row in rows:
        # Names of folders and what a run says of itself may hold line breaks, which would look like runs of their own.
        parts = [visible(text) for text in (row["run"], row["directory"], row["standing"]) if text]
        print("\n    ".join(parts))
