"""Finished runs made of a few small documents, in all the ways in which runs that are compared can differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cl_bench.harness.measure.matrix import Cell, Column, Matrix
from cl_bench.harness.measure.run_metrics import run_metrics
from cl_bench.harness.planned_stages import learned_columns
from cl_bench.harness.spec import RunSpec
from cl_bench.harness.store import State, Store
from cl_bench.methods.base import Adaptation

Values = Mapping[str, Sequence[float | None]]
TASKS = ("chemistry", "biology")
RETENTION = ("reading", "sums")
VALUES: Values = {
    "base": (0.2, 0.3, 0.6, 0.8),
    "chemistry": (0.9, 0.3, 0.5, 0.7),
    "biology": (0.7, 0.8, 0.4, 0.6),
}
"""A column for each task, then for each retention benchmark."""
VERSIONS = {"torch": "2.13.0", "transformers": "5.24.0", "lm_eval": "0.4.13"}
Change = Callable[[dict[str, Any]], None]


def spec_of(method: str = "sft", seed: int = 0, stages: Sequence[str] = TASKS, **changes: Any) -> RunSpec:
    """A spec; ``changes`` replace its fields, ``settings`` the method's, ``a__b`` a field inside a field."""
    bound = "base" if method == "base" else "joint" if method.startswith("joint-") else None
    settings = changes.pop("settings", {"learning_rate": 1e-3})
    content: dict[str, Any] = {
        "profile": "lab",
        "recipe": "lab",
        "lab_version": 1,
        "method": None if bound == "base" else {"name": method.removeprefix("joint-"), "settings": settings},
        "bound": bound,
        "sequence": {"name": "+".join(stages), "stages": [{"task": task, "name": task} for task in stages]},
        "data": {"source": "lab"},
        "tasks": [{"name": task, "identity": {"version": "1"}} for task in stages],
        "suite": {"name": "lab", "tier": "fast"},
        "evaluation": {},
        "precision": {},
        "model": {"name": "lab-m", "fingerprint": "ab" * 32},
        "seed": seed,
    }
    for name, value in changes.items():
        place, inner = content, name.split("__")
        for step in inner[:-1]:
            place = place[step]
        place[inner[-1]] = value
    return RunSpec.model_validate(content)


def make_run(
    output: Path,
    method: str = "sft",
    seed: int = 0,
    values: Values = VALUES,
    shifts: Mapping[str, float | None] | None = None,
    *,
    stages: Sequence[str] = TASKS,
    state: State = "done",
    versions: Mapping[str, str] = VERSIONS,
    device: str = "cpu",
    steps: int = 10,
    samples: int = 0,
    **changes: Any,
) -> Path:
    """Write a run directory; rows of ``values`` are its finished rows, all cells have 100 items."""
    spec = spec_of(method, seed, stages, **changes)
    store = Store.open(output, spec)
    matrix = _matrix(spec, values)
    for index, row in enumerate(["base", *learned_columns(spec)]):
        if row in values and (row == "base" or state == "done" or any(v is not None for v in values[row])):
            _write_row(store, index, row, (shifts or {}).get(row, 0.1 * index), steps, samples)
    store.write_json("matrix.json", matrix.to_json(), schema="matrix")
    store.write_json("metrics.json", run_metrics(matrix, learned_columns(spec)), schema="metrics")
    store.write_manifest({"schema_version": 1, "sessions": [_session(spec, state, versions, device)]})
    store.status(state, **({"reason": "the loss is nan"} if state == "diverged" else {}))
    return store.directory


def _matrix(spec: RunSpec, values: Values) -> Matrix:
    columns = [Column(task.name, "sequence", 0.25, 100, "accuracy") for task in spec.tasks]
    columns += [Column(name, "retention", 0.25, 100, "acc") for name in RETENTION]
    matrix = Matrix(columns)
    for row, numbers in values.items():
        matrix.add_row(row)
        for column, value in zip(columns, numbers, strict=True):
            cell = Cell(None, "diverged") if value is None else Cell(value, counts={"n": 100})
            matrix.set(row, column.name, cell)
    return matrix


def _write_row(store: Store, index: int, row: str, shift: float | None, steps: int, samples: int) -> None:
    folder = store.stage_dir(index, row)
    if index:
        adaptation = Adaptation(steps=steps, trained_tokens=100, flops={"train": 3e12, "data_generation": 1e12})
        document = {"schema_version": 1, **asdict(adaptation), "seconds": 1.5}
        store.write_json(folder / "adaptation.json", document, schema="adaptation")
        store.write_json(folder / "shift.json", shift_document(shift), schema="shift")
    for column in (*(task.name for task in store.spec.tasks), *RETENTION):
        store.write_jsonl(folder / "eval" / column / "samples.jsonl", map(_sample, range(samples)))
    store.finish_stage(index, row)


def _sample(number: int) -> dict[str, Any]:
    return {
        "task": "t",
        "id": str(number),
        "prompt_hash": "h",
        "response": "x" * 40,
        "correct": number % 2 == 0,
        "parsed": "x",
        "format_ok": True,
        "tokens": 8,
        "ended": "eos",
    }


def shift_document(value: float | None) -> dict[str, Any]:
    """A ``shift.json`` of its primary record."""
    record: dict[str, Any] = {
        "measure": "forward_kl",
        "against": "base",
        "prompts": "new task",
        "contexts": "the untouched model's answers",
        "reduction": "token mean",
        "unit": "nats per token",
        "n": 10,
        "value": value,
    }
    if value is None:
        record["reason"] = "no dev row is left to ask"
    return {"schema_version": 2, "forward_kl_trained": value, "primary": record, "measures": [record]}


def _session(spec: RunSpec, state: State, versions: Mapping[str, str], device: str) -> dict[str, Any]:
    phases = {f"{row}/adapt": 2.0 for row in learned_columns(spec)}
    return {
        "started": "2026-01-01T00:00:00+00:00",
        "ended": "2026-01-01T00:01:00+00:00",
        "state": state,
        "seconds": 60.0,
        "phase_seconds": {"base/evaluate": 5.0, **phases},
        "peak_memory_bytes": 2**30,
        "execution": {"device": device},
        "environment": {
            "python": "3.11",
            "platform": "linux",
            "machine": "x86_64",
            "threads": 1,
            "packages": dict(versions),
        },
    }
