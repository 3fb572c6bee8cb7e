from __future__ import annotations

from dataclasses import replace

import pytest

from cl_bench.tasks.base import Example
from cl_bench.tasks.baselines import baselines, choice_of, hide_question, middle_odds, numeric_values
from cl_bench.tasks.sources.reading import lettered

WORDS = ("red", "green", "blue", "black")


def row(answer: str, *options: str) -> Example:
    turns = ({"role": "system", "content": "think"}, {"role": "user", "content": lettered("Which?", options)})
    return Example("t", "i", turns, answer=answer, choices=options, meta={"question": "Which?"})


def open_row() -> Example:
    return Example("t", "i", ({"role": "user", "content": "How many?"},), answer="3")


def lab_row(answer: str, *options: str) -> Example:
    text = f"Give the colour. Options: {', '.join(options)}."
    return Example("t", "i", ({"role": "user", "content": text},), answer=answer, choices=options)


def odds(answer: str, *options: str) -> float | None:
    choice = choice_of(row(answer, *options))
    assert choice is not None
    return middle_odds(choice)


def test_chance_and_the_majority_letter_of_training() -> None:
    train = [row(letter, *WORDS) for letter in "BBACA"]
    test = [row(letter, *WORDS) for letter in "BABDA"]
    # A and B are right equally often in training; the first of them is taken, whatever the order of the rows.
    assert baselines(train, test) == {"chance": 0.25, "majority_letter": 0.4, "middle_value": None}
    assert baselines(train[::-1], test) == baselines(train, test)
    assert baselines([*train, row("D", *WORDS), row("D", *WORDS), row("D", *WORDS)], test)["majority_letter"] == 0.2
    assert baselines([], test) == {"chance": 0.25, "majority_letter": None, "middle_value": None}


def test_rows_of_several_numbers_of_options_and_none() -> None:
    test = [row("A", "x", "y"), row("B", *WORDS), open_row(), open_row()]
    found = baselines([row("B", "x", "y")], test)
    assert found["chance"] == pytest.approx((1 / 2 + 1 / 4) / 4)
    assert found["majority_letter"] == 1 / 4
    nothing = {"chance": None, "majority_letter": None, "middle_value": None}
    assert baselines([row("B", "x", "y")], [open_row()]) == nothing == baselines([], [])


@pytest.mark.parametrize(
    ("answer", "options", "expected"),
    [
        ("A", ("2", "9", "1", "3"), 0.5),
        ("D", ("2", "9", "1", "3"), 0.5),
        ("B", ("2", "9", "1", "3"), 0.0),
        ("A", ("2", "9", "1"), 1.0),
        ("C", ("2", "9", "1"), 0.0),
        ("A", ("1", "2"), 0.5),
        # Two equal values are second and third, or third and fourth.
        ("A", ("2", "2.0", "1", "3"), 0.5),
        ("A", ("3", "3.0", "1", "2"), 0.25),
        ("D", ("3", "3.0", "1", "2"), 0.5),
        ("A", ("-1.5e-3", "1.5 x 10^2", "−3", "1,000"), 0.5),
        ("A", WORDS, None),
    ],
)
def test_odds_of_the_middle_value(answer: str, options: tuple[str, ...], expected: float | None) -> None:
    assert odds(answer, *options) == expected


def test_middle_odds_of_a_row_add_up_to_one() -> None:
    for options in (("1", "2", "3", "4"), ("1", "1.0", "3", "4"), ("5", "5.0", "5.00", "4"), ("1", "2", "3")):
        assert sum(odds(letter, *options) or 0 for letter in "ABCD"[: len(options)]) == pytest.approx(1)


@pytest.mark.parametrize(
    ("options", "values"),
    [
        (("1.87e-15", "2E3"), [1.87e-15, 2000]),
        (("3 × 10^-4 mol", "2.5*10**3 mol"), [3e-4, 2500]),
        (("412.75 Å³", "+.5 Å³"), [412.75, 0.5]),
        (("$1,200", "$ 80.5"), [1200, 80.5]),
        (("48 percent", "7percent"), [48, 7]),
        (("10 years", "10 million years"), None),
        (("9:1", "9:2"), None),
        (("70-79%", "80-89%"), None),
        (("1", "one"), None),
        (("CCO", "CC"), None),
        (("", "1"), None),
    ],
)
def test_numbers_with_one_unit(options: tuple[str, ...], values: list[float] | None) -> None:
    assert numeric_values(options) == values


def test_the_middle_rule_guesses_where_options_are_no_numbers() -> None:
    test = [row("A", "2", "9", "1", "3"), row("B", *WORDS), open_row()]
    assert baselines([], test)["middle_value"] == pytest.approx((0.5 + 0.25) / 3)
    assert baselines([], test[1:])["middle_value"] is None


def test_gold_may_be_the_text_of_an_option() -> None:
    # In lab rows options have no letters: "C" is the second option, not the third.
    assert (choice_of(lab_row("C", "A", "C", "G")) or (0, 0))[1] == 1
    assert (choice_of(row("C", "A", "C", "G")) or (0, 0))[1] == 2
    assert choice_of(lab_row("blue", *WORDS)) == (WORDS, 2)
    for nothing in (row("E", *WORDS), row("", *WORDS), lab_row("pink", *WORDS), replace(open_row(), answer=None)):
        assert choice_of(nothing) is None


def test_a_hidden_question_leaves_the_options() -> None:
    example = row("B", *WORDS)
    hidden = hide_question(example)
    assert hidden.question == "A: red\nB: green\nC: blue\nD: black"
    assert hidden.messages[0] == example.messages[0]
    assert hidden.id != example.id
    assert replace(hidden, id=example.id, messages=example.messages) == example
    assert hide_question(lab_row("blue", *WORDS)).question == "Options: red, green, blue, black."
    with pytest.raises(ValueError, match="no options"):
        hide_question(open_row())
