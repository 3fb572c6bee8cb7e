"""A method that cannot train on a task is refused before anything is spent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import pytest

from cl_bench.harness.errors import DataError, UsageError
from cl_bench.harness.needs import check_needs
from cl_bench.methods.base import Need
from cl_bench.methods.sft import SFT
from cl_bench.tasks.base import Example, Score, Task
from tests.support import toy_examples, toy_score


class Rows(Task):
    """A task of given training rows."""

    name = "rows"

    def __init__(self, rows: Sequence[Example]) -> None:
        self._rows = rows

    def train(self) -> Sequence[Example]:
        return self._rows

    dev = test = train

    def score(self, example: Example, text: str) -> Score:
        return toy_score(example, text)


class Extracting(SFT):
    """A method that reads answers."""

    needs: ClassVar[frozenset[Need]] = frozenset({Need.ANSWER_EXTRACTION})


def test_rows_without_what_is_needed_are_refused() -> None:
    rows = toy_examples(3)
    check_needs(SFT, {"rows": Rows(rows)})
    bare = [replace(row, demonstration=None) for row in rows]
    check_needs(SFT, {"rows": Rows([*bare, rows[0]])})
    with pytest.raises(UsageError, match="sft cannot train on stage rows"):
        check_needs(SFT, {"other": Rows(rows), "rows": Rows(bare)})
    check_needs(Extracting, {"rows": Rows(bare)})
    with pytest.raises(UsageError, match="cannot train on stage rows"):
        check_needs(Extracting, {"rows": Rows([replace(row, answer=None) for row in rows])})


class Unscored(Rows):
    """A task whose scorer finds nothing right and reads no answer."""

    def score(self, example: Example, text: str) -> Score:
        return Score(False, None, False)


NEEDS = {
    Need.DEMONSTRATIONS: Rows([replace(row, demonstration=None) for row in toy_examples(3)]),
    Need.REWARD: Unscored(toy_examples(3)),
    Need.ANSWER_EXTRACTION: Unscored(toy_examples(3)),
}


@pytest.mark.parametrize("need", NEEDS)
def test_the_stage_and_the_need_are_named(need: Need) -> None:
    class Demanding(SFT):
        name: ClassVar[str] = "demanding"
        needs: ClassVar[frozenset[Need]] = frozenset({need})

    check_needs(Demanding, {"first": Rows(toy_examples(3))})
    with pytest.raises(UsageError, match="demanding cannot train on stage second") as caught:
        check_needs(Demanding, {"first": Rows(toy_examples(3)), "second": NEEDS[need]})
    assert caught.value.exit_code == 2
    assert f"it needs {need.value}" in caught.value.why


def test_a_reward_may_come_from_what_a_row_holds_beside_gold() -> None:
    class Rewarded(SFT):
        needs: ClassVar[frozenset[Need]] = frozenset({Need.REWARD})

    bare = [replace(row, demonstration=None, answer=None, meta={"words": 3}) for row in toy_examples(2)]
    check_needs(Rewarded, {"stage": Rows(bare)})
    with pytest.raises(UsageError, match="cannot train on stage stage"):
        check_needs(Rewarded, {"stage": Rows([replace(row, meta={}) for row in bare])})


def test_task_without_training_rows_is_refused() -> None:
    with pytest.raises(DataError, match="no training row"):
        check_needs(SFT, {"rows": Rows(())})
