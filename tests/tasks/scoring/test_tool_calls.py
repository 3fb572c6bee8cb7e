from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cl_bench.tasks.base import Example
from cl_bench.tasks.scoring.tool_calls import canonical, gold_calls, parse_calls, score_tool_calls

TWO = [("getTide", {"port": "Brest", "when": {"day": 1}}), ("getWind", {"port": "Lorient"})]


def text_of(calls: list[tuple[str, Any]]) -> str:
    lines = [f"Thought: next\nAction: {name}\nAction Input: {json.dumps(arguments)}" for name, arguments in calls]
    return "\n".join(lines)


def example(calls: list[tuple[str, Any]]) -> Example:
    return Example("t", "1", ({"role": "user", "content": "q"},), answer=canonical(calls))


def test_gold_scores_one_in_any_order_and_any_spacing() -> None:
    assert score_tool_calls(example(TWO), text_of(TWO)).correct
    assert score_tool_calls(example(TWO), text_of(TWO[::-1])).correct
    spaced = 'Action:  getTide \nAction Input:\n{"when": {"day": 1},\n "port": "Brest"}\nObservation: Action: other'
    assert score_tool_calls(example(TWO[:1]), spaced).correct


@pytest.mark.parametrize(
    "wrong",
    [
        # The inputs of two calls swapped: a scorer that merges all arguments does not see it.
        [("getTide", TWO[1][1]), ("getWind", TWO[0][1])],
        TWO[:1],
        [*TWO, TWO[1]],
        [("getTide", {"port": "Brest", "when": {"day": 2}}), TWO[1]],
        [("getTide", {"port": "Brest", "when": {"day": "1"}}), TWO[1]],
        [("gettide", TWO[0][1]), TWO[1]],
    ],
)
def test_other_calls_are_wrong(wrong: list[tuple[str, Any]]) -> None:
    score = score_tool_calls(example(TWO), text_of(wrong))
    assert not score.correct and score.format_ok


def test_names_need_not_be_words() -> None:
    calls = [("[Optional]updateUserProfile", {"id": 1})]
    assert score_tool_calls(example(calls), text_of(calls)).correct


def test_unreadable_input_is_no_call_of_gold_and_bad_form() -> None:
    score = score_tool_calls(example(TWO[:1]), 'Action: getTide\nAction Input: {"port": "Brest"')
    assert not score.correct and not score.format_ok and score.parsed is not None
    missing = score_tool_calls(example(TWO[:1]), "Action: getTide")
    assert not missing.correct and not missing.format_ok
    none = score_tool_calls(example(TWO[:1]), "I do not know")
    assert (none.correct, none.parsed, none.format_ok) == (False, None, False)


def test_an_input_is_never_borrowed_from_the_next_action() -> None:
    text = 'Action: getTide\nAction: getWind\nAction Input: {"port": "Lorient"}'
    assert parse_calls(text) == [("getTide", None), ("getWind", {"port": "Lorient"})]


def test_gold_must_be_json() -> None:
    with pytest.raises(ValueError):
        gold_calls([{"Action": "a", "Action_Input": "{'port': 1}"}])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=5), children, max_size=3),
    max_leaves=8,
)


@given(
    st.lists(st.tuples(st.sampled_from(["find", "list_all"]), st.dictionaries(st.text(max_size=5), JSON)), min_size=1)
)
def test_every_call_survives_being_written_down(calls: list[tuple[str, Any]]) -> None:
    assert parse_calls(text_of(calls)) == calls
