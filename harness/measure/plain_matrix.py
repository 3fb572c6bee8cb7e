"""A run's matrix from plain lists of scores, as another program has them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from cl_bench.harness.measure.matrix import BASE_ROW, UNMEASURED, Cell, Column, Matrix

Row = Sequence[float | None]


@dataclass(frozen=True, slots=True)
class PlainMatrix:
    """A matrix and what each of its stages trained on.

    Attributes:
        matrix: Rows ``base`` and one a stage, named by what it trained on (``a``, ``a-2`` where that comes again).
        learned: Columns trained on by stage.
    """

    matrix: Matrix
    learned: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(
        cls,
        scores: Sequence[Row],
        tasks: Sequence[str],
        base: Row | None = None,
        learned: Sequence[str | Sequence[str]] | None = None,
        *,
        chance: Mapping[str, float] | None = None,
        items: Mapping[str, int] | None = None,
        retention: Mapping[str, Row] | None = None,
        retention_items: Mapping[str, int] | None = None,
    ) -> PlainMatrix:
        """Build the matrix.

        Args:
            scores: One row a stage, one score a task; None where it was not measured.
            tasks: Names of the tasks.
            base: The untouched model's row; None: not evaluated.
            learned: What each stage trained on; None: stage i on task i.
            chance: Score of guessing by task or benchmark; 0 for the others.
            items: Number of items by task.
            retention: By benchmark: the untouched model's score and that after each stage.
            retention_items: Number of items by benchmark.

        Raises:
            ValueError: Rows, tasks and stages do not fit together.
        """
        benchmarks = dict(retention or {})
        stages = _stages(scores, tasks, learned)
        _check_lengths(scores, tasks, base, benchmarks)
        counts = {**(items or {}), **(retention_items or {})}
        kinds = [(name, "sequence") for name in tasks] + [(name, "retention") for name in benchmarks]
        matrix = Matrix(
            Column(name, "sequence" if kind == "sequence" else "retention", (chance or {}).get(name, 0.0),
                   counts.get(name, 0), "score")
            for name, kind in kinds
        )  # fmt: skip
        for place, (row, values) in enumerate(zip((BASE_ROW, *stages), (base, *scores), strict=True)):
            if values is None and not benchmarks:
                continue
            matrix.add_row(row)
            found = dict(zip(tasks, values if values is not None else [None] * len(tasks), strict=True))
            found.update((name, row_values[place]) for name, row_values in benchmarks.items())
            for name, value in found.items():
                n = {"n": counts[name]} if name in counts else {}
                matrix.set(row, name, Cell(value, UNMEASURED if value is None else "", n))
        return cls(matrix, stages)


def _stages(
    scores: Sequence[Row], tasks: Sequence[str], learned: Sequence[str | Sequence[str]] | None
) -> dict[str, tuple[str, ...]]:
    given = tasks[: len(scores)] if learned is None else learned
    if len(given) != len(scores):
        raise ValueError(f"{len(scores)} rows need what each stage trained on, not {len(given)} of them")
    stages: dict[str, tuple[str, ...]] = {}
    for one in given:
        trained = (one,) if isinstance(one, str) else tuple(one)
        stages[_free("+".join(trained), {BASE_ROW, *stages})] = trained
    return stages


def _free(name: str, taken: Collection[str]) -> str:
    """The name, or with the first number from 2 on that makes it one of its own."""
    return next(one for number in count(1) if (one := name if number == 1 else f"{name}-{number}") not in taken)


def _check_lengths(
    scores: Sequence[Row], tasks: Sequence[str], base: Row | None, benchmarks: Mapping[str, Row]
) -> None:
    wrong = [len(row) for row in (*scores, *([] if base is None else [base])) if len(row) != len(tasks)]
    if wrong:
        raise ValueError(f"every row holds one score for each of the {len(tasks)} tasks, not {wrong[0]}")
    for name, values in benchmarks.items():
        if len(values) != len(scores) + 1:
            raise ValueError(f"{name} needs the untouched model's score and one a stage, not {len(values)} in all")
