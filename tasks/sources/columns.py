"""Reader of any data set whose columns a task file names."""

from __future__ import annotations

from cl_bench.tasks.base import Example
from cl_bench.tasks.scoring.options import LETTERS
from cl_bench.tasks.sources.reading import DroppedRowError, Reading, Row, lettered, row_id, worked_answer


def read_columns(row: Row, reading: Reading) -> Example:
    """A row whose question, answer, demonstration and choices are in the columns that ``reading.columns`` names.

    A gold answer to choices is a letter or the text of an option.
    """
    columns = reading.columns
    question, answer = str(row[columns["question"]]), str(row[columns["answer"]])
    options = [str(option) for option in row[columns["choices"]]] if "choices" in columns else None
    if options is not None and answer not in tuple(LETTERS[: len(options)]):
        if answer not in options:
            raise DroppedRowError("gold answer without an option")
        answer = LETTERS[options.index(answer)]
    return Example(
        task=reading.task,
        id=row_id(row, question, options),
        messages=reading.chat(question if options is None else lettered(question, options)),
        demonstration=worked_answer(row, columns["demonstration"]) if "demonstration" in columns else None,
        answer=answer,
        choices=None if options is None else tuple(options),
        meta={"question": question},
    )
