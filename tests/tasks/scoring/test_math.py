from __future__ import annotations

from collections.abc import Iterator

import pytest

from cl_bench.tasks.base import Example
from cl_bench.tasks.scoring.math import parse_math, score_math
from cl_bench.tasks.scoring.math_checker import MathChecker, Verdict
from cl_bench.tasks.scoring.math_values import same_math


@pytest.fixture(scope="module")
def checker() -> Iterator[MathChecker]:
    made = MathChecker()
    yield made
    made.close()


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        (r"so \boxed{\frac{3}{4}}.", r"\frac{3}{4}"),
        (r"\boxed{1}, no: then \boxed{2} is it", "2"),
        (r"\boxed{2} or \boxed{3}", "2, 3"),
        (r"$x=\boxed{1}$ and $\boxed{2}$", "1, 2"),
        (r"The answer is 3. \boxed{4}", "4"),
        (r"\boxed{3} <answer>4</answer>", "3"),
        (r"<answer>\frac{1}{2}</answer>", r"\frac{1}{2}"),
        ("<answer>The answer is $5$</answer>", "5"),
        (r"<answer>\boxed{5}</answer>", "5"),
        (r"The answer is $\frac{3}{4}$.", r"\frac{3}{4}"),
        ("The answer is $12$ since $3*4=12$ and $5$.", "12"),
        ("The answer is $x = 3$ and $y=4$.", "x = 3, y=4"),
        ("The answer is the interval $(0,1)$ here", "(0,1)"),
        ("The answer is\n\\[\n\\frac{3}{4}\n\\]\nfor $x$", r"\frac{3}{4}"),
        ("The final answer is (0, 1).", "(0, 1)"),
        ("The answer is 1,234. It is large.", "1,234"),
        ("Answer: 12 apples", "12"),
        ("so we get $5$ and then $7$.", "7"),
        (r"So it is \(\frac{1}{2}\)", r"\frac{1}{2}"),
        ("thus $$.5$$", ".5"),
        (r"\frac{3}{4}", r"\frac{3}{4}"),
        (r"x \in [1,2]", r"x \in [1,2]"),
        (r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}", r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}"),
        ("2sqrt(3)", "2sqrt(3)"),
        ("Aurora", "Aurora"),
        ("there are 12 apples in 3 bags", "3"),
        ("12 apples", "12"),
        ("#### 18", "18"),
        ("#### 8n^2 + 4n + 1", "8n^2 + 4n + 1"),
        ("We have $n=2$.\n#### $n+1$\nThis was easy.", "n+1"),
        ("#### $n+1$. Wait, no, $n+2$.", "n+2"),
        ("#### Step 1\n\nWe have $n=4$.", "n=4"),
        ("#### Solution\n$n=2$", "n=2"),
        ("#### (a)\n\n$n=2$", "n=2"),
        (r"The chance is $\frac{1}{3}$, because $1+2=3$.", r"\frac{1}{3}"),
        ("It is $n=3$, since $m=2$ gives $k=5$.", "n=3"),
        ("Since $m=2$, we get $n=4$.", "n=4"),
        ("We get $n=3$, as $m=2$. So $k=7$.", "k=7"),
        ("We get $n=3$. Check: $3+4=7$.", "n=3"),
        ("We get $n=3$.\n\nTo verify, $3+4=7$ and $7=7$.", "n=3"),
        ("We get $n=5$. Check: $5+4=7$ fails. So $n=3$.", "n=3"),
        ("Let us check $n=3$: $3+4=7$, so $n=3$", "n=3"),
        ("<think>\\boxed{3}</think>The answer is 5", "5"),
        ("<think>\\boxed{3}", None),
        ("\\boxed{}", None),
        ("<answer></answer> $3$", None),
        ("I do not know", None),
        ("", None),
        ("The answer is not 2", None),
        ("The answer is not $2$", None),
        (r"The answer is not \boxed{2}", None),
        (r"\boxed{\neq 2}", None),
        (r"\boxed{x \neq 2}", r"x \neq 2"),
    ],
)
def test_expression(text: str, expression: str | None) -> None:
    assert parse_math(text) == expression


EQUAL = [
    (r"\frac{3}{4}", "0.75"),
    (r"\frac{3}{4}", "3/4"),
    (r"\frac 34", r"\dfrac{3}{4}"),
    (r"1\frac{4}{5}", "1.8"),
    (r"(0,\infty)", r"\left( 0, \infty \right)"),
    (r"(0,\infty)", "(0,∞)"),
    (r"\text{(A)}", "A"),
    ("C", r"\text{(C)}"),
    (r"90^\circ", "90"),
    (r"90^\circ", "90°"),
    (r"x \in [1,2]", "[1,2]"),
    (r"2\sqrt{3}", r"\sqrt{12}"),
    (r"2\sqrt{3}", "2*sqrt(3)"),
    (r"2\sqrt{3}", "2√3"),
    (r"\pi", "pi"),
    (r"\begin{pmatrix} -7 \\ 16 \end{pmatrix}", r"\begin{bmatrix} -7 \\ 16 \end{bmatrix}"),
    ("1,234", "1234"),
    ("1,234", r"1{,}234"),
    ("1,-2", "-2, 1"),
    ("3,5", r"3\text{ and }5"),
    (r"\$18.90", "18.9"),
    (r"\$18.90", "18.90 dollars"),
    (r"50\%", "50"),
    ("3", "3 apples"),
    (r"12\text{ cm}", "12"),
    ("12", r"12 \text{ cm}^2"),
    ("12", "12cm"),
    (".35625", "0.35625"),
    ("-5", "−5"),
    ("5", "5."),
    ("x^2", "x**2"),
    ("2k+2", "2(k+1)"),
    ("6 - 5i", "-5i+6"),
    ("y=-2x", "-2x"),
    ("4210_{5}", "4210_5"),
    ("4210_{5}", "4210"),
    ("36", "40_9"),
    (r"\text{Aurora}", "aurora"),
    (r"(0,\infty)", "x>0"),
    ("[0,1]", r"0\le x\le 1"),
    ("5", "x=5"),
    ("5", "2+3=5"),
    ("5", "x=2+3=5"),
    ("12", r"\text{Area}=12"),
    ("30", r"\angle ABC = 30^\circ"),
    ("1,2", "x=1, x=2"),
    ("1800", "1 800"),
    (r"\frac{3}{2}", "1 1/2"),
    (r"\frac{1}{2}", ".5"),
    (r"\frac{1}{2}", r"50\%"),
    (r"\left(\frac{3}{2}, 2\right)", "(1.5, 2)"),
    ("0.75", r"\frac{3}{4}"),
    (r"x \neq 2", r"x \ne 2"),
]
DIFFERENT = [
    ("12", "13"),
    ("12", ""),
    ("", ""),
    ("2", "-2"),
    ("58,500", "58"),
    (r"\frac{14}{3}", "4.67"),
    ("(3,4]", "[3,4)"),
    ("(1,-2)", "(-2,1)"),
    ("p - q", "q - p"),
    ("3", "3xy"),
    ("3", "3 and 4"),
    ("3", "2, 3"),
    ("40_9", "40_8"),
    ("40_9", "36"),
    ("40", "40_9"),
    (r"\text{evil}", "live"),
    (r"50\%", "0.5"),
    (r"(0,\infty)", "x<0"),
    (r"(0,\infty)", r"x\ge 0"),
    # An equation is read as its right side only where that follows.
    ("5", "3=5"),
    ("5", "x=3=5"),
    ("5", "1+1=5"),
    ("5", "2x=5"),
    ("x=5", "x=3=5"),
    # Digits that a space separates are no numeral.
    ("12", "1 2"),
    ("12", r"1\quad 2"),
    ("12", r"1{,}2"),
    # Values are exact.
    (r"\frac{1}{3}", "0.333"),
    (r"\frac{1}{3}", "0.33333333"),
    (r"\frac{9}{7}", "1.2857142857"),
    (r"\left(\frac{1}{3}, 2\right)", "(0.3333333333, 2)"),
    (r"\sqrt{2}", "1.41421356"),
    (r"\pi", "3.14159265"),
    (r"\frac{1}{2}", r"5\%"),
    ("2", r"\neq 2"),
    ("2", "1 or 2"),
    ("2", r"x = 2 \text{ or } x = 3"),
]


@pytest.mark.parametrize(("gold", "answer"), EQUAL)
def test_equal_values(checker: MathChecker, gold: str, answer: str) -> None:
    assert same_math(gold, answer, checker) == Verdict(True)


@pytest.mark.parametrize(("gold", "answer"), DIFFERENT)
def test_different_values(checker: MathChecker, gold: str, answer: str) -> None:
    assert same_math(gold, answer, checker) == Verdict(False)


def test_plain_numerals_and_words_need_no_process() -> None:
    idle = MathChecker(command=("/nonexistent",))
    for gold, answer in (("12", "13"), ("1,000", "1000.0"), ("40_9", "40_8"), (r"\text{Aurora}", "Boreas"), ("x", "x")):
        assert same_math(gold, answer, idle).problem is None
    assert idle.pid is None


def test_a_very_long_answer_is_compared_as_text_only() -> None:
    idle = MathChecker(command=("/nonexistent",))
    assert same_math("x", "x+" * 1000, idle) == Verdict(False)


def test_score() -> None:
    example = Example("t", "1", ({"role": "user", "content": "q"},), answer=r"\frac{3}{4}")
    boxed = score_math(example, r"Half and a quarter: \boxed{0.75}")
    assert (boxed.correct, boxed.parsed, boxed.format_ok, boxed.unreliable) == (True, "0.75", True, None)
    assert not score_math(example, "The answer is 3/4").format_ok
    assert score_math(example, "The answer is 3/4").correct
    wrong = score_math(example, r"\boxed{\frac{4}{3}}")
    assert (wrong.correct, wrong.format_ok) == (False, True)
    nothing = score_math(example, "")
    assert (nothing.correct, nothing.parsed, nothing.format_ok) == (False, None, False)
    assert not score_math(example, r"<think>\boxed{\frac{3}{4}}").format_ok
