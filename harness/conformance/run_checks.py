"""Whether the documents of a run directory fit their schemas and one another; used by ``validate run``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cl_bench.harness.conformance.check import Check
from cl_bench.harness.documents import validate_document
from cl_bench.harness.errors import StoreError
from cl_bench.harness.files import read_json, read_jsonl
from cl_bench.harness.measure.run_metrics import run_metrics
from cl_bench.harness.planned_stages import learned_columns, planned_rows
from cl_bench.harness.run_directory import (
    ADAPTATION,
    CONTAMINATION,
    COST,
    DONE,
    MANIFEST,
    MATRIX,
    METRICS,
    SHIFT,
    STATUS,
    RunView,
)

_SCHEMAS = {
    STATUS: "status",
    MANIFEST: "manifest",
    MATRIX: "matrix",
    METRICS: "metrics",
    ADAPTATION: "adaptation",
    SHIFT: "shift",
    DONE: "done",
    "results.json": "results",
    CONTAMINATION: "contamination",
    COST: "cost",
    "recovery.json": "recovery",
}
_TOLERANCE = 1e-9


def run_checks(view: RunView) -> list[Check]:
    """Checks of a run whose hashes were verified by ``load_run``."""
    return [
        Check("documents fit their schemas", _first(_misfits(view.directory))),
        Check("finished stages follow one another", _first(_gaps(view))),
        Check("every finished stage has its row", _first(_rows(view))),
        Check("cells agree with their samples", _first(_miscounted(view))),
        Check("metrics follow from the matrix", _first(_stale_metrics(view))),
    ]


def _first(problems: Iterator[str]) -> str:
    return next(problems, "")


def _misfits(directory: Path) -> Iterator[str]:
    for path in sorted(directory.rglob("*.json*")):
        try:
            if path.name in _SCHEMAS:
                validate_document(read_json(path), _SCHEMAS[path.name])
            elif path.name == "samples.jsonl":
                for row in read_jsonl(path):
                    validate_document(row, "samples")
        except StoreError as error:
            yield f"{path.relative_to(directory)}: {error.why or error.what}"


def _gaps(view: RunView) -> Iterator[str]:
    """Rows that are missing before a finished one, or at all in a run that is done."""
    planned = planned_rows(view.spec)
    finished = [row in view.stages for row in planned]
    last = (
        len(planned)
        if view.status.get("state") == "done"
        else max((place for place, done in enumerate(finished, start=1) if done), default=0)
    )
    for row, done in zip(planned[:last], finished, strict=False):
        if not done:
            yield f"{row} is not finished: its {DONE} is gone; put it back, or remove the stages after it and resume"


def _rows(view: RunView) -> Iterator[str]:
    # The matrix of a run that was cut off may lag one stage behind.
    for row in view.stages if view.status.get("state") == "done" else ():
        if row not in view.matrix.rows:
            yield f"{row} is finished but not in {MATRIX}"


def _miscounted(view: RunView) -> Iterator[str]:
    for row in set(view.stages) & set(view.matrix.rows):
        for column in view.matrix.columns:
            value = view.matrix.value(row, column.name)
            if value is None:
                continue
            verdicts = [sample["correct"] for sample in view.samples(row, column.name)]
            scored = [verdict for verdict in verdicts if verdict is not None]
            # A metric that is no share of right answers leaves no verdicts.
            if scored and abs(sum(scored) / len(scored) - value) > _TOLERANCE:
                yield f"{row}/{column.name}: {MATRIX} says {value}, the samples {sum(scored)} of {len(scored)}"


def _stale_metrics(view: RunView) -> Iterator[str]:
    if view.metrics and view.metrics != run_metrics(view.matrix, learned_columns(view.spec)):
        yield f"{METRICS} is not what the matrix gives"
