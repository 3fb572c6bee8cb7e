"""``cl-bench report``: the Markdown report and the figures of a run, written anew from what it measured."""

from __future__ import annotations

from pathlib import Path

from cl_bench.harness.commands.execution import print_json
from cl_bench.harness.errors import EXIT_DONE


def report_command(directory: Path, json: bool) -> int:
    """Write ``report.md`` and the heat map of a run; returns the exit code.

    A run that ended early has a report of what it measured.

    Raises:
        NotARunError: The directory is not a run.
        StoreError: It is damaged, or another process works on it.
    """
    from cl_bench.harness.run_directory import REPORT
    from cl_bench.harness.store import Store
    from cl_bench.reports.plots import HEATMAP, heatmap
    from cl_bench.reports.report import render_report

    store = Store.reopen(directory)
    with store.lock():
        store.write_bytes(HEATMAP, heatmap(directory))
        store.write_text(REPORT, render_report(directory))
    written = [store.path(name) for name in (REPORT, HEATMAP)]
    if json:
        print_json({"run": str(directory), "files": [str(path) for path in written]})
    else:
        print("\n".join(map(str, written)))
    return EXIT_DONE
