"""A finished run made of a few small documents."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cl_bench.harness.manifest import ManifestRecorder
from cl_bench.harness.measure.matrix import Cell, Column, Matrix
from cl_bench.harness.measure.run_metrics import run_metrics
from cl_bench.harness.planned_stages import learned_columns
from cl_bench.harness.spec import (
    ComponentSpec,
    DataSpec,
    Execution,
    ModelSpec,
    RunSpec,
    SequenceSpec,
    StageSpec,
    SuiteSpec,
    TaskSpec,
)
from cl_bench.harness.store import Store
from cl_bench.methods.base import Adaptation

TASKS = ("chemistry", "biology")
RunMaker = Callable[..., Path]
VALUES: dict[str, tuple[float | None, ...]] = {
    "base": (0.2, 0.3, 0.1, 0.8, None),
    "chemistry": (0.9, 0.35, 0.2, 0.7, None),
    "biology": (0.7, 0.8, 0.15, 0.75, None),
}


def make_spec(seed: int, recipe: str, bound: str | None = None) -> RunSpec:
    return RunSpec(
        profile="lab",
        recipe=recipe,
        lab_version=1,
        method=None
        if bound == "base"
        else ComponentSpec(name="synthself", settings={"template": "a|b\nc", "epochs": 2}),
        bound="base" if bound == "base" else None,
        sequence=SequenceSpec(name="science", stages=tuple(StageSpec(task=task, name=task) for task in TASKS)),
        data=DataSpec(source="lab"),
        tasks=tuple(TaskSpec(name=task) for task in TASKS),
        suite=SuiteSpec(name="lab", tier="fast"),
        model=ModelSpec(name="lab-m", fingerprint="ab" * 32),
        aligner=ModelSpec(name="lab-l", fingerprint="cd" * 32),
        seed=seed,
        limit=8,
    )


def make_matrix(rows: dict[str, tuple[float | None, ...]], added: float = 0.0) -> Matrix:
    columns = [Column(task, "sequence", 0.25, 100, "accuracy") for task in TASKS]
    columns.append(Column("chemistry-ood", "ood", 0.0, 50, "accuracy"))
    columns += [Column(name, "retention", 0.5, 50, "acc") for name in ("piqa", "gsm8k")]
    matrix = Matrix(columns)
    for row, values in rows.items():
        matrix.add_row(row)
        for column, value in zip(columns, values, strict=True):
            cell = (
                Cell(None, "data absent")
                if value is None
                else Cell(value + added, counts={"n": 20, "strict": 5, "skipped": 0})
            )
            matrix.set(row, column.name, cell)
    return matrix


def make_run(
    output: Path,
    seed: int = 0,
    recipe: str = "lab",
    values: dict[str, tuple[float | None, ...]] = VALUES,
    added: float = 0.0,
    bound: str | None = None,
) -> Path:
    spec = make_spec(seed, recipe, bound)
    store = Store.open(output, spec)
    matrix = make_matrix(values, added)
    manifest = ManifestRecorder(store, Execution())
    with manifest.phase("chemistry/adapt"):
        for index, row in enumerate(values):
            if row != "base":
                adaptation = Adaptation(
                    steps=12,
                    trained_tokens=34_567,
                    generated_tokens={"aligner": 2_000_000},
                    flops={"train": 3e12, "data_generation": 1e12},
                    data_generation={"first_sample_accuracy": 0.975, "candidates": 4.0},
                    rejected={"wrong_answer": 3},
                    warnings=["nearly all rows were rejected"] if row == "biology" else [],
                )
                folder = store.stage_dir(index, row)
                document = {"schema_version": 1, **_fields(adaptation), "seconds": 1.25}
                store.write_json(folder / "adaptation.json", document, schema="adaptation")
                store.write_json(folder / "shift.json", shift_document(row), schema="shift")
            for column in matrix.columns:
                _write_cell(store, store.stage_dir(index, row) / "eval" / column.name, matrix.value(row, column.name))
            store.finish_stage(index, row)
    store.write_json("matrix.json", matrix.to_json(), schema="matrix")
    store.write_json("metrics.json", run_metrics(matrix, learned_columns(spec)), schema="metrics")
    manifest.end("done")
    store.status("done")
    return store.directory


def shift_document(task: str, value: float | None = 0.125) -> dict[str, object]:
    """A ``shift.json`` of one record."""
    primary = {
        "measure": "forward_kl",
        "against": "base",
        "prompts": "new task",
        "contexts": "the untouched model's own answers at temperature 1",
        "reduction": "token mean",
        "unit": "nats per token",
        "n": 10,
        "value": value,
        "by": {task: value},
    }
    if value is None:
        primary["reason"] = "no dev row is left to ask"
    return {"schema_version": 2, "forward_kl_trained": value, "primary": primary, "measures": [primary]}


def _write_cell(store: Store, folder: Path, value: float | None) -> None:
    """Twenty samples that have the value as their mean; none where there is no value."""
    right = 0 if value is None else round(20 * value)
    row = {
        "task": "t",
        "prompt_hash": "h",
        "response": "x",
        "parsed": "x",
        "format_ok": True,
        "tokens": 1,
        "ended": "eos",
    }
    samples = [{**row, "id": str(i), "correct": i < right} for i in range(0 if value is None else 20)]
    store.write_jsonl(folder / "samples.jsonl", samples)
    results = {
        "results": {"t": {"acc,none": value}},
        "versions": {"t": "1"},
        "n-samples": {"t": {"original": 20, "effective": len(samples)}},
        "config": {},
        "counts": {"n": len(samples), "correct": right},
        "reason": None if value is not None else "data absent",
    }
    store.write_json(folder / "results.json", results, schema="results")


def _fields(adaptation: Adaptation) -> dict[str, object]:
    from dataclasses import asdict

    return asdict(adaptation)


@pytest.fixture
def run_maker(tmp_path: Path) -> RunMaker:
    def make(**changes: object) -> Path:
        return make_run(tmp_path, **changes)  # type: ignore[arg-type]

    return make
