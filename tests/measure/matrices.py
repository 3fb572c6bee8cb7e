"""Matrices for tests of metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cl_bench.harness.measure.matrix import Cell, Column, Matrix
from cl_bench.harness.measure.scores import Scores

Row = Sequence[float | None]


def make_matrix(
    rows: Mapping[str, Row],
    tasks: Sequence[str],
    retention: Sequence[str] = (),
    n: int | None = 100,
    chance: float = 0.25,
) -> Matrix:
    """Rows of scores, the tasks' first; ``n`` items a cell, or none that are known; chance of retention is 0.5."""
    matrix = Matrix(
        [Column(name, "sequence", chance, n or 0, "accuracy") for name in tasks]
        + [Column(name, "retention", 0.5, n or 0, "acc") for name in retention]
    )
    for row, values in rows.items():
        matrix.add_row(row)
        for name, value in zip((*tasks, *retention), values, strict=True):
            counts = {} if n is None or value is None else {"n": n}
            matrix.set(row, name, Cell(value, "" if value is not None else "diverged", counts))
    return matrix


def one_by_one(base: Row | None, stages: Sequence[Row], tasks: Sequence[str], n: int | None = 100) -> Scores:
    """A run that learns the tasks one after another; a square of scores and the untouched model's row."""
    rows = {**({} if base is None else {"base": base}), **dict(zip(tasks, stages, strict=True))}
    return Scores(make_matrix(rows, tasks, n=n), {task: (task,) for task in tasks})
