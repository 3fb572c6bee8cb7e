"""Readers of SciKnowEval: rows of level L3, one reader for each type of question.

A row's own worked answer (column ``golden_response`` as in SDFT's files, or the one that ``columns.demonstration``
names) is its demonstration, provided that the scorer finds the gold answer in it; other rows get the bare gold answer
in the form that the prompt asks for. Rows without ``id``, as on the hub, are named by a hash of question and options
(``tasks.sources.gold_ids``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from cl_bench.harness.jsonl import value_at
from cl_bench.tasks.base import Example, Score
from cl_bench.tasks.scoring.choice import score_choice
from cl_bench.tasks.scoring.options import LETTERS
from cl_bench.tasks.sources.reading import (
    DroppedRowError,
    OtherKindError,
    Reader,
    Reading,
    Row,
    choice_demonstration,
    lettered,
    row_id,
    tagged,
    worked_answer,
)

LEVEL = "L3"
_WORKED = "golden_response"
_WRONG_WORKED = "worked answer without the gold answer; the bare gold answer stands in for it"
_COMMON = {"question": "str", "type": "str or list", "details": "dict"}
_CHOICE_FIELDS = {**_COMMON, "choices": "dict", "choices.text": "list", "answerKey": "str"}
_ANSWER_FIELDS = {**_COMMON, "answer": "str"}


def choice_reader(kind: str, options: int, what: str) -> Reader:
    """Reader of multiple-choice rows.

    Args:
        kind: The rows' ``type``.
        options: Number of options.
        what: Name of the type for people.
    """

    def read(row: Row, reading: Reading) -> Example:
        _check_kind(row, kind, what)
        texts = ["" if text is None else str(text) for text in row["choices"]["text"]]
        letter = _gold_letter(row, texts, options)
        example = Example(
            task=reading.task,
            id=row_id(row, row["question"], texts),
            messages=reading.chat(lettered(row["question"], texts)),
            demonstration=choice_demonstration(letter, texts[LETTERS.index(letter)]),
            answer=letter,
            choices=tuple(texts),
            meta=_meta(row),
        )
        return _demonstrated(example, row, reading, score_choice)

    return Reader(read, score_choice, _CHOICE_FIELDS)


def answer_reader(kind: str, what: str, score: Callable[[Example, str], Score]) -> Reader:
    """Reader of rows whose gold answer is a text; arguments as for ``choice_reader``, and the scorer."""

    def read(row: Row, reading: Reading) -> Example:
        _check_kind(row, kind, what)
        answer = row["answer"].strip()
        if not answer:
            raise DroppedRowError("no gold answer")
        example = Example(
            task=reading.task,
            id=row_id(row, row["question"]),
            messages=reading.chat(row["question"]),
            demonstration=tagged(f"The answer is {answer}", answer),
            answer=answer,
            meta=_meta(row),
        )
        return _demonstrated(example, row, reading, score)

    return Reader(read, score, _ANSWER_FIELDS)


def check_subject(row: Row, configs: Collection[str]) -> None:
    """Refuse a row of a subject (``domain``) that was not asked for; a row that does not say is taken.

    Args:
        row: The row.
        configs: The configurations asked for, which are called after their subjects.

    Raises:
        OtherKindError: It is of another subject.
    """
    domain = row.get("domain")
    if domain and str(domain).lower() not in {config.lower() for config in configs}:
        raise OtherKindError(f"other subject than {' and '.join(configs)}")


def _check_kind(row: Row, kind: str, what: str) -> None:
    kinds = row["type"] if isinstance(row["type"], list) else [row["type"]]
    if row["details"].get("level") != LEVEL:
        raise OtherKindError(f"other level than {LEVEL}")
    if kind not in kinds:
        raise OtherKindError(f"other type than {what}")


def _gold_letter(row: Row, options: Sequence[str], count: int) -> str:
    """Letter of the right option by its place; the row's own labels say which place its key means."""
    if len(options) != count:
        raise DroppedRowError(f"not {count} options")
    if not all(option.strip() for option in options):
        raise DroppedRowError("option without text")
    if len(set(options)) < len(options):
        raise DroppedRowError("two equal options")
    labels = _labels(row["choices"].get("label"), count)
    key = str(row["answerKey"]).strip()
    if key not in labels:
        raise DroppedRowError("gold letter without an option")
    return LETTERS[labels.index(key)]


def _labels(published: object, count: int) -> list[str]:
    """Labels of the options in their order: the first letters or numbers, each once; letters where there are none.

    Raises:
        DroppedRowError: The row has others, so that nothing says which label belongs to which option.
    """
    letters = list(LETTERS[:count])
    if published is None or published == []:
        return letters
    labels = [str(label).strip() for label in published] if isinstance(published, list) else []
    known = (letters, [letter.lower() for letter in letters], *(_numbers(first, count) for first in (0, 1)))
    if sorted(labels) not in known:
        raise DroppedRowError("labels that do not fit the options")
    return labels


def _numbers(first: int, count: int) -> list[str]:
    return sorted(str(number) for number in range(first, first + count))


def _meta(row: Row) -> dict[str, str]:
    return {"question": row["question"], "subtask": str(row["details"].get("subtask", ""))}


def _demonstrated(example: Example, row: Row, reading: Reading, score: Callable[[Example, str], Score]) -> Example:
    worked = _own_worked(row, reading.columns.get("demonstration", _WORKED))
    if worked is None:
        return example
    if not score(example, worked).correct:
        reading.remarks[_WRONG_WORKED] += 1
        return example
    return replace(example, demonstration=worked)


def _own_worked(row: Row, column: str) -> str | None:
    try:
        return worked_answer({column: value_at(row, column)}, column)
    except KeyError:
        return None
