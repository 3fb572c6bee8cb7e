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


def fault_merges_all_arguments(gold: list[tuple[str, Any]], text: str) -> bool:
    """The public scorer's rule: the names as a multiset, and all arguments of all calls in one dictionary."""
    calls = parse_calls(text)
    names = sorted(name for name, _ in calls) == sorted(name for name, _ in gold)
    merged, wanted = ({key: value for _, call in side for key, value in call.items()} for side in (calls, gold))
    return names and merged == wanted


def test_gold_scores_one_in_any_order_and_any_spacing() -> None:
    assert score_tool_calls(example(TWO), text_of(TWO)).correct
    assert score_tool_calls(example(TWO), text_of(TWO[::-1])).correct
    spaced = 'Action:  getTide \nAction Input:\n{"when": {"day": 1},\n "port": "Brest"}\nObservation: Action: other'
    assert score_tool_calls(example(TWO[:1]), spaced).correct


def test_swapped_inputs_are_wrong_though_the_merged_arguments_agree() -> None:
    gold: list[tuple[str, Any]] = [("getTide", {"port": "Brest"}), ("getWind", {"hour": 7})]
    swapped = [("getTide", gold[1][1]), ("getWind", gold[0][1])]
    assert fault_merges_all_arguments(gold, text_of(swapped))
    assert score_tool_calls(example(gold), text_of(gold)).correct
    assert not score_tool_calls(example(gold), text_of(swapped)).correct


def test_nested_arguments_are_read_to_their_end() -> None:
    nested: list[tuple[str, Any]] = [("plan", {"trip": {"legs": [{"to": "Brest"}, {"to": "a } b"}]}, "days": 2})]
    score = score_tool_calls(example(nested), text_of(nested) + " and more")
    assert (score.correct, score.format_ok) == (True, True)


@pytest.mark.parametrize(
    "text",
    [
        'Action: getWind\nAction Input: {"port": "Lorient"}',
        'Action: getWind  \nAction Input:\n{"port":\n"Lorient"}',
        'Action:\ngetWind\nAction Input:\n{"port": "Lorient"}',
        'Action: getWind\nAction_Input: {"port": "Lorient"}',
        'Action: getWind\nAction Input: ```json\n{"port": "Lorient"}\n```',
        'Action: getWind\nAction Input:\n```\n{"port": "Lorient"}\n```',
        '**Action:** getWind\n**Action Input:** {"port": "Lorient"}',
        '**Action**: `getWind`\n**Action Input**: {"port": "Lorient"}',
        'Thought: I call it.\nAction: getWind\nAction Input: {"port": "Lorient"}\nObservation: done\nAction: other',
        '- Action: getWind\n- Action Input: {"port": "Lorient"}',
        '1. Action: getWind\n2. Action Input: {"port": "Lorient"}',
        '### Action: getWind\n### Action Input:\n{"port": "Lorient"}',
        'action: getWind\naction input: {"port": "Lorient"}',
        'Action: getWind Action Input: {"port": "Lorient"}',
        '**Action:** getWind **Action Input:** {"port": "Lorient"}',
        'Action: getWind\nAction Input: {"port": "Lorient"}\nAction: None',
        '<think>\nAction: getTide\n</think>\nAction: getWind\nAction Input: {"port": "Lorient"}',
    ],
)
def test_forms_of_a_call(text: str) -> None:
    assert score_tool_calls(example(TWO[1:]), text).correct


@pytest.mark.parametrize(
    "given",
    [
        '{"port": "Brest", "port": "Lorient"}',
        '{"port": {"a": 1, "a": 2}}',
        '{"port": "Lorient"} or {"port": "Brest"}',
        '{"port": "Lorient"}, {"port": "Brest"}',
        '{"port": "Lorient"}\nAction Input: {"port": "Brest"}',
        '{"port": "Lorient"}\nAction Input: {"port": "Lorient"}',
    ],
)
def test_an_input_that_says_two_things_is_refused(given: str) -> None:
    assert parse_calls(f"Action: getWind\nAction Input: {given}") == [("getWind", None)]


WIND = {"name": "getWind", "arguments": {"port": "Lorient"}}
TIDE = {"name": "getTide", "parameters": {"port": "Brest", "when": {"day": 1}}}


@pytest.mark.parametrize(
    "text",
    [
        f"<tool_call>{json.dumps(WIND)}</tool_call><tool_call>{json.dumps(TIDE)}</tool_call>",
        f"I call:\n<tool_call>\n{json.dumps(TIDE)}\n</tool_call>\n<tool_call>\n{json.dumps(WIND)}\n",
        f"<tool_call>{json.dumps([TIDE, WIND])}</tool_call>",
        f"<think>{json.dumps(WIND)}</think>\n{json.dumps([WIND, TIDE])}",
        f"```json\n{json.dumps([WIND, TIDE], indent=1)}\n```",
    ],
)
def test_native_forms_of_calls_are_right_and_of_another_form(text: str) -> None:
    score = score_tool_calls(example(TWO), text)
    assert (score.correct, score.format_ok) == (True, False)
    assert not score_tool_calls(example(TWO[:1]), text).correct


@pytest.mark.parametrize(
    "text",
    [
        str(WIND),
        f"<tool_call>{WIND}</tool_call>",
        json.dumps(WIND | {"id": 1}),
        json.dumps({"name": "getWind"}),
        json.dumps({"name": "getWind", "arguments": json.dumps(WIND["arguments"])}),
        json.dumps([WIND, 1]),
        f"I call {json.dumps(WIND)}",
        f"<tool_call>{json.dumps(WIND)}</tool_call><tool_call>more</tool_call>",
        f"{json.dumps(WIND)} or {json.dumps(TIDE)}",
        '{"name": "getWind", "arguments": {"port": "Brest", "port": "Lorient"}}',
        'Action: getWind\nAction Input: {"port": "Lorient"}\n<tool_call>' + json.dumps(TIDE) + "</tool_call>",
        "[]",
    ],
)
def test_what_only_resembles_a_native_form_is_wrong(text: str) -> None:
    assert not score_tool_calls(example(TWO[1:]), text).correct


def test_words_after_an_input_are_no_second_one() -> None:
    text = 'Action: getWind\nAction Input: {"port": "Lorient"}\nor so I think [sic]'
    assert score_tool_calls(example(TWO[1:]), text).correct


def test_no_action_is_no_call() -> None:
    assert parse_calls("Action: None") == []
    assert parse_calls("Action: None\nAction Input: {}") == [("None", {})]
    assert parse_calls('Action: f\nAction Input: {"s": "x Action Input: y"}') == [("f", {"s": "x Action Input: y"})]


def test_a_flood_of_actions_is_no_answer() -> None:
    assert parse_calls("Action: f\n" * 1_001) == []


def test_strict_form_is_two_plain_labels() -> None:
    for text, format_ok in (
        ('Action: getWind\nAction Input: {"port": "Lorient"}', True),
        ('Thought: x\nAction: getWind\nAction Input: {"port": "Lorient"}\n', True),
        ('Action: getWind\nAction Input: ```json\n{"port": "Lorient"}\n```', False),
        ('**Action:** getWind\n**Action Input:** {"port": "Lorient"}', False),
        ("Action: getWind\nAction Input: {'port': 'Lorient'}", False),
        ('Action: getWind\nAction Input: "Lorient"', False),
        ("", False),
    ):
        assert score_tool_calls(example(TWO[1:]), text).format_ok is format_ok


@pytest.mark.parametrize(
    ("given", "equal"),
    [("1", True), ("1.0", True), ("1e0", True), ('"1"', False), ("true", False), ("1.5", False), ("[1]", False)],
)
def test_json_has_one_kind_of_number(given: str, equal: bool) -> None:
    gold = example([("f", {"n": 1})])
    assert score_tool_calls(gold, f'Action: f\nAction Input: {{"n": {given}}}').correct is equal
    assert score_tool_calls(example([("f", {"n": 1.0})]), 'Action: f\nAction Input: {"n": 1}').correct


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
