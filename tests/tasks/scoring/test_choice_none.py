from __future__ import annotations

import pytest

from cl_bench.tasks.scoring.choice import parse_choice

CHOICES = ("46.07", "water", "an increase", "C(=O)N")

# None of these settles on an option.
NO_LETTER = [
    "",
    " \n",
    "I do not know",
    "The answer is unclear",
    "I cannot determine the answer",
    "None of these.",
    "The correct answer is not given",
    "A base is a proton acceptor",
    "A gas is compressible",
    "I think a base is needed",
    "I think A base is needed",
    "the answer is a gas",
    "Answer: A base is an acceptor",
    "An answer is not possible",
    "Vitamin C is needed",
    "Group A is larger than group B",
    "B's value is high",
    "a base",
    "C. elegans is a worm",
    "The answer is C. elegans",
    "find P(A).",
    "Do not use the letter C.",
    "Answer: E",
    "The answer is E.",
    "The answer is A. No, the answer is E.",
    "A or B",
    "A/B",
    "A, B",
    "Both A and B",
    "A-D",
    "The answer is A or B",
    "The answer is A or maybe B.",
    "The answer is A and C",
    "Answer: A, B",
    "The answer is A/B",
    r"\boxed{A} or \boxed{B}",
    "Either A or B is correct.",
    "Options A and B are both correct",
    "It could be A. It could be B.",
    "I am torn between A and B.",
    "<answer>A or B</answer>",
    "not A",
    "A is incorrect",
    "A is not the answer",
    "A is the wrong answer",
    "A cannot be correct",
    "The answer isn't A.",
    "The answer is definitely not A.",
    "The answer is neither A nor B.",
    "Neither A nor B is correct",
    "The wrong answer is A",
    "I don't think the answer is A.",
    "I do not think that A is correct.",
    "B is incorrect. C is incorrect. D is incorrect.",
    "If the answer is A, then it floats.",
    "Is the answer A?",
    "The answer is A?",
    "Should I choose A?",
    "B?",
    "A\nB\nC\nD",
    "A: 3.3\nB: 3.05\nC: 2.24\nD: 1.1",
    "A) 3.3 B) 3.05 C) 2.24",
    "A. Incorrect: light.\nB. Correct: heavy.\nC. Incorrect.\nD. Incorrect.",
    "The options are A, B, C and D.",
    "<answer></answer> The answer is B",
    "<think>The answer is A</think>",
    "<think>The answer is A",
    "<reasoning>The answer is A</reasoning>",
    "<reasoning>The answer is A",
]


@pytest.mark.parametrize("text", NO_LETTER)
def test_no_letter_is_read(text: str) -> None:
    assert parse_choice(text, 4, CHOICES) is None


def test_the_pronoun_is_no_letter() -> None:
    for text in ("I think that it boils", "Answer: I am not sure", "I", "I would say so"):
        assert parse_choice(text, 9) == ("I" if text == "I" else None)
