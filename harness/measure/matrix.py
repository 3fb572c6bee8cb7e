"""The matrix of a run: a row per stage (the untouched model first), a column per evaluation; fractions or null."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from cl_bench.harness.errors import StoreError

MATRIX_VERSION = 1
BASE_ROW = "base"
ColumnKind = Literal["sequence", "ood", "retention"]
UNMEASURED = "not evaluated"


@dataclass(frozen=True, slots=True)
class Column:
    """One evaluation.

    Attributes:
        name: Unique name (``chemistry``, ``chemistry/ood``, a benchmark's name).
        kind: A task of the sequence, its out-of-distribution rows, or a retention benchmark.
        chance: Score of guessing, as a fraction.
        n: Number of items, at most.
        metric: Primary metric.
        baselines: Scores of answers that need no reading of the question (``cl_bench.tasks.baselines``), by name.
    """

    name: str
    kind: ColumnKind
    chance: float
    n: int
    metric: str
    baselines: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Cell:
    """One measured cell.

    Attributes:
        value: The primary metric; None where it could not be measured.
        reason: Why the value is None (required then), or a remark on a value.
        counts: ``n, correct, strict, parsed, truncated`` and whatever else was counted.
    """

    value: float | None
    reason: str = ""
    counts: Mapping[str, int | float] = field(default_factory=dict)


class Matrix:
    """Values by row and column names. A cell that was not measured is None with a reason, never a zero."""

    def __init__(self, columns: Iterable[Column]) -> None:
        """Start without rows.

        Raises:
            ValueError: Two columns share a name.
        """
        self.columns = tuple(columns)
        names = [column.name for column in self.columns]
        if len(set(names)) != len(names):
            raise ValueError(f"columns must have unique names, got {names}")
        self._cells: dict[str, dict[str, Cell]] = {}

    @property
    def rows(self) -> tuple[str, ...]:
        """Row names in order; ``base`` first."""
        return tuple(self._cells)

    def add_row(self, name: str) -> None:
        """Append a row whose cells are all unmeasured.

        Raises:
            ValueError: The row exists.
        """
        if name in self._cells:
            raise ValueError(f"row {name!r} exists; repeated tasks need names such as {name}-2")
        self._cells[name] = {column.name: Cell(None, UNMEASURED) for column in self.columns}

    def set(self, row: str, column: str, cell: Cell) -> None:
        """Record a measured cell.

        Raises:
            ValueError: A null without a reason.
            KeyError: No such row or column.
        """
        if cell.value is None and not cell.reason:
            raise ValueError(f"cell {row}/{column} is null without a reason")
        self.column(column)
        self._cells[row][column] = cell

    def column(self, name: str) -> Column:
        """The column of that name. Raises ``KeyError`` where there is none."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)

    def of_kind(self, kind: ColumnKind) -> tuple[Column, ...]:
        """Columns of one kind, in order."""
        return tuple(column for column in self.columns if column.kind == kind)

    def cell(self, row: str, column: str) -> Cell:
        """The cell. Raises ``KeyError`` for an unknown row or column."""
        return self._cells[row][column]

    def value(self, row: str, column: str) -> float | None:
        """The cell's value, or None."""
        return self.cell(row, column).value

    def to_json(self) -> dict[str, Any]:
        """The document ``matrix.json``."""
        cells = [(row, column, cell) for row, found in self._cells.items() for column, cell in found.items()]
        return {
            "schema_version": MATRIX_VERSION,
            "rows": list(self.rows),
            "columns": [asdict(column) for column in self.columns],
            "values": {row: {name: cell.value for name, cell in found.items()} for row, found in self._cells.items()},
            "reasons": {f"{row}/{column}": cell.reason for row, column, cell in cells if cell.reason},
            "counts": {
                row: {name: dict(cell.counts) for name, cell in found.items() if cell.counts}
                for row, found in self._cells.items()
            },
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Matrix:
        """Inverse of ``to_json``.

        Raises:
            StoreError: Written by another version, or damaged.
        """
        if document.get("schema_version") != MATRIX_VERSION:
            version = document.get("schema_version")
            raise StoreError(f"matrix.json has version {version}", f"this program reads version {MATRIX_VERSION}")
        try:
            matrix = cls(Column(**column) for column in document["columns"])
            for row in document["rows"]:
                matrix.add_row(row)
                for name, value in document["values"][row].items():
                    reason = document["reasons"].get(f"{row}/{name}", "")
                    matrix.set(row, name, Cell(value, reason, document["counts"].get(row, {}).get(name, {})))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise StoreError(
                "matrix.json is damaged", str(error), "remove it and resume: it is written again"
            ) from error
        return matrix
