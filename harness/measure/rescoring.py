"""Scores of texts without any model: predictions from elsewhere, and a run's own recorded responses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cl_bench.harness.errors import DataError
from cl_bench.harness.jsonl import read_jsonl
from cl_bench.tasks.base import Example, Score, Task

NOT_SHOWN = "no prediction"


@dataclass(frozen=True, slots=True)
class Scored:
    """Predictions of one task, scored.

    Attributes:
        task: Name of the task.
        rows: Score by id, in the task's order; None where there was no prediction, which counts as wrong.
    """

    task: str
    rows: Mapping[str, Score | None]

    @property
    def missing(self) -> list[str]:
        """Ids without a prediction."""
        return [name for name, score in self.rows.items() if score is None]

    def counts(self) -> dict[str, int]:
        """``n, correct, parsed, format_ok``, all counts."""
        scores = [score for score in self.rows.values() if score is not None]
        return {
            "n": len(self.rows),
            "correct": sum(score.correct for score in scores),
            "parsed": sum(score.parsed is not None for score in scores),
            "format_ok": sum(score.format_ok for score in scores),
        }

    def documents(self) -> Iterator[dict[str, Any]]:
        """One JSON row an id: ``id, correct, parsed, format_ok``, and ``reason`` where something is to be said."""
        for name, score in self.rows.items():
            if score is None:
                yield {"id": name, "correct": False, "parsed": None, "format_ok": False, "reason": NOT_SHOWN}
                continue
            row = {"id": name, "correct": score.correct, "parsed": score.parsed, "format_ok": score.format_ok}
            yield row | ({"reason": score.unreliable} if score.unreliable else {})


def read_predictions(path: Path) -> dict[str, str]:
    """Texts by id from a JSONL file of rows ``{"id", "text"}``.

    Raises:
        DataError: The file cannot be read, a row is broken, or an id comes twice; file, line and field are named.
    """
    return {row["id"]: row["text"] for row in read_jsonl(path, {"id": "str", "text": "str"})}


def score_predictions(task: Task, predictions: Mapping[str, str], rows: Sequence[Example]) -> Scored:
    """Score predictions of a task's rows.

    Args:
        task: The task.
        predictions: Texts by id.
        rows: The rows that should have one; a row without counts as wrong.

    Raises:
        DataError: A prediction's id is no row of these.
    """
    known = {example.id for example in rows}
    unknown = [name for name in predictions if name not in known]
    if unknown:
        shown = ", ".join(repr(name) for name in unknown[:5])
        raise DataError(
            f"{len(unknown)} predictions are for rows that {task.name} does not have: {shown}",
            why=f"it has {len(known)} rows, such as {next(iter(known), None)!r}",
            hint="check --task and --data-root, and that ids are those of the rows",
        )
    scores: dict[str, Score | None] = {}
    for example in rows:
        text = predictions.get(example.id)
        scores[example.id] = None if text is None else task.score(example, text)
    return Scored(task.name, scores)
