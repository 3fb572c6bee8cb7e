"""Run directories with planted outcomes of items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cl_bench.harness.measure.matrix import Cell, Column, Matrix
from cl_bench.harness.spec import ComponentSpec, DataSpec, ModelSpec, RunSpec, SequenceSpec, StageSpec, TaskSpec
from cl_bench.harness.store import Store

Sample = dict[str, Any]


def sample(name: object, correct: bool | None, **changes: Any) -> Sample:
    """A row of samples.jsonl; an answer that was read and ended unless the changes say otherwise."""
    return {
        "task": "t",
        "id": str(name),
        "prompt_hash": f"prompt {name}",
        "response": f"said {correct}",
        "correct": correct,
        "parsed": "x",
        "format_ok": True,
        "tokens": 3,
        "ended": "eos",
    } | changes


def samples(pattern: str, **changes: Any) -> list[Sample]:
    """Rows from a pattern of verdicts: ``1`` right, ``0`` wrong."""
    return [sample(number, verdict == "1", **changes) for number, verdict in enumerate(pattern)]


def column(name: str, kind: Any = "sequence", chance: float = 0.0) -> Column:
    return Column(name, kind, chance, 10, "accuracy")


def run_spec(stages: Sequence[tuple[str, str]], seed: int = 0, recipe: str = "lab") -> RunSpec:
    """A specification with stages of (row, task)."""
    return RunSpec(
        profile="lab",
        recipe=recipe,
        method=ComponentSpec(name="sft"),
        sequence=SequenceSpec(name="made", stages=tuple(StageSpec(name=row, task=task) for row, task in stages)),
        data=DataSpec(source="lab"),
        tasks=tuple(TaskSpec(name=task) for task in dict.fromkeys(task for _, task in stages)),
        model=ModelSpec(name="lab-s", fingerprint="ab" * 32),
        seed=seed,
    )


def write_run(
    output: Path,
    columns: Sequence[Column],
    rows: Mapping[str, Mapping[str, Sequence[Sample] | str]],
    spec: RunSpec | None = None,
    unfinished: Sequence[str] = (),
) -> Path:
    """A run directory.

    Args:
        output: Folder.
        columns: Of the matrix.
        rows: Samples by row (``base`` first) and column; a text is the reason why there are none.
        spec: By default one with a stage of each row's own name.
        unfinished: Planned rows that have no finished stage.
    """
    spec = spec or run_spec([(row, row) for row in rows if row != "base"])
    store, matrix = Store.open(output, spec), Matrix(columns)
    for index, (row, cells) in enumerate(rows.items()):
        matrix.add_row(row)
        for one in columns:
            found = cells[one.name]
            if isinstance(found, str):
                matrix.set(row, one.name, Cell(None, found))
                found = []
            else:
                right = [bool(item["correct"]) for item in found]
                matrix.set(row, one.name, Cell(sum(right) / len(right)))
            if row not in unfinished:
                store.write_jsonl(store.stage_dir(index, row) / "eval" / one.name / "samples.jsonl", found)
        if row not in unfinished:
            store.finish_stage(index, row)
    store.write_json("matrix.json", matrix.to_json(), schema="matrix")
    store.status("done")
    return store.directory
