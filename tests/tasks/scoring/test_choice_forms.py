"""Hedges that settle on no letter, and less usual forms that do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cl_bench.tasks.scoring.choice import parse_choice
from cl_bench.tasks.scoring.marks import marks, shares
from cl_bench.tasks.scoring.options import LETTERS

CHOICES = ("46.07", "water", "an increase", "C(=O)N")

# None of these settles on one letter.
HEDGES = [
    "Answer: {x}; {y}",
    "{x}. or {y}.",
    "The answer isn't {x}; {y} or {x}.",
    "<answer>{x}. is wrong</answer>",
    "The least likely answer is {x}.",
    "The less plausible option is {x}.",
    "Some would say the answer is {x}.",
    "People claim that the answer is {x}.",
    "answer: {x} {y}",
    "{x}. {y}.",
    "{x}.\n{y}.",
    "{x} (or {y})",
    "{x} (possibly {y})",
    "{x} (maybe also {y})",
    "{x}, alternatively {y}",
    "The answer is {x} or else {y}",
    "The answer is {x} as well as {y}.",
    "The answer is {x}. Another answer is {y}.",
    "The answer is {x}. Another possible answer could be {y}.",
    "The answer could be {x}, but also {y}.",
    "{x} as well as {y}",
    r"\boxed{{{x}}} \boxed{{{y}}}",
    r"\boxed{{{x}}}, \boxed{{{y}}}",
    "<answer>{x}</answer><answer>{y}</answer>",
    "<answer>{x}</answer> or <answer>{y}</answer>",
    "Least likely: {x}",
    "{x} ✗",
    "{x} ❌\n{y} ❌",
    "{x} ✅\n{y} ✅",
    "{x}: 10%\n{y}: 90%",
    "Students often answer {x}.",
    "Most people would answer {x}.",
    "incorrect: {x}",
    "Only {x} is inconsistent",
    "{x} does not fit",
    "{x} matches nothing",
    "Graph {x} matches the data",
    "{x}... or {y}",
    "{x} or {y}\n\nQuestion: What floats?\nAnswer: {y}",
    "The answer is {x}. Scratch that.\n\nQuestion: What floats?\nAnswer: {y}",
]
# Each of these settles on x.
FORMS = [
    "That leaves {x}",
    "That leaves us with {x}.",
    "By elimination, {x}.",
    "By process of elimination: {x}",
    "Only {x} is consistent",
    "only {x} works",
    "{x} fits best",
    "{x} matches the data",
    "{x} is the most plausible.",
    "We get {x}",
    "which corresponds to {x}",
    "{x}...",
    "{x}…",
    "Must be {x}",
    "I'll say {x}",
    "I would say {x}.",
    "Ans. {x}",
    "ans {x}",
    "correct: {x}",
    "Result: {x}",
    "=> {x}",
    "Let me see.\nQuestion: What floats?\nAnswer: {x}",
    "→ {x}",
    "Answer:\n- {x}",
    "Among A, B, C and D, only {x} satisfies the condition.",
    "Only {x} meets all requirements.",
    "After elimination, only {x} remains.",
    "The answer isn't {y}; {x}.",
    "The answer is not {y} — {x}",
    "Between {y} and {x}, {x} is the better choice.",
    "<answer>{x}. heavy</answer>",
    "<answer>({x}) a heavy one</answer>",
    "The least stable one is {x}.",
    "between {y} and {x}, {x} is better",
    "not {y}, but {x}",
    "{y}? No. {x}.",
    "{y}: incorrect\n{x}: correct",
    "{y} ❌\n{x} ✅",
    "{x} ✔\n{y} ✘",
    "{y}. 12 kg ❌\n{x}. 13 kg ✅",
    "\ufeff{x}",
    "\u200b{x}",
    "{x}\u0000",
    "<answer>{x}</answer><answer>{x}</answer>",
    r"\boxed{{{y}}} was too quick: \boxed{{{x}}}",
    "{y} ❌\n{x} ✅\n\nThe answer is {x}.",
]


@pytest.mark.parametrize("form", HEDGES)
@given(letters=st.permutations(LETTERS[:4]))
def test_hedges_are_no_answer(form: str, letters: list[str]) -> None:
    text = form.format(x=letters[0], y=letters[1])
    assert parse_choice(text) is None
    assert parse_choice(text, 4, CHOICES) is None


@pytest.mark.parametrize("form", FORMS)
@given(letters=st.permutations(LETTERS[:4]))
def test_forms_of_an_answer(form: str, letters: list[str]) -> None:
    text = form.format(x=letters[0], y=letters[1])
    assert parse_choice(text) == letters[0]
    assert parse_choice(text, 4, CHOICES) == letters[0]


@pytest.mark.parametrize(
    "text", ["A base fits best", "That leaves A base", "We get A gas", "We find A", "A works council"]
)
def test_an_article_is_no_letter(text: str) -> None:
    assert parse_choice(text) is None


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("the second option", "B"),
        ("The answer is the second option.", "B"),
        ("I choose the last one.", "D"),
        ("The answer is the fifth option", None),
        ("the second option is wrong", None),
        ("the second option is larger than the first", None),
    ],
)
def test_an_option_may_be_counted(text: str, letter: str | None) -> None:
    assert parse_choice(text, 4, CHOICES) == letter


# x is named as the answer; what is said of y, before or after, is said of another case or by others.
NAMED = [
    "The answer is {x}. For the opposite case the answer would be {y}.",
    "Had it been warmer the answer would be {y}. Here it is {x}.",
    "Answer: {x}\nTherefore, {y} is true for acids.",
    "The answer is {x}, so {y} is correct about the sign only.",
    "The answer is {x}. I choose {y} as the point of reference above.",
    "Answer: {x}\n\nOther options:\nOption {y} is the best choice for water only.",
    "The answer is {x}, although many would say the answer is {y}.",
    r"\boxed{{{x}}}. So {y} is right where it is cold.",
    "I choose {y} first. So the answer is {x}.",
    "Therefore {y}. Hmm, but {x} is the correct answer.",
    "The answer is {y} or {x}. I choose {x}.",
    "Answer: {y}. Then the answer is {x}.",
    "Most options fail, so I think the answer is {x}",
    "The answer is {x}. The answer {y} is wrong because the result is {y}.",
    "The result is {y}. Therefore, {x} is correct.",
    "One possible answer is {y}. I pick {x}.",
    "My guess is {y}. But the answer is {x}. The closest match is {y}",
]


@pytest.mark.parametrize("form", NAMED)
@given(letters=st.permutations(LETTERS[:4]))
def test_a_named_answer_outranks_what_else_is_chosen_or_called_right(form: str, letters: list[str]) -> None:
    text = form.format(x=letters[0], y=letters[1])
    assert parse_choice(text) == letters[0]
    assert parse_choice(text, 4, CHOICES) == letters[0]


@pytest.mark.parametrize("form", ["option {}", "Option {}.", "choice {}", "The answer would be {}."])
@given(letter=st.sampled_from(LETTERS[:4]))
def test_a_small_letter_may_stand_after_its_noun(form: str, letter: str) -> None:
    assert parse_choice(form.format(letter.lower())) == letter
    assert parse_choice("I see no " + form.format(letter.lower())) is None or "answer" in form
    assert parse_choice(f"option {letter.lower()} is wrong") is None


def test_marks_and_shares() -> None:
    found = marks("A: wrong\nB ✅\nC. heavy ❌\nD is correct for me")
    assert found.right == {"B"} and found.wrong == {"A", "C"} and found.only == "B"
    assert marks("A ✅\nA ❌").only is None
    assert marks("A. Incorrect: light.\nB. Correct: heavy.").right == frozenset()
    assert shares("A: 10%\n(B) ~ 89.5 %\nC: 1 % of it") == {"A", "B"}
