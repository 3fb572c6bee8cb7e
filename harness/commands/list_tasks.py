"""What ``cl-bench list tasks`` says of a task without reading its rows."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cl_bench.harness.commands.data_needs import needs_of
from cl_bench.harness.errors import ClBenchError, DataError
from cl_bench.harness.plugins import foreign_code
from cl_bench.harness.registry import Registry
from cl_bench.harness.spec import DataSpec, Execution, data_options

if TYPE_CHECKING:
    from cl_bench.tasks.sources.prepared import PreparedSet
    from cl_bench.tasks.sources.wanted import Need


def task_facts(registry: Registry, name: str) -> dict[str, Any]:
    """Chance, public data sets, and rows and licence of those that ``cl-bench data prepare`` has fetched.

    Returns:
        ``chance`` (of the public rows, else of the lab's; None where the task has neither), ``data`` (ids of the
        data sets), ``rows`` (rows in their files by split, all kinds of rows counted; empty where not all are
        prepared), ``licence`` (None where not known).

    Raises:
        UsageError: The task cannot be made, or does not say its chance.
    """
    from cl_bench.tasks.sources.prepared import prepared_root, read_record

    root = prepared_root()
    try:
        needs = needs_of([name], registry, [root])
        record = {one.key: one for one in read_record(root)}
    except ClBenchError:  # a broken file is named where it is used
        needs, record = [], {}
    found = [(need, record.get((need.spec.path, need.spec.config))) for need in needs]
    held = [(need, one) for need, one in found if one is not None and one.is_revision(need.spec.revision)]
    licences = dict.fromkeys(one.licence for _, one in held if one.licence)
    return {
        "chance": _chance(registry, name),
        "data": list(dict.fromkeys(need.spec.path for need in needs)),
        "rows": _rows(held) if len(held) == len(found) else {},
        "licence": ", ".join(licences) or None,
    }


def _rows(held: list[tuple[Need, PreparedSet]]) -> dict[str, int]:
    """Rows by split; empty where one was not counted."""
    counts: Counter[str] = Counter()
    for need, one in held:
        for split in need.spec.files:
            if (key := one.rows_key(need.spec, split)) not in one.rows:
                return {}
            counts[split] += one.rows[key]
    return dict(counts)


def _chance(registry: Registry, name: str) -> float | None:
    for source in ("hub", "lab"):
        options = data_options(DataSpec.model_validate({"source": source}), Execution(output=Path(), offline=True))
        try:
            with foreign_code(f"the task {name} cannot be made"):
                return float(registry.task(name, options).chance)
        except DataError:
            continue
    return None
