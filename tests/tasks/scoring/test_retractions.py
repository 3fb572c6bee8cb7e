"""The last commitment counts: what a response takes back is replaced by what follows, or by nothing."""

from __future__ import annotations

import pytest

from cl_bench.tasks.scoring.choice import parse_choice
from cl_bench.tasks.scoring.math import parse_math
from cl_bench.tasks.scoring.number import parse_number
from cl_bench.tasks.scoring.retractions import replacement, retraction

# {old} is stated and taken back; {new} replaces it.
CORRECTED = [
    "The answer is {old}. Wait, no, it's {new}.",
    "The answer is {old}. Wait, no. {new}.",
    "The answer is {old}. Actually, it's {new}.",
    "The answer is {old}. Actually it's {new}.",
    "The answer is {old}. No, {new}.",
    "The answer is {old} (just kidding, it's {new}).",
    "The answer is {old}. Correction: {new}",
    "The answer is {old}. On second thought, {new}.",
    "The answer is {old}. Sorry, I meant {new}.",
    "The answer is {old}. Oops, make that {new}.",
    "The answer is {old}, no wait, {new}",
    "The answer is {old}. That's wrong. The answer is {new}.",
    "The answer is {old}. Wait, that's not right. It is {new}.",
    "The answer is {old}. Wait, no, 4. Actually, {new}.",
    "Answer: {old}\nWait, it is {new}",
    "Answer: {old}\n(edit: {new})",
    r"\boxed{{{old}}}. Wait, that's wrong. The answer is {new}.",
    r"\boxed{{{old}}} is wrong. It should be {new}.",
    r"\boxed{{{old}}}. Hmm, hold on. \boxed{{{new}}}",
]
WITHDRAWN = [
    "The answer is {old}. Wait, that's wrong.",
    "The answer is {old}. That is incorrect.",
    "The answer is {old}. Scratch that.",
    "The answer is {old}. Actually, this is wrong.",
    "Answer: {old}\nWait, let me think again.",
    r"\boxed{{{old}}} is wrong",
]
KEPT = [
    "The answer is {old}, no doubt.",
    "The answer is {old}. No other value fits.",
    "The answer is {old}. Actually, that was easy.",
    "The answer is {old}. It is wrong to look for another.",
    "Wait, let me think. The answer is {old}.",
    "Sorry, I mean the answer is {old}.",
    "The answer is not {new}. Wait, yes: the answer is {old}.",
    r"First \boxed{{{new}}}. No, wait: \boxed{{{old}}}",
    "I thought: the answer is {new}. Actually, no. The answer is {old}.",
]


@pytest.mark.parametrize("form", CORRECTED)
def test_a_correction_is_read(form: str) -> None:
    assert parse_choice(form.format(old="B", new="A").replace("4.", "D.")) == "A"
    assert parse_number(form.format(old="18", new="20")) == "20"
    assert parse_math(form.format(old="x+1", new="x+2")) == "x+2"


@pytest.mark.parametrize("form", ["Answer: {old} → {new}", "Answer: {old} -> {new}", "The answer is {old} => {new}."])
def test_an_arrow_corrects_a_letter_and_a_number(form: str) -> None:
    assert parse_choice(form.format(old="B", new="A")) == "A"
    assert parse_number(form.format(old="18", new="20")) == "20"


@pytest.mark.parametrize("form", WITHDRAWN)
def test_what_is_withdrawn_is_no_answer(form: str) -> None:
    assert parse_choice(form.format(old="B")) is None
    assert parse_number(form.format(old="18")) is None
    assert parse_math(form.format(old="x+1")) is None


@pytest.mark.parametrize("form", KEPT)
def test_what_is_not_taken_back_stays(form: str) -> None:
    assert parse_choice(form.format(old="B", new="A")) == "B"
    assert parse_number(form.format(old="18", new="20")) == "18"
    assert parse_math(form.format(old="x+1", new="x+2")) == "x+1"


def test_a_check_that_comes_to_the_same_keeps_the_answer() -> None:
    assert parse_number("#### 18\n\nWait, let me check. 20 - 2 = 18. Good.") == "18"
    assert parse_number("#### 18\n\nWait, let me check. 20 - 3 = 17.") is None
    assert parse_choice("The answer is B. Wait, let me check. Yes, B is correct.") == "B"
    assert parse_choice("The answer is B. Wait, let me check. C is correct.") == "C"
    assert parse_math(r"\boxed{x+1}. Wait, let me check: $2x+2=2(x+1)$, so $y=x+1$. Good.") == "x+1"


def test_a_letter_at_the_beginning_can_be_taken_back() -> None:
    assert parse_choice("B. Wait, no. C.") == "C"
    assert parse_choice("B\n\nHold on, let me see.") is None
    assert parse_choice("B is correct. Wait, no. C is correct.") == "C"
    assert parse_choice("The answer is A... wait, no, B.") == "B"


def test_places() -> None:
    text = "It is 18. Wait, no, it's 20."
    found = retraction(text, text.index("18") + 2)
    assert found is not None and found.firm and text[found.end :] == "20."
    weak = retraction("18. Actually 20", 2)
    assert weak is not None and not weak.firm
    for harmless in (
        "18 eggs are actually enough",
        "18, waiting for more",
        "18, nobody knows",
        "18 is wrongly called 20",
    ):
        assert retraction(harmless, 2) is None


def test_words_are_replaced_by_words_of_about_their_number() -> None:
    assert replacement("red. But actually blue", 0) == "blue"
    assert replacement("red. Wait, that's wrong.", 0) == ""
    assert replacement("red. Actually, roses are often like that.", 0) is None
    assert replacement("A → B", 0) is None
    assert replacement("no, thanks", 0) is None
