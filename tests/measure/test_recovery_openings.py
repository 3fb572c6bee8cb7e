"""Openings and frames that probes force: shared by answers, and giving none away."""

from __future__ import annotations

import pytest

from cl_bench.harness.measure.items.openings import Frame, common_frame, common_opening
from tests.measure.items_run import Sample, sample


def answers(*rows: tuple[str, str]) -> list[Sample]:
    return [sample(number, True, response=text, parsed=parsed) for number, (text, parsed) in enumerate(rows)]


def nothing(opening: str) -> bool:
    return False


SHARED = answers(
    ("We note the colour. So it is red.", "red"),
    ("We note the colour. So it is blue.", "blue"),
    ("We note the size. So it is large.", "large"),
    ("Known here: wood. So it is oak.", "oak"),
)


def test_the_longest_opening_that_half_of_the_answers_share() -> None:
    assert common_opening(SHARED, nothing) == "We note the"


def test_the_words_around_the_answer() -> None:
    assert common_frame(SHARED) == Frame("So it is ", ".")


def test_an_opening_ends_before_the_answer() -> None:
    alike = answers(*[("It is B because of water", "B")] * 6, ("It is C", "C"))
    assert common_opening(alike, nothing) == "It is"
    assert common_opening(answers(*[("B because of water", "B")] * 6), nothing) is None


def test_an_answer_within_a_word_is_no_answer() -> None:
    assert common_opening(answers(*[("Because it is a B", "B")] * 4), nothing) == "Because it is a"


def test_an_opening_that_is_scored_as_right_is_shortened_or_dropped() -> None:
    said = answers(*[("Well yes it holds", "True")] * 4)  # the answer stands there in other words
    assert common_opening(said, nothing) == "Well"
    assert common_opening(answers(*[("Yes it holds", "True")] * 4), lambda opening: opening == "Yes") is None
    assert common_opening(SHARED, lambda opening: opening.endswith("the")) == "We note"


def test_few_answers_and_unfinished_or_unread_ones_share_nothing() -> None:
    assert common_opening(SHARED[:2], nothing) is None
    assert common_opening([row | {"ended": "length"} for row in SHARED], nothing) is None
    assert common_opening([row | {"parsed": None} for row in SHARED], nothing) is None
    assert common_opening([row | {"response": None} for row in SHARED], nothing) is None
    assert common_frame([]) == Frame()


def test_where_no_long_opening_is_shared_the_most_frequent_first_word_is_taken() -> None:
    rows = [(f"So {number} is it {number}x", f"{number}x") for number in range(4)]
    rows += [(f"w{number} then {number}y", f"{number}y") for number in range(8)]
    assert common_opening(answers(*rows), nothing) == "So"


def test_the_order_of_the_answers_does_not_matter() -> None:
    tied = answers(*[("Ab c d", "d")] * 4, *[("Xy c d", "d")] * 4)
    assert common_opening(tied, nothing) == common_opening(tied[::-1], nothing) == "Ab c"


@pytest.mark.parametrize("text", ["<reasoning>r</reasoning>\n<answer>{}</answer>", "I think\n<answer>{}</answer>"])
def test_tags_are_a_frame(text: str) -> None:
    rows = answers(*[(text.format(letter), letter) for letter in "ABCD"])
    assert common_frame(rows).lead.endswith("<answer>") and common_frame(rows).tail == "</answer>"
