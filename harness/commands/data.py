"""``cl-bench data``: which public data sets there are, and having them on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cl_bench.harness.commands.execution import execution_of, prepare_libraries, print_json, talking_on_stderr
from cl_bench.harness.errors import EXIT_DONE, EXIT_FAILED, DataError, InterruptedRunError, UsageError
from cl_bench.harness.progress import make_progress
from cl_bench.harness.registry import Registry
from cl_bench.harness.sizes import size_text
from cl_bench.harness.spec import Execution

if TYPE_CHECKING:
    from cl_bench.tasks.sources.wanted import Outcome, Wanted


@dataclass(frozen=True, slots=True)
class PrepareOptions:
    """Options of ``cl-bench data prepare`` and ``list``; see their help."""

    to: Path | None = None
    data_root: Path | None = None
    profile: str | None = None
    tier: str | None = None
    with_suites: bool = True
    include_paths: tuple[Path, ...] = ()
    offline: bool = False
    progress: bool = True
    json: bool = False


def prepare_command(names: Sequence[str], options: PrepareOptions) -> int:
    """Download what runs need and print a table of it.

    Raises:
        UnknownNameError: One of the names is none; nothing was done.
        UsageError: A folder is no folder.
        DataError: The folder's record of what it holds is damaged.
        InterruptedRunError: The user stopped it.
    """
    prepare_libraries(execution_of(data_root=options.data_root, offline=options.offline))
    from cl_bench.harness.commands.data_needs import needs_of
    from cl_bench.tasks.sources.base import DataOptions
    from cl_bench.tasks.sources.locate import is_offline
    from cl_bench.tasks.sources.prepare import prepare
    from cl_bench.tasks.sources.prepared import prepared_root
    from cl_bench.tasks.sources.wanted import wanted_sets

    root = options.to if options.to is not None else prepared_root()
    if root.exists() and not root.is_dir():
        raise UsageError(f"--to {root} is not a folder")
    roots = [folder for folder in (options.data_root, root) if folder is not None]
    with talking_on_stderr(), make_progress(options.progress) as progress:
        needs = needs_of(
            names,
            Registry(options.include_paths),
            roots,
            options.profile,
            options.tier,
            options.with_suites,
            progress.note,
        )
        try:
            outcomes = prepare(
                wanted_sets(needs),
                root,
                data_root=options.data_root,
                offline=is_offline(DataOptions(offline=options.offline)),
                note=progress.note,
            )
        except KeyboardInterrupt as error:
            raise InterruptedRunError(
                "interrupted", "data sets that are whole are kept, the others are not used", "the same command goes on"
            ) from error
    code = EXIT_FAILED if any(outcome.is_missed for outcome in outcomes) else EXIT_DONE
    if options.json:
        print_json({"folder": str(root), "complete": code == EXIT_DONE, "data_sets": [_row(one) for one in outcomes]})
        return code
    if outcomes:
        _print_outcomes(outcomes)
    print(root)
    return code


def list_command(names: Sequence[str], options: PrepareOptions) -> int:
    """Print data sets with where they are: local, prepared, or absent.

    Args:
        names: What reads them, as ``prepare`` takes it; empty: all tasks and suites.
        options: Where to look, which suites count, and the form of the output.

    Raises:
        UnknownNameError: One of the names is none.
    """
    data_root = options.data_root
    prepare_libraries(execution_of(data_root=data_root, offline=True))
    from cl_bench.harness.commands.data_needs import needs_of, needs_of_all
    from cl_bench.tasks.sources.prepared import prepared_root
    from cl_bench.tasks.sources.wanted import table_titles, wanted_sets

    roots = [folder for folder in (data_root, prepared_root()) if folder is not None]
    registry = Registry(options.include_paths)
    with talking_on_stderr():
        chosen = (options.profile, options.tier, options.with_suites, print)
        needs = needs_of(names, registry, roots, *chosen) if names else needs_of_all(registry, roots)
    wanted = wanted_sets(needs)
    rows = [_listed(one, data_root) for one in wanted]
    if options.json:
        print_json(rows)
        return EXIT_DONE
    head = ("data set", "state", "licence", "revision", "used by")
    lines = [
        (name, _state(row), row["licence"] or "-", (row["revision"] or "")[:12], ", ".join(row["for"]))
        for name, row in zip(table_titles(wanted), rows, strict=True)
    ]
    _print_table(head, lines, [row["detail"] for row in rows])
    return EXIT_DONE


def layout_command(flat: Path, root: Path, json: bool) -> int:
    """Lay flat files out like the hub and print the folders; raises UsageError or DataError."""
    prepare_libraries(Execution(offline=True))
    from cl_bench.tasks.sources.layout import lay_out

    if not flat.is_dir():
        raise UsageError(f"{flat} is not a folder")
    folders = [str(folder) for folder in lay_out(flat, root)]
    if json:
        print_json({"root": str(root), "folders": folders})
    else:
        print("\n".join(folders))
    return EXIT_DONE


def corpora_command(cutoff: str, json: bool) -> int:
    """Print the registry of corpora.

    Raises:
        UsageError: The cutoff is no date.
    """
    from cl_bench.tasks.corpora.corpora import cutoff_group, load_corpora

    try:
        day = date.fromisoformat(cutoff)
    except ValueError as error:
        raise UsageError(f"--cutoff {cutoff}: no date", str(error), "for example 2024-09-01") from error
    rows = [{**corpus.as_dict(), "group": cutoff_group(corpus, day)} for corpus in load_corpora()]
    if json:
        print_json({"cutoff": cutoff, "corpora": rows})
        return EXIT_DONE
    shown = ("path", "config", "domain", "status", "created", "group", "licence", "columns_status")
    _print_table(shown, [[str(row[key]) if row[key] is not None else "-" for key in shown] for row in rows])
    return EXIT_DONE


def _listed(wanted: Wanted, data_root: Path | None) -> dict[str, Any]:
    from cl_bench.tasks.sources.prepared import prepared_root, read_record

    state, detail = _found(wanted, data_root)
    licence = None
    if state in ("local", "prepared"):
        record = [one for one in read_record(data_root or prepared_root()) if one.key == wanted.key]
        licence = next((one.licence or "not stated" for one in record), None)
        if data_root is None:
            detail = "".join(f"copied from {one.origin}" for one in record if one.origin != "hub")
    return {
        "name": wanted.title,
        "path": wanted.path,
        "config": wanted.config,
        "splits": wanted.splits,
        "revision": wanted.revision,
        "for": wanted.users,
        "state": state,
        "optional": wanted.optional,
        "licence": licence,
        "detail": detail,
    }


def _found(wanted: Wanted, data_root: Path | None) -> tuple[str, str]:
    """Whether all splits of a data set are there, and why not."""
    from cl_bench.tasks.sources.base import DataOptions
    from cl_bench.tasks.sources.presence import absence

    options = DataOptions("hub", data_root, offline=True)
    try:
        absent = next((error for spec in wanted.specs if (error := absence(spec, options)) is not None), None)
    except DataError as error:
        return "damaged", "; ".join(filter(None, (error.what, error.why, error.hint)))
    if absent is None:
        return "local" if data_root is not None else "prepared", ""
    if data_root is None and wanted.on_hub:
        return "absent", f"on the hub: cl-bench data prepare {wanted.path}"
    return "absent", "; ".join(filter(None, (absent.what, absent.why)))


def _row(outcome: Outcome) -> dict[str, Any]:
    wanted, found = outcome.wanted, outcome.found
    return {
        "name": wanted.title,
        "path": wanted.path,
        "config": wanted.config,
        "splits": wanted.splits,
        "for": wanted.users,
        "state": outcome.state,
        "optional": wanted.optional,
        "detail": outcome.detail,
        "rows": outcome.rows,
        "bytes": found.size if found is not None else None,
        "licence": (found.licence or "not stated") if found is not None else None,
        "revision": wanted.revision,
        "commit": found.commit if found is not None else None,
        "origin": found.origin if found is not None else None,
        "files": found.model_dump()["files"] if found is not None else {},
    }


def _print_outcomes(outcomes: Sequence[Outcome]) -> None:
    from cl_bench.tasks.sources.wanted import table_titles

    lines = []
    for name, outcome in zip(table_titles([outcome.wanted for outcome in outcomes]), outcomes, strict=True):
        row = _row(outcome)
        rows = ", ".join(f"{name} {count:,}" for name, count in row["rows"].items())
        size = size_text(row["bytes"]) if row["bytes"] is not None else "-"
        lines.append((name, rows or "-", size, row["licence"] or "-", _revision(outcome), _state(row)))
    _print_table(
        ("data set", "rows", "size", "licence", "revision", "state"), lines, [outcome.detail for outcome in outcomes]
    )


def _state(row: dict[str, Any]) -> str:
    """The state in a table; what is optional and not there is absent, for whatever reason."""
    missing = row["state"] in ("absent", "gated", "failed")
    return "absent (optional)" if row["optional"] and missing else str(row["state"])


def _revision(outcome: Outcome) -> str:
    """Commit, and how it was chosen: pinned by the task file, or whatever was published on the day."""
    wanted, found = outcome.wanted, outcome.found
    if found is not None and found.commit is None:
        return "local files, unchecked"
    if wanted.revision is not None:
        return f"{wanted.revision[:12]} pinned"
    return f"{found.commit[:12]} of {found.fetched}" if found is not None and found.commit else "not pinned"


def _print_table(head: Sequence[str], rows: Sequence[Sequence[str]], details: Sequence[str] = ()) -> None:
    """Columns as wide as they need to be; a row's detail on a line of its own."""
    widths = [max(len(row[index]) for row in [head, *rows]) for index in range(len(head))]
    for index, row in enumerate([head, *rows]):
        print("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())
        if index and details and details[index - 1]:
            print(f"    {details[index - 1]}")
