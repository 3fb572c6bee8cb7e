"""``cl-bench show FOLDER``: the runs below a folder, a line each, with where each stands."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cl_bench.harness.commands.execution import print_json
from cl_bench.harness.errors import ClBenchError, NotARunError
from cl_bench.harness.run_directory import SPEC, load_run, runs_below

Row = dict[str, Any]


def show_runs_command(folder: Path, json: bool) -> int:
    """Print the runs below a folder; with ``json`` a list of objects. Files are not compared with their hashes.

    Raises:
        NotARunError: There is none.
    """
    directories = list(runs_below(folder))
    if not directories:
        raise NotARunError(f"no run at {folder}", f"neither it nor a folder below it has a {SPEC}", "see cl-bench run")
    rows = [_row(directory) for directory in directories]
    print_json(rows) if json else _print(rows)
    return 0


def _row(directory: Path) -> Row:
    from cl_bench.reports.content import headline, planned_rows, standing

    empty: Row = {"directory": str(directory), "run": "", "state": "damaged", "rows_finished": 0, "rows": 0}
    try:
        view = load_run(directory, verify=False)
    except ClBenchError as error:  # one that cannot be read hides no other
        return {**empty, "standing": " ".join(": ".join(filter(None, (error.what, error.why))).split())}
    return {
        **empty,
        "run": headline(view),
        "state": view.status.get("state", "not started"),
        "rows_finished": len(view.stages),
        "rows": len(planned_rows(view.spec)),
        "standing": standing(view),
    }


def _print(rows: Sequence[Row]) -> None:
    for row in rows:
        print(f"{row['run'] or row['directory']}\n    {row['directory']}\n    {row['standing']}")
