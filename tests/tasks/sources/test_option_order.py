from __future__ import annotations

from collections import Counter
from dataclasses import replace
from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cl_bench.tasks.base import Example
from cl_bench.tasks.scoring.choice import score_choice
from cl_bench.tasks.sources.option_names import names_options
from cl_bench.tasks.sources.option_order import NAMED, NAMED_IN_ANSWER, reorder
from cl_bench.tasks.sources.readers import READERS
from cl_bench.tasks.sources.reading import Reading
from tests.tasks.sources.rows import science_row

PLAIN = ("12 m", "13 m", "14 m", "15 m")


def row(number: int = 1, demonstration: str | None = None) -> Example:
    example = READERS["sciknoweval"].read(science_row(number), Reading("task"))
    return example if demonstration is None else replace(example, demonstration=demonstration)


def option(example: Example) -> str:
    return (example.choices or ())["ABCD".index(str(example.answer))]


def turned(demonstration: str | None = None) -> tuple[Example, Counter[str]]:
    """A row whose gold letter changes."""
    remarks: Counter[str] = Counter()
    for number in range(20):
        example = reorder(row(number), Counter())
        if example.answer not in ("A", "B"):
            return reorder(row(number, demonstration), remarks), remarks
    raise AssertionError("no row changes its letter")


def test_letter_prompt_and_demonstration_follow_the_options() -> None:
    remarks: Counter[str] = Counter()
    letters: Counter[str] = Counter()
    for number in range(400):
        before = row(number)
        after = reorder(before, remarks)
        assert (after.id, after.meta) == (before.id, before.meta)
        assert sorted(after.choices or ()) == sorted(before.choices or ()) and option(after) == option(before)
        lines = after.question.splitlines()[-4:]
        assert lines == [f"{letter}: {text}" for letter, text in zip("ABCD", after.choices or (), strict=True)]
        assert score_choice(after, after.demonstration or "").correct
        assert f"The right option is {after.answer}: {option(after)}" in (after.demonstration or "")
        letters[str(after.answer)] += 1
    assert not remarks
    assert all(abs(count - 100) < 4 * sqrt(400 * 0.25 * 0.75) for count in letters.values())


def test_the_order_depends_on_id_and_content() -> None:
    orders = {reorder(replace(row(1), id=f"id-{n}"), Counter()).choices for n in range(40)}
    assert len(orders) > 10
    assert reorder(row(1), Counter()) == reorder(row(1), Counter())


@pytest.mark.parametrize(
    "options",
    [
        ("12 m", "13 m", "Both A and B", "15 m"),
        ("12 m", "13 m", "14 m", "All of the above"),
        ("12 m", "13 m", "14 m", "none of the above answers"),
        ("12 m", "13 m", "14 m", "All the above."),
        ("12 m", "13 m", "None of these", "15 m"),
        ("12 m", "13 m", "both of them", "15 m"),
        ("A and C", "13 m", "14 m", "15 m"),
        ("A, B and C", "13 m", "14 m", "15 m"),
        ("(A) and (C)", "13 m", "14 m", "15 m"),
        ("12 m", "13 m", "Neither A nor B", "15 m"),
        ("12 m", "13 m", "A only", "15 m"),
        ("12 m", "13 m", "only B", "15 m"),
        ("AB", "ACD", "14 m", "15 m"),
        ("12 m", "13 m", "as in option A", "15 m"),
        ("12 m", "the same as the previous answer", "14 m", "15 m"),
        ("12 m", "13 m", "both (a) and (b)", "15 m"),
        ("12 m", "13 m", "neither a nor b", "15 m"),
        ("a and b", "13 m", "14 m", "15 m"),
        ("12 m", "13 m", "(a), (c)", "15 m"),
        ("12 m", "13 m", "14 m", "only b"),
        ("12 m", "13 m", "14 m", "b and c are right"),
        ("12 m", "13 m", "14 m", "as option b says"),
        ("A/B", "13 m", "14 m", "15 m"),
        ("12 m", "13 m", "A+B", "15 m"),
        ("12 m", "13 m", "A + C", "15 m"),
        ("12 m", "13 m", "14 m", "Not A"),
        ("12 m", "13 m", "14 m", "Options I and II"),
        ("12 m", "13 m", "14 m", "option 2"),
        ("12 m", "13 m", "1 and 2 are correct", "15 m"),
        ("12 m", "13 m", "both 1 and 3", "15 m"),
        ("12 m", "13 m", "II and III are true", "15 m"),
        ("12 m", "13 m", "14 m", "neither"),
        ("12 m", "13 m", "14 m", "None"),
        ("12 m", "13 m", "14 m", "Both."),
        ("12 m", "13 m", "14 m", "all are correct"),
        ("12 m", "13 m", "14 m", "None of the statements is true"),
    ],
)
def test_options_that_mean_other_options_keep_their_order(options: tuple[str, ...]) -> None:
    remarks: Counter[str] = Counter()
    example = replace(row(), choices=options)
    assert reorder(example, remarks) == example and remarks == {NAMED: 1}
    assert reorder(replace(row(), choices=PLAIN), remarks) != replace(row(), choices=PLAIN)


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("Why is option B wrong?", True),
        ("Why is option b wrong?", True),
        ("Why are the answers (a) and (d) wrong?", True),
        ("Which choice a chemist makes is right?", False),
        ("Which of the answers A, B, C and D is it?", True),
        ("Which is it? A. one B. two C. three D. four", True),
        ("Which is it? (A) one (B) two (C) three (D) four", True),
        ("Points A and B are 3 m apart. How far is it from A to C?", False),
        ("Please select the option from the given choices that is closest to the answer!", False),
        ("Choose one answer. A train leaves at noon.", False),
        ("Which of the options above the line is hepatitis B?", False),
    ],
)
def test_questions_that_name_options_by_letter(question: str, named: bool) -> None:
    assert names_options(question, PLAIN) is named


@pytest.mark.parametrize(
    "options",
    [
        ("CC(C)C=C/C=C/C", "CCO", "CC", "CCC"),
        ("vitamin C", "boron (B)", "the points a and b", "A molecule"),
        ("B+ and C-", "2 A", "C=C", "A-type"),
        ("F/C=C/C", "Both ends are positive", "not a gas", "only 2 electrons"),
        ("a + b", "a/b", "1 and 2", "I2 is violet"),
    ],
)
def test_capitals_of_the_subject_name_no_option(options: tuple[str, ...]) -> None:
    assert not names_options("Which?", options)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Count them.\n<answer>\nB\n</answer>", "Count them.\n<answer>\n{}\n</answer>"),
        ("Count them. The answer is B.", "Count them. The answer is {}."),
        (r"Hence \boxed{B}", r"Hence \boxed{{{}}}"),
        ("It is option B, so the answer is (B).", "It is option {}, so the answer is ({})."),
        (
            "We have a choice of b = 2 or c = 3. The answer is B.",
            "We have a choice of b = 2 or c = 3. The answer is {}.",
        ),
    ],
)
def test_letters_of_a_worked_answer_follow(before: str, after: str) -> None:
    example, remarks = turned(before)
    assert example.answer != "B" and not remarks
    assert example.demonstration == after.format(*[example.answer] * 2)


@pytest.mark.parametrize(
    "worked",
    [
        "A molecule of it has more. The answer is B.",
        "Not vitamin C. The answer is B.",
        "(B) is right. B.",
        "Option d is too small and (a) too large. The answer is B.",
        "It is not (c). The answer is B.",
        "a) is too large, c) too small. The answer is B.",
        "Neither a nor c fits. The answer is B.",
        "Option 1 is too large. The answer is B.",
        "The last option is too small. The answer is B.",
    ],
)
def test_a_worked_answer_with_other_capitals_keeps_the_published_order(worked: str) -> None:
    example, remarks = turned(worked)
    assert (example.answer, example.demonstration) == ("B", worked)
    assert remarks == {NAMED_IN_ANSWER: 1}


@given(st.text(), st.lists(st.text(min_size=1), min_size=2, max_size=10, unique=True))
def test_any_text_is_read(question: str, options: list[str]) -> None:
    example = Example("t", "i", ({"role": "user", "content": ""},), None, "A", tuple(options), {"question": question})
    after = reorder(example, Counter())
    assert (after.choices or ())["ABCDEFGHIJ".index(str(after.answer))] == options[0]
