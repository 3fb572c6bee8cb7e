"""Scores of texts without any model: predictions from elsewhere, and a run's own recorded responses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cl_bench.harness.errors import DataError
from cl_bench.harness.jsonl import read_jsonl
from cl_bench.tasks.base import SPLITS, Example, Score, SplitName, Task
from cl_bench.tasks.sources.base import LeavesRowsOut

NOT_SHOWN = "no prediction"
_UNSPLIT = "rows that repeat another and are in no split"
_NO_ROWS = "not of this task"


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
    """Texts by id from a JSONL file of rows ``{"id", "text"}``; a text may be any that JSON can say.

    Raises:
        DataError: The file cannot be read, a row is broken, or an id comes twice; file, line and field are named.
    """
    return {row["id"]: row["text"] for row in read_jsonl(path, {"id": "str", "text": "str"}, any_text=True)}


def score_predictions(task: Task, predictions: Mapping[str, str], split: SplitName | None = None) -> Scored:
    """Score predictions of a task's rows.

    Args:
        task: The task.
        predictions: Texts by id.
        split: The split whose rows should have one, or None for all rows of the task; a row without counts as wrong.

    Raises:
        DataError: A prediction's id is no row of these.
    """
    rows = task.split(split) if split else task.scorable()
    known = {example.id for example in rows}
    unknown = [name for name in predictions if name not in known]
    if unknown:
        raise _unknown_rows(task, unknown, len(predictions), rows, split)
    scores: dict[str, Score | None] = {}
    for example in rows:
        text = predictions.get(example.id)
        scores[example.id] = None if text is None else task.score(example, text)
    return Scored(task.name, scores)


def _unknown_rows(
    task: Task, unknown: Sequence[str], predictions: int, rows: Sequence[Example], split: SplitName | None
) -> DataError:
    """What the rows are whose ids are none of those to be scored, counted by kind."""
    elsewhere = {example.id: _UNSPLIT for example in task.scorable()} if split else {}
    elsewhere |= {example.id: f"rows of {name}" for name in SPLITS if split for example in task.split(name)}
    left_out = task.left_out if isinstance(task, LeavesRowsOut) else {}
    kinds: dict[str, list[str]] = {}
    for name in unknown:
        kind = elsewhere.get(name) or (f"left out of the task ({left_out[name]})" if name in left_out else _NO_ROWS)
        kinds.setdefault(kind, []).append(name)
    counted = [
        f"{len(names)} {'is' if len(names) == 1 else 'are'} {kind}, such as {names[0]!r}"
        for kind, names in kinds.items()
    ]
    asked = f"the {split} split of {task.name}" if split else task.name
    example = f", such as {rows[0].id!r}" if rows else ""
    hints = ["leave --split out to score all rows of the task"] if any(name in elsewhere for name in unknown) else []
    hints += (
        ["leave out the predictions for rows that are left out"] if any(name in left_out for name in unknown) else []
    )
    hints += (
        [f"cl-bench data rows {task.name} prints the ids; check --task and --data-root"] if _NO_ROWS in kinds else []
    )
    return DataError(
        f"{len(unknown)} of {predictions} predictions are for rows that {asked} does not have",
        f"{'; '.join(counted)}; {asked} has {len(rows)} rows{example}",
        "; ".join(hints),
    )
