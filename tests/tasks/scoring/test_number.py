from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cl_bench.tasks.base import Example
from cl_bench.tasks.scoring.number import parse_number, same_number, score_number


def example(gold: str) -> Example:
    return Example("t", "1", ({"role": "user", "content": "q"},), answer=gold)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        # the last number
        ("3 and 4 make 7", "7"),
        ("He pays $1,250.50.", "1250.50"),
        ("so 5 apples.", "5"),
        ("1,450,000 in all", "1450000"),
        ("1,2", "2"),
        ("She has 3,4 or 5,6", "6"),
        ("It costs $.50", "0.50"),
        ("€7", "7"),
        ("that is 25%", "25"),
        ("It falls to -3", "-3"),
        ("It is −4", "-4"),
        ("−$4.50", "-4.50"),
        ("$-4", "-4"),
        ("10 - 3 = 7", "7"),
        ("5-3", "3"),
        ("3-(-4)", "-4"),
        ("x = -3", "-3"),
        ("3/4", "3/4"),
        (r"-\frac{3}{4}", "-3/4"),
        ("1.5e3", "1.5e3"),
        ("1.5 × 10^3", "1.5e3"),
        (r"$1.5 \times 10^{-3}$", "1.5e-3"),
        (r"1{,}234", "1234"),
        (r"1\,234", "1234"),
        ("<<9*2=18>>18", "18"),
        ("no number", None),
        ("...", None),
        ("", None),
        # a marked number wins over later ones
        ("3 and 4 make 7\n#### 7", "7"),
        ("#### 7 which is more than 5", "7"),
        ("#### $1,000", "1000"),
        ("#### 12.", "12"),
        ("#### **5**", "5"),
        ("####5", "5"),
        ("#### -5", "-5"),
        ("#### 3 + 4 = 7", "7"),
        (r"\boxed{7} because 3 and 4", "7"),
        ("The answer is 16, because 3 x 4 = 12", "16"),
        (r"\boxed{7 \text{ apples}} for 3", "7"),
        (r"\boxed{3+4=7} for 3", "7"),
        (r"\boxed{\frac{3}{4}} of 8", "3/4"),
        ("The answer is 5. There were 3 of them.", "5"),
        ("The answer is **5** apples, 2 more", "5"),
        ("The answer is approximately 3.14, not 3", "3.14"),
        ("The answer is: $18$ dollars for 2", "18"),
        ("The answer is 3 + 4 = 7, and 2 are left", "7"),
        ("Answer: x = 4 for 2", "4"),
        ("Answer is\n\n$$7$$\nfor 2", "7"),
        ("<answer>12 apples</answer> for 3", "12"),
        ("The answer is 5.\n#### 6\nso 7", "6"),
        ("#### 18\n\nQuestion: And 5?\n#### 5", "18"),
        # other ways to write a number
        ("1 800", "1800"),
        ("#### 1\u00a0800", "1800"),
        ("1\u202f800 in all", "1800"),
        ("18'000", "18000"),
        ("He has 3 100 dollar bills", "100"),
        ("2 million", "2e6"),
        ("The answer is 2.5 thousand.", "2.5e3"),
        ("minus 5", "-5"),
        ("The answer is negative 5.", "-5"),
        ("9 minus 5", "5"),
        ("–5", "-5"),
        ("3 1/2", "7/2"),
        (r"3\frac{1}{2}", "7/2"),
        ("3½", "7/2"),
        ("½", "1/2"),
        ("#### 18kg", "18"),
        # the number that leads a statement wins over later equations
        ("The answer is 5, as 2*5 = 10", "5"),
        ("So 20 - 2 = 18 (since 2 were eaten)", "18"),
        ("So 20 - 2 = 18, because 2 were eaten", "18"),
        # what is denied or compared is not read
        ("The answer is not 18", None),
        ("The answer isn't 18", None),
        (r"The answer is not \boxed{18}", None),
        (r"\boxed{\neq 18}", None),
        ("It is 20, not 18", "20"),
        ("The answer is not 18 but 20", "20"),
        ("less than 18", None),
        ("The answer is more than 18", None),
        (">18", None),
        ("#### > 18", None),
        ("It is 18, which is more than 12.", "18"),
        ("We need at least 18", "18"),
        # several numbers and ranges are none
        ("The answer is 18 or 20.", None),
        ("20 or 18", None),
        ("20 apples or 18", None),
        ("#### 18 or 19", None),
        ("<answer>17 or 18</answer>", None),
        ("<answer>17</answer> or <answer>18</answer>", None),
        ("<answer>17</answer> no: <answer>18</answer>", "18"),
        ("<answer>18</answer><answer>18</answer>", "18"),
        (r"\boxed{17}\boxed{18}", None),
        (r"\boxed{17} and \boxed{18}", None),
        (r"\boxed{17} eggs are left, and with one more \boxed{18}", "18"),
        (r"\boxed{17, 18}", None),
        ("Answer: 17, 18", None),
        ("18–20", None),
        ("#### 18-20", None),
        ("18 to 20", None),
        ("The answer is between 17 and 18.", None),
        ("18±1", None),
        ("10 11 ... 18", None),
        ("The answer is 18. They ate 3 to 4 a day.", "18"),
        # what is no number by itself
        ("18²", None),
        ("2^18", None),
        ("18:30", None),
        ("#### 18:30", None),
        ("18x", None),
        ("x18", None),
        # a mark without a number of its own
        ("The answer is the sum of 3 and 4", "4"),
        ("The answer is 3 + 4", "4"),
        # reasoning decides nothing
        ("<think>14</think>\n#### 12", "12"),
        ("<think>#### 14</think> it is 12", "12"),
        ("<think>14", None),
    ],
)
def test_number(text: str, number: str | None) -> None:
    assert parse_number(text) == number


@pytest.mark.parametrize(
    ("first", "second"),
    [("18", "18.0"), ("2.0", "2"), ("1,000", "1000"), ("3/4", "0.75"), ("1e3", "1000"), ("-3", "−3"), (".5", "0.5")]
    + [("25", "25%"), ("7.", "7"), ("9" * 500, "9" * 500)],
)
def test_numbers_compare_by_value(first: str, second: str) -> None:
    assert same_number(first, second) and same_number(second, first)


@pytest.mark.parametrize(
    ("first", "second"),
    [("18", "180"), ("1", "x"), ("", ""), ("1/0", "1/0"), ("1e999", "1e998"), ("9" * 500, "9" * 499), ("3", "-3")],
)
def test_other_numbers_differ(first: str, second: str) -> None:
    assert not same_number(first, second)


@given(st.integers(-(10**9), 10**9), st.sampled_from(["{}", "{:,}", "#### {}", "It is {:,}.", r"\boxed{{{:,}}}"]))
def test_every_integer_is_read(value: int, form: str) -> None:
    assert score_number(example(str(value)), form.format(value)).correct
    assert score_number(example(f"{value}.0"), form.format(value)).correct
    assert not score_number(example(str(value + 1)), form.format(value)).correct


def test_score() -> None:
    assert score_number(example("12"), "3*4 = 12\n#### 12").format_ok
    assert score_number(example("12"), "#### $1,200.").format_ok
    loose = score_number(example("12"), "that makes 12 pens.")
    assert (loose.correct, loose.format_ok) == (True, False)
    assert not score_number(example("12"), "#### 12 pens").format_ok
    assert not score_number(example("12"), "12 pens for 3 girls").correct
    assert score_number(example("12"), "nothing").parsed is None
    assert not score_number(example(""), "").correct
