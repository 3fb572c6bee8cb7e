"""``cl-bench recover``: how much of what a row forgot comes back by probes that teach none of its items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cl_bench.harness.commands.execution import check_device, prepare_libraries, print_json, talking_on_stderr
from cl_bench.harness.commands.recorded import as_before
from cl_bench.harness.compare.whole import load_whole
from cl_bench.harness.errors import EXIT_DONE
from cl_bench.harness.progress import make_progress
from cl_bench.harness.registry import Registry
from cl_bench.harness.store import Store


def recover_command(
    run: Path,
    row: str | None,
    columns: Sequence[str],
    json: bool,
    options: Mapping[str, Any] | None = None,
    progress: bool = True,
) -> int:
    """Probe, write ``recovery.json`` into the run directory and print a table.

    Args:
        run: Run directory, with the checkpoint of the row.
        row: Row whose forgetting from base is probed; None: the last finished one.
        columns: Columns; empty: all.
        json: Print one line of JSON.
        options: Options of ``execution_of`` that were given; the others are those of the run's last session.
        progress: Show progress.

    Raises:
        StoreError: Not a run directory, damaged, or without the row's weights.
        UnknownNameError: No such row or column.
        DataError: The data are not those that the run evaluated.
        ModelError: The untouched model's files are gone or have changed.
    """
    execution = as_before(run, options or {}, needed=("tasks",))
    prepare_libraries(execution)
    check_device(execution.device)
    from cl_bench.harness.measure.items.recovery_file import RECOVERY, read_recovery, with_row
    from cl_bench.harness.measure.items.run_recovery import RunRecovery, chosen_row
    from cl_bench.harness.run_models import RunModels

    with talking_on_stderr(), make_progress(progress) as shown:
        shown.phase("reading the run")
        view = load_whole(run)
        row = chosen_row(view, row)
        store = Store.reopen(run)
        if execution.threads is not None:
            import torch

            torch.set_num_threads(execution.threads)
        work = RunRecovery(view, row, RunModels(store, execution.device), execution, Registry(execution.include_paths))
        chosen = work.columns(columns)
        with store.lock():
            shown.phase(f"recover {row}", len(chosen))
            part = work.document(work.recover(chosen, shown))
            document = with_row(read_recovery(view), row, part)
            store.write_json(RECOVERY, document, schema="recovery")
    if json:
        print_json({"directory": str(run), "row": row, **document["rows"][row]})
    else:
        from cl_bench.reports.items import plain_text, recovery_grid

        print(plain_text(recovery_grid(row, document["rows"][row])))
    return EXIT_DONE
