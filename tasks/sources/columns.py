"""Reader of any data set whose columns a task file names."""

from __future__ import annotations

from collections.abc import Sequence

from cl_bench.harness.jsonl import value_at
from cl_bench.tasks.base import Example
from cl_bench.tasks.scoring.options import LETTERS
from cl_bench.tasks.sources.reading import DroppedRowError, Reading, Row, lettered, row_id, worked_answer


def read_columns(row: Row, reading: Reading) -> Example:
    """A row whose question, answer, demonstration and choices are in the columns that ``reading.columns`` names.

    A column inside another is named ``outer.inner``. A gold answer to choices is a letter or the text of an option.
    """
    columns = reading.columns
    question, answer = (str(value_at(row, columns[what])) for what in ("question", "answer"))
    options = _options(row, columns["choices"]) if "choices" in columns else None
    if options is not None:
        answer = _gold_letter(answer, options)
    return Example(
        task=reading.task,
        id=row_id(row, question, options),
        messages=reading.chat(question if options is None else lettered(question, options)),
        demonstration=_worked(row, columns["demonstration"]) if "demonstration" in columns else None,
        answer=answer,
        choices=None if options is None else tuple(options),
        meta={"question": question},
    )


def _options(row: Row, column: str) -> list[str]:
    options = ["" if text is None else str(text) for text in value_at(row, column)]
    if not all(option.strip() for option in options):
        raise DroppedRowError("option without text")
    if len({option.strip() for option in options}) < len(options):
        raise DroppedRowError("two equal options")
    if len(options) > len(LETTERS):
        raise DroppedRowError(f"more than {len(LETTERS)} options")
    return options


def _gold_letter(answer: str, options: Sequence[str]) -> str:
    by_letter = {letter for letter in LETTERS[: len(options)] if letter == answer}
    by_text = {LETTERS[place] for place, option in enumerate(options) if option == answer}
    if not (found := by_letter | by_text):
        raise DroppedRowError("gold answer without an option")
    if len(found) > 1:
        raise DroppedRowError("gold answer that is the letter of one option and the text of another")
    return found.pop()


def _worked(row: Row, column: str) -> str | None:
    return worked_answer({column: value_at(row, column)}, column)
