"""Turns rows of the corpora into chats, as their column maps say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cl_bench.harness.errors import DataError
from cl_bench.harness.jsonl import value_at
from cl_bench.tasks.base import Message
from cl_bench.tasks.corpora.entries import AnswerSource, Corpus
from cl_bench.tasks.scoring.choice import LETTERS
from cl_bench.tasks.scoring.reading import last_boxed
from cl_bench.tasks.sources.mathematics import without_calculator_marks, without_thousands_commas
from cl_bench.tasks.sources.reading import DroppedRowError, lettered

Chat = tuple[tuple[Message, ...], str, str | None]
"""Prompt, whose last turn is the user's; demonstration; final answer or None."""

_ROLES = frozenset({"system", "user", "assistant"})


def to_messages(corpus: Corpus, row: Mapping[str, Any]) -> Chat:
    """A row as prompt, demonstration and final answer.

    Args:
        corpus: Whose row it is.
        row: The row.

    Raises:
        DroppedRowError: The row has no question, no demonstration, or no right option.
        DataError: A column is absent or holds something else than the map expects.
    """
    columns = corpus.columns
    if columns.choices:
        return _choice(corpus, row)
    if columns.messages is not None:
        prompt, demonstration = _turns(corpus, row, columns.messages)
    else:
        prompt = ({"role": "user", "content": _joined(corpus, row, columns.question, "question")},)
        demonstration = _joined(corpus, row, columns.response, "demonstration")
    answer = _answer(corpus, row, columns.answer, demonstration)
    if columns.strip == "calculator-marks":
        demonstration = without_calculator_marks(demonstration)
    return prompt, demonstration, answer


def _choice(corpus: Corpus, row: Mapping[str, Any]) -> Chat:
    columns = corpus.columns
    question = _joined(corpus, row, columns.question, "question")
    values = [_value(corpus, row, name) for name in columns.choices]
    if len(values) == 1 and isinstance(values[0], list):
        values = values[0]
    options = [str(value) for value in values]
    letters = LETTERS[: len(options)]
    assert columns.answer is not None
    if columns.answer.index is not None:
        index = _value(corpus, row, columns.answer.index)
        letter = letters[index] if isinstance(index, int) and 0 <= index < len(options) else ""
    else:
        letter = str(_value(corpus, row, str(columns.answer.letter))).strip()
    if letter not in tuple(letters):
        raise DroppedRowError("no right option")
    reasoning = [_text(corpus, row, name) for name in columns.response]
    conclusion = f"The answer is {letter}: {options[letters.index(letter)]}"
    demonstration = "\n\n".join(filter(None, (*reasoning, conclusion)))
    return ({"role": "user", "content": lettered(question, options)},), demonstration, letter


def _turns(corpus: Corpus, row: Mapping[str, Any], column: str) -> tuple[tuple[Message, ...], str]:
    value = _value(corpus, row, column)
    if not isinstance(value, list) or not all(isinstance(turn, Mapping) for turn in value):
        raise _other_form(corpus, column, "a list of chat turns", value)
    turns = [{"role": str(turn.get("role")), "content": turn.get("content")} for turn in value]
    for turn in turns:
        if turn["role"] not in _ROLES or not isinstance(turn["content"], str):
            raise _other_form(corpus, column, "turns with `role` and `content`", turn)
    answers = [index for index, turn in enumerate(turns) if turn["role"] == "assistant"]
    if not answers or not str(turns[answers[-1]]["content"]).strip():
        raise DroppedRowError("no demonstration")
    prompt = tuple({"role": str(turn["role"]), "content": str(turn["content"])} for turn in turns[: answers[-1]])
    if not prompt or prompt[-1]["role"] != "user" or not prompt[-1]["content"].strip():
        raise DroppedRowError("no question")
    return prompt, str(turns[answers[-1]]["content"]).strip()


def _answer(corpus: Corpus, row: Mapping[str, Any], source: AnswerSource | None, demonstration: str) -> str | None:
    if source is None:
        return None
    if source.column is not None:
        found = _text(corpus, row, source.column)
    elif source.after is not None:
        found = demonstration.rpartition(source.after)[2] if source.after in demonstration else ""
        found = without_thousands_commas(found.strip().partition("\n")[0])
    else:
        found = last_boxed(demonstration) or ""
    return found.strip() or None


def _joined(corpus: Corpus, row: Mapping[str, Any], names: tuple[str, ...], what: str) -> str:
    text = "\n\n".join(filter(None, (_text(corpus, row, name) for name in names)))
    if not text:
        raise DroppedRowError(f"no {what}")
    return text


def _text(corpus: Corpus, row: Mapping[str, Any], name: str) -> str:
    value = _value(corpus, row, name)
    if value is None:
        return ""
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        raise _other_form(corpus, name, "text", value)
    return str(value).strip()


def _value(corpus: Corpus, row: Mapping[str, Any], name: str) -> Any:
    try:
        return value_at(row, name)
    except KeyError as error:
        raise DataError(
            f"the corpus {corpus.path} has no column `{name}`",
            f"a row has {', '.join(map(str, row))}",
            f"correct its columns in the registry; they are {corpus.columns_status}",
        ) from error


def _other_form(corpus: Corpus, name: str, expected: str, value: Any) -> DataError:
    return DataError(
        f"the corpus {corpus.path}, column `{name}`: not {expected}",
        f"it holds {value!r:.80}",
        f"correct its columns in the registry; they are {corpus.columns_status}",
    )
