from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cl_bench.tasks.base import Example
from cl_bench.tasks.scoring.choice import parse_choice, score_choice
from cl_bench.tasks.scoring.options import LETTERS, Options

CHOICES = ("46.07", "steam", "an increase", "C(=O)N")
MASSES = ("10", "18 g", "18 kg", "46.07 g/mol")
LISTED = "\n".join(f"{letter}. {choice}" for letter, choice in zip(LETTERS, CHOICES, strict=False))


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("46.07", "A"),
        ("Steam.", "B"),
        ("The answer is 46.07.", "A"),
        ("The answer is 46.07 g/mol.", "A"),
        ("The answer is approximately 46.07", "A"),
        ("The answer is about 46.07 g/mol.", "A"),
        ("46.07 g/mol", "A"),
        ("≈ 46.07 g/mol", "A"),
        ("46.08 g/mol", None),
        ("46.07 or 46.08", None),
        ("The answer is 46.07 (A).", "A"),
        ("The answer is **steam**, because it is hot", "B"),
        ("Answer: an increase", "C"),
        ("the answer is the steam", "B"),
        ("The answer is C(=O)N", "D"),
        ("<answer>steam</answer>", "B"),
        (r"\boxed{46.07}", "A"),
        ("It is hot and wet.\n\nsteam", "B"),
        ("It is hot and wet.\n\nB. steam", "B"),
        ("The answer is A. Wait, the answer is steam.", "B"),
        ("The answer is A. The solution is steam.", "A"),
        ("The solution is steam, so the answer is A", "A"),
        # A letter with another option's text: which of the two is meant is not known.
        ("The answer is B: 46.07", None),
        ("B. 46.07", None),
        ("<answer>B) an increase</answer>", None),
        ("B. 46.07 is too small a mass, it must boil", "B"),
        ("B=steam", "B"),
        ("A = 46.07", "A"),
        ("B = 46.07", None),
        ("The answer is 46", None),
        ("The answer is 46.075", None),
        ("The answer is 46.07 or 50", None),
        ("The answer is not 46.07.", None),
        ("The answer is steamed", None),
        ("The answer is an increase in mass", None),
        ("46.07\nsteam\nan increase", None),
        ("Steam is hot", None),
        ("Answer: A) 46.07 or B) steam", None),
        (LISTED, None),
        (LISTED.replace("\n", " "), None),
        (f"The options are:\n{LISTED}", None),
        (f"Answer: {LISTED}", None),
        (f"{LISTED}\n\nC", "C"),
        (f"{LISTED}\n\nThe closest option is:\n\nC. an increase", "C"),
        (f"We need the closest option to this value:\n\n{LISTED}\n\nThe answer is (C).", "C"),
    ],
)
def test_an_option_may_be_named_by_its_text(text: str, letter: str | None) -> None:
    assert parse_choice(text, 4, CHOICES) == letter


@pytest.mark.parametrize(
    ("choices", "text", "letter"),
    [
        (("CO", "Co", "co2", "C"), "The answer is Co", "B"),
        (("CO", "Co", "co2", "N"), "The answer is co", None),
        (("same", "same", "other", "x"), "same", None),
        (("2", "2.5", "-2", "25"), "The answer is -2", "C"),
        (("3.23", "-0.2", ".5", "2"), "A: 3.23\nB: -0.2\nC: .5\nD: 2", None),
        # An option that is a letter is named by its own letter only.
        (("B", "A", "D", "C"), "The answer is B", "B"),
        (("D", "F", "3F", "9F"), "The answer is F", "B"),
        (("None of the above", "x", "y", "z"), "The answer is none of the above", "A"),
        (("i", "-i", "1", "-1"), "C is incorrect.", None),
        (("What is it?", "Why?", "Who?", "When?"), "The answer is B: Why?", "B"),
        (("(a) first (b) last", "x", "y", "z"), "(a) first (b) last", "A"),
        (("yes", "no", "maybe", "never"), "The answer is no, for it sinks.", "B"),
    ],
)
def test_texts_that_look_alike(choices: tuple[str, ...], text: str, letter: str | None) -> None:
    assert parse_choice(text, 4, choices) == letter


@given(
    st.permutations(["46.07", "steam", "an increase", "C(=O)N"]),
    st.sampled_from(["{}", "The answer is {}.", "x\n\n{}"]),
)
def test_permuting_options_permutes_verdicts(choices: list[str], form: str) -> None:
    assert parse_choice(form.format("steam"), 4, choices) == LETTERS[choices.index("steam")]


@given(
    st.lists(st.from_regex(r"[a-z0-9()=+.-]{2,12}", fullmatch=True), min_size=4, max_size=10, unique_by=str.casefold)
)
def test_each_option_is_named_by_itself_and_by_its_letter_with_it(choices: list[str]) -> None:
    options = Options.of(len(choices), choices)
    for letter, text in zip(options.letters, options.texts, strict=True):
        assert options.named(text) in (letter, None)
        assert options.own_at(letter, f". {text}", 0) or not text
        assert parse_choice(f"The answer is {letter}. {text}", len(choices), choices) == letter


def test_a_text_is_a_lenient_reading_only() -> None:
    example = Example("t", "1", ({"role": "user", "content": "q"},), answer="B", choices=CHOICES)
    score = score_choice(example, "<reasoning>hot</reasoning><answer>steam</answer>")
    assert (score.correct, score.parsed, score.format_ok) == (True, "B", False)


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("46.07 g/mol", "D"),
        ("46.07", "D"),
        ("The answer is 46.07.", "D"),
        ("46.07 kg", None),
        ("10", "A"),
        ("10 g", "A"),
        ("18 g", "B"),
        ("18 kg.", "C"),
        ("18", None),
        ("18 mg", None),
    ],
)
def test_a_number_names_its_option_without_a_unit_too(text: str, letter: str | None) -> None:
    assert parse_choice(text, 4, MASSES) == letter


def test_a_tag_holds_a_letter_with_whatever_text_that_is_not_another_options() -> None:
    assert parse_choice("<answer>B. a lot of it</answer>", 4, CHOICES) == "B"
    for text in ("B. an increase", "B. is wrong", "B. a lot, (C) a little", "E. a lot", "B. a lot\nC. a little"):
        assert parse_choice(f"<answer>{text}</answer>", 4, CHOICES) is None
