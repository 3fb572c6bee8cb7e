from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cl_bench.tasks.base import Example
from cl_bench.tasks.scoring.choice import LETTERS, parse_choice, score_choice

CHOICES = ("46.07", "water", "an increase", "C(=O)N")


def example(gold: str, choices: tuple[str, ...] = CHOICES) -> Example:
    return Example("t", "1", ({"role": "user", "content": "q"},), answer=gold, choices=choices)


# Each of these is B, whatever the options say.
ONE_LETTER = [
    "B",
    "b",
    "B.",
    "B)",
    "(B)",
    "[B]",
    "(b)",
    "'B'",
    "\n\nB\n\n",
    "B\n\n\nB\n",
    "Ｂ",
    "- B",
    "1. B",
    "B. Steam",
    "B) steam",
    "(B) steam",
    "B: because of symmetry",
    "B - steam",
    "B, because it is heavier",
    "B because it is heavier",
    "B\n\nExplanation: A is too light.",
    "B. Steam\n\nExplanation:\nA. Incorrect, for it is light.\nC. Incorrect, too.",
    "**B**",
    "**B.** steam",
    "**B) steam**",
    "**(B)**",
    "__B__",
    "*B*",
    "`B`",
    "<b>B</b>",
    "B</s>",
    "B<|im_end|>",
    r"\boxed{B}",
    r"$\boxed{B}$",
    r"\[\boxed{B}\]",
    r"so we get \boxed{B}.",
    r"\boxed{\text{B}}",
    r"\boxed{\textbf{(B)}}",
    r"\boxed{\mathrm{B}}",
    r"\boxed{B. Steam}",
    r"\boxed{\text{Option B}}",
    r"First \boxed{A}. Wait, no: \boxed{B}",
    "Answer: B",
    "answer: b",
    "ANSWER: B",
    "Answer:B",
    "Answer : B",
    "Answer: (B)",
    "Answer: [B]",
    "Answer = B",
    "Answer - B",
    "**Answer:** B",
    "**Answer**: B",
    "**Answer: B**",
    "Answer: **B. Steam**",
    "Answer: B – steam",
    "Answer: B.Steam",
    "### Answer\n\nB",
    "**Final Answer**\n\nB",
    "Answer:\n\n**B**",
    "Final Answer: B",
    "Correct option: B",
    "Answer: B\nExplanation: because A is a gas",
    '{"answer": "B"}',
    "The answer is B",
    "The answer is (B)!",
    'The answer is "B"',
    "The answer is $B$.",
    r"The answer is \(B\).",
    r"The answer is \textbf{B}.",
    "the answer is b.",
    "The answer is therefore B",
    "The answer is most likely (B).",
    "The answer would be B",
    "The answer to the question is B.",
    "The answer is\n\n(B)",
    "The answer is option B",
    "The answer is choice (B): steam",
    "The correct answer is **(B)**",
    "The correct option is **B**.",
    "The right answer is B!",
    "The correct letter is B",
    "My answer is B",
    "So the answer is B, which is steam",
    "The best choice is B: steam",
    "The closest option is:\n\nB. Steam",
    "The answer is A. Actually, the answer is B.",
    "First I thought the answer is A. But the answer is B.",
    "The answer might be A, but the answer is B",
    "The answer is A, no wait, B",
    "Option B",
    "Choice B",
    "choice (B)",
    "Answer B",
    "It matches option B",
    "This corresponds to (B).",
    "Option A is incorrect. Option B is correct. Option D is wrong.",
    "Therefore, option B describes this best.",
    "I choose B",
    "I'd go with B.",
    "I will go with option B: steam.",
    "We select option B because it fits",
    "Choose B.",
    "I think it's B",
    "I believe the answer is (B)",
    "My choice is (B)",
    "Therefore, B.",
    "Hence (B).",
    "It must be B.",
    "Yes, B.",
    "Probably B",
    "B is correct",
    "So, B is correct.",
    "(B) is right",
    "Only B is correct",
    "B (steam) is the correct answer",
    "B would be the correct choice.",
    "B is the answer",
    "Among A, B, C, and D, B is the best answer.",
    "A is incorrect. B is correct.",
    "A is wrong, so the answer is B",
    "A and C are wrong, so the answer is B.",
    "the answer is not A, it is B",
    "The answer is not A. It is B.",
    "The answer is not A but B.",
    "It's not A, it's B.",
    "The answer can't be A, so it must be B.",
    "The answer is B, not A.",
    "The answer is B rather than A",
    "The answer is B and C is wrong",
    "The answer is (B) because option (A) is wrong.",
    "There is no doubt that the answer is B",
    "I'm not sure, but the answer is B",
    "The answer could be A or B. I choose B.",
    "Let me check if A is correct. No: B is correct.",
    "Let me think.\n\nB",
    "Let me think.\n\n**(B)**",
    "Comparing A and C, both are too light. The answer is B",
    "Answer: B\n\nExplanation: C is correct only when it is cold. D is not correct.",
    "The answer is B.\n\nC. is wrong because it is light\nD. is wrong, too",
    "The answer is B.\n\nQuestion: What is heavier?\nA: lead\nAnswer: C",
    "答案是B",
    "答案：B",
    "所以选B。",
    "<answer>B</answer>",
    "<reasoning>x</reasoning><answer>B</answer>",
    "<answer>B",
    "<answer> B. </answer>",
    "<answer>b</answer>",
    "<answer>(B) steam</answer>",
    r"<answer>\boxed{B}</answer>",
    "<answer>The answer is B</answer>",
    "<answer>A</answer> no, wait <answer>B</answer>",
    "<answer>B</answer><answer></answer>",
    "The answer is A <answer>B</answer>",
    "<reasoning>The answer is A, I never close this <answer>B</answer>",
    "<think>The answer is A</think>The answer is B",
    "The answer is A</think>B",
    "<reasoning>perhaps A</reasoning>\nB",
]


@pytest.mark.parametrize("choices", [(), CHOICES])
@pytest.mark.parametrize("text", ONE_LETTER)
def test_one_letter_is_read(text: str, choices: tuple[str, ...]) -> None:
    assert parse_choice(text, 4, choices) == "B"


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize("form", ["{}", "Answer: {}", "({}) x", "The answer is {} because it fits.", "{} is correct."])
def test_ten_options(letter: str, form: str) -> None:
    assert parse_choice(form.format(letter), 10) == letter
    assert parse_choice(form.format(letter), LETTERS.index(letter)) != letter


def test_a_mention_of_the_gold_letter_is_not_enough() -> None:
    text = "Based on the data, answer A."
    # The official scorer counts a response right if the gold letter is anywhere in it.
    assert "B" in text
    score = score_choice(example("B"), text)
    assert (score.correct, score.parsed) == (False, "A")
    assert score_choice(example("A"), text).correct


def test_strict_form_is_reasoning_then_answer_and_nothing_else() -> None:
    good = score_choice(example("B"), "<reasoning>\nsteps\n</reasoning>\n<answer>\nB\n</answer>\n")
    assert (good.correct, good.format_ok, good.parsed) == (True, True, "B")
    loose = score_choice(example("B"), "The answer is B")
    assert (loose.correct, loose.format_ok) == (True, False)
    assert score_choice(example("B"), "<think>A?</think><reasoning>x</reasoning><answer>B</answer>").format_ok
    wrong = score_choice(example("B"), "<reasoning>x</reasoning><answer>C</answer>")
    assert (wrong.correct, wrong.format_ok) == (False, True)
    for other in (
        "<reasoning>x</reasoning><answer>B</answer> or C",
        "<answer>B</answer>",
        "<reasoning>x</reasoning><answer>J</answer>",
        "<reasoning>x</reasoning><answer>B.</answer>",
        "B",
    ):
        assert not score_choice(example("B"), other).format_ok


# x and y are two different letters; the verdict is x, or None.
TEMPLATES = [
    ("{x}", True),
    ("The answer is {x}, not {y}.", True),
    ("The answer is not {y}, it is {x}.", True),
    ("{y} is incorrect. {x} is correct.", True),
    ("Option {y} is too small, so I choose {x}.", True),
    ("<reasoning>{y}?</reasoning><answer>{x}</answer>", True),
    ("It is {y}</think>**{x}**", True),
    ("Given that {y} is a metal, the answer must be ({x})", True),
    ("{x} because {y} is too heavy", True),
    ("The answer is {x} or {y}", False),
    ("{x} is incorrect, {y} is incorrect", False),
    ("The answer is not {x}.", False),
    ("Neither {x} nor {y} is correct", False),
]


@given(st.permutations(LETTERS), st.sampled_from(TEMPLATES))
def test_permuting_letters_permutes_verdicts(letters: list[str], template: tuple[str, bool]) -> None:
    text, decides = template
    assert parse_choice(text.format(x=letters[0], y=letters[1]), 10) == (letters[0] if decides else None)


@given(st.text(alphabet=" \n\t.*-_#>\"'()[]", max_size=30), st.sampled_from(LETTERS[:4]))
def test_an_empty_answer_is_never_correct(text: str, gold: str) -> None:
    for response in (text, f"<answer>{text}</answer>", f"<think>{gold}</think>{text}", f"\\boxed{{{text}}}"):
        assert not score_choice(example(gold), response).correct
