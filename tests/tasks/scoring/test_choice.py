from __future__ import annotations

import pytest

from cl_bench.tasks.base import Example
from cl_bench.tasks.scoring.choice import parse_choice, score_choice


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("<reasoning>x</reasoning><answer>B</answer>", "B"),
        ("<answer>A</answer> no, wait <answer> C. </answer>", "C"),
        ("<answer>The answer is D</answer>", "D"),
        ("<answer>B", "B"),
        ("The answer is B", "B"),
        ("First I thought the answer is A. But the answer is C.", "C"),
        ("Answer: (B)", "B"),
        ("The correct option is **D**.", "D"),
        ("**B**", "B"),
        (r"so we get \boxed{C}", "C"),
        ("B", "B"),
        ("b", "B"),
        ("B. Water", "B"),
        ("(C) 46.07 g/mol", "C"),
        ("D: because of symmetry", "D"),
        # Gold B, text about A: the loose official scorer counts any mention of the letter.
        ("Based on the data, answer A.", "A"),
        ("the answer is a gas", None),
        ("A: 3.3\nB: 3.05\nC: 2.24\nD: 1.1", None),
        ("A gas is compressible", None),
        ("An answer is not possible", None),
        ("Answer: E", None),
        ("", None),
        ("<answer></answer> The answer is B", None),
    ],
)
def test_letter(text: str, letter: str | None) -> None:
    assert parse_choice(text, 4) == letter


def test_strict_form_is_reasoning_then_answer_and_nothing_else() -> None:
    example = Example("t", "1", ({"role": "user", "content": "q"},), answer="B", choices=("w", "x", "y", "z"))
    good = score_choice(example, "<reasoning>\nsteps\n</reasoning>\n<answer>\nB\n</answer>\n")
    assert (good.correct, good.format_ok, good.parsed) == (True, True, "B")
    loose = score_choice(example, "The answer is B")
    assert (loose.correct, loose.format_ok) == (True, False)
    assert not score_choice(example, "<reasoning>x</reasoning><answer>B</answer> or C").format_ok
    wrong = score_choice(example, "<reasoning>x</reasoning><answer>C</answer>")
    assert (wrong.correct, wrong.format_ok) == (False, True)
    assert not score_choice(example, "<reasoning>x</reasoning><answer>J</answer>").format_ok
