"""No scorer raises on any text, or takes more than linear time in its length."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cl_bench.tasks.base import Example, Score
from cl_bench.tasks.scoring.choice import score_choice
from cl_bench.tasks.scoring.exact import score_exact
from cl_bench.tasks.scoring.filling import score_filling
from cl_bench.tasks.scoring.math import score_math
from cl_bench.tasks.scoring.number import score_number
from cl_bench.tasks.scoring.tool_calls import canonical, score_tool_calls
from cl_bench.tasks.scoring.true_false import score_true_false

SCORERS: Mapping[str, tuple[Callable[[Example, str], Score], str]] = {
    "choice": (score_choice, "B"),
    "exact": (score_exact, "blue whale"),
    "filling": (score_filling, "2NaX + Mg = 2Na + MgX2"),
    "math": (score_math, "12"),
    "number": (score_number, "12"),
    "tool calls": (score_tool_calls, canonical([("f", {"a": 1})])),
    "true or false": (score_true_false, "Yes"),
}
MEGABYTE = 10**6
PIECES = [
    "{", "}", "[", "(", "\\boxed{", "\\boxed{1}", "\\text{", "\\frac{1}{", "$", "$1", "\\(", "*", "**A", "`", "<", "|",
    " ", "\n", "\r\n", "\t", "A", "A\n", "A, ", "A or ", "A. ", "(A) ", "1", "1,", "1/", "-", "=", "####", "#### 1\n",
    "answer ", "answer is ", "answer: A or ", "answer is not A, but ", "A is correct. ", "option A ", "not ", "yes ",
    "might be ", "if ", "<answer>", "<answer>B</answer>", "</answer>", "<think>", "</think>", "<reasoning>",
    "</reasoning>", "equation is ", "Action: ", "Action: f\n", "Action: f\nAction Input: {}\n", "Action Input: ",
    "answer: ", "wait ", "actually x. ", "The answer is 18. Wait, no. ", "that is wrong. ", "=> ", "18 or ", "1 ", "½",
    "minus ", "(or ", "B. ", "A: 10%\n", "A ❌\n", "A: correct\n", "the second option ", "x\n", "\\boxed{17} or ", "3=",
    "\\frac{1}{2}=", "^{3+}", "true since ", "none of ", "<answer>1</answer> or ", "Action: x Action Input: ", "\u200b",
    "Observation:", "\ud800", "\x00", "\x02", "é",
]  # fmt: skip
NESTED = ["Action: f\nAction Input: " + "[" * 10**5, "Action: f\nAction Input: " + '{"a":' * 980 + "1" + "}" * 980]
NESTED += ["Action: f\nAction Input: " + "[" * depth + "]" * depth for depth in (300, 480, 900, 990, 5000)]
NESTED += ["Action: f\nAction Input: " + value for value in ("9" * 10**5, "1e999", "NaN", '"\\ud800"')]
NESTED += [
    "\\boxed{" + "{" * 60 + "}" * 60 + "}",
    "\\boxed{" + "9" * 10**5 + "}",
    "#### " + "9" * 10**5,
    "1e" + "9" * 10**5,
]


def example(gold: str) -> Example:
    choices = ("46.07", "steam", "an increase", "C(=O)N") if gold == "B" else None
    return Example("t", "1", ({"role": "user", "content": "q"},), answer=gold, choices=choices)


@pytest.mark.parametrize("name", SCORERS)
@pytest.mark.parametrize("piece", PIECES)
def test_a_long_text_of_one_piece_is_scored(name: str, piece: str) -> None:
    score, gold = SCORERS[name]
    length = MEGABYTE if piece in "{}[(" else MEGABYTE // 5
    assert score(example(gold), piece * (length // len(piece))).unreliable is None


@pytest.mark.parametrize("name", SCORERS)
@pytest.mark.parametrize("text", NESTED, ids=range(len(NESTED)))
def test_deep_nesting_and_long_numbers_are_scored(name: str, text: str) -> None:
    score, gold = SCORERS[name]
    assert not score(example(gold), text).correct


ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=60)
MIXED = st.lists(st.sampled_from(PIECES) | ANY_TEXT, max_size=12).map("".join)


@pytest.mark.parametrize("name", SCORERS)
@given(text=MIXED)
@settings(deadline=None)
def test_any_text_is_scored_the_same_twice(name: str, text: str) -> None:
    score, gold = SCORERS[name]
    first = score(example(gold), text)
    assert first == score(example(gold), text)
    assert first.parsed is None or first.parsed.strip()
