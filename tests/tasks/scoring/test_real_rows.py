"""Gold answers of the real rows, in every form a response may have, score 1.0, and an empty answer scores 0."""

from __future__ import annotations

import ast
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from cl_bench.tasks.base import Example, Score
from cl_bench.tasks.scoring.choice import parse_choice, score_choice
from cl_bench.tasks.scoring.filling import score_filling
from cl_bench.tasks.scoring.math import score_math
from cl_bench.tasks.scoring.number import score_number
from cl_bench.tasks.scoring.options import LETTERS
from cl_bench.tasks.scoring.tool_calls import canonical, gold_calls, score_tool_calls
from cl_bench.tasks.scoring.true_false import score_true_false

SAMPLE = os.environ.get("CL_BENCH_SAMPLE_ROWS")
pytestmark = pytest.mark.skipif(not SAMPLE, reason="CL_BENCH_SAMPLE_ROWS names no folder with real rows")
Scorer = Callable[[Example, str], Score]

SCIENCES = ("science_chemistry", "science_biology", "science_material", "science_physics")
TAGS = "<reasoning>\nx\n</reasoning>\n<answer>\n{}\n</answer>"
LETTER_FORMS: tuple[str, ...] = (
    TAGS,
    "{}",
    "({})",
    "{}.",
    "**{}**",
    r"\boxed{{\text{{{}}}}}",
    "Answer: {}",
    "The answer is {}.",
)
LETTER_FORMS += ("the correct answer is **({})**", "I choose {}", "{} is correct", "<think>A or C?</think>\n{}")
WITH_TEXT: tuple[str, ...] = (
    "{letter}. {text}",
    "({letter}) {text}",
    "Answer: {letter}: {text}",
    "The answer is **{letter}) {text}**",
)
WITH_TEXT += (
    "{options}\n\nThe answer is {letter}.",
    "{options}\n\n{letter}",
    "So:\n{options}\nHence {letter} is correct.",
)
TEXT_FORMS = ("{}", "The answer is {}", "Let me think.\n\n{}", "<answer>{}</answer>")
NUMBER_FORMS = (
    "{}",
    "#### {}",
    "The answer is {}.",
    "3 and 4 make ${}.",
    r"\boxed{{{}}} of 7",
    "#### {} which beats 5",
)
MATH_FORMS = (
    "{}",
    r"\boxed{{{}}}",
    "The answer is ${}$.",
    "The answer is {}.",
    "<answer>{}</answer>",
    "so $x$ and $${}$$",
)
FILLING_FORMS = (TAGS, "{}", "{}.", "The answer is {}", "The balanced equation is:\n\n{}", r"\boxed{{{}}}", "**{}**")
VERDICT_FORMS = (TAGS, "{}", "{}.", "The answer is: {}", "**{}**, because it is", r"\boxed{{{}}}")


def rows(name: str) -> list[Mapping[str, Any]]:
    lines = (Path(str(SAMPLE)) / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def example(row: Mapping[str, Any], answer: str, choices: Sequence[str] | None = None) -> Example:
    options = None if choices is None else tuple(choices)
    return Example("t", str(row["id"]), ({"role": "user", "content": "q"},), answer=answer, choices=options)


def choice_examples() -> Iterator[Example]:
    for name in SCIENCES:
        for row in rows(name):
            yield example(row, row["answerKey"], row["choices"]["text"])
    for row in rows("science_other_types"):
        if row["type"] == "mcq-2-choices":
            yield example(row, row["answerKey"], row["choices"]["text"])
    for row in rows("mmlu_pro"):
        yield example(row, row["answer"], row["options"])


def other_examples(kind: str) -> list[Example]:
    return [example(row, row["answer"]) for row in rows("science_other_types") if row["type"] == kind]


def number_examples() -> Iterator[Example]:
    for name in ("gsm8k_train", "gsm8k_test"):
        for row in rows(name):
            yield example(row, row["answer"].rpartition("####")[2].strip())
    for row in rows("svamp"):
        yield example(row, str(row["Answer"]))


def wrong(score: Scorer, examples: Sequence[Example], forms: Sequence[str]) -> list[tuple[str, str]]:
    """The (row, form) whose gold answer in that form is not right."""
    assert examples
    return [
        (row.id, form)
        for row in examples
        for form in forms
        if not score(row, form.format(row.answer)).correct or score(row, "").correct
    ]


def test_letters() -> None:
    assert not wrong(score_choice, list(choice_examples()), LETTER_FORMS)


def test_letters_with_their_texts_and_texts_alone() -> None:
    missed = []
    for row in choice_examples():
        choices = row.choices or ()
        gold = LETTERS.index(str(row.answer))
        options = "\n".join(f"{letter}. {text}" for letter, text in zip(LETTERS, choices, strict=False))
        texts = [form.format(letter=row.answer, text=choices[gold], options=options) for form in WITH_TEXT]
        folded = [text.strip().casefold() for text in choices]
        if folded.count(folded[gold]) == 1 and folded[gold].upper() not in LETTERS[: len(choices)]:
            texts += [form.format(choices[gold]) for form in TEXT_FORMS]
        missed += [(row.id, text) for text in texts if not score_choice(row, text).correct]
    assert not missed


def test_other_letters_denials_and_options_said_again_are_wrong() -> None:
    for row in choice_examples():
        other = LETTERS[(LETTERS.index(str(row.answer)) + 1) % len(row.choices or ())]
        options = "\n".join(f"{letter}: {text}" for letter, text in zip(LETTERS, row.choices or (), strict=False))
        for text in (other, f"{row.answer} is incorrect", f"{row.answer} or {other}", options, f"not {row.answer}"):
            assert not score_choice(row, text).correct, (row.id, text)


PROSE = {
    "gsm8k_train": ("question", "answer"),
    "gsm8k_test": ("question", "answer"),
    "math500": ("problem", "solution"),
    "svamp": ("Body", "Question"),
    "ifeval": ("prompt",),
    "piqa": ("goal", "sol1", "sol2"),
    "hellaswag": ("ctx",),
}


def test_prose_is_no_letter() -> None:
    texts = [(name, str(row[field])) for name, fields in PROSE.items() for row in rows(name) for field in fields]
    assert len(texts) > 1_000
    assert not [text for _, text in texts if len(text.split()) > 4 and parse_choice(text)]


def test_numbers() -> None:
    assert not wrong(score_number, list(number_examples()), NUMBER_FORMS)
    for name in ("gsm8k_train", "gsm8k_test"):
        for row in rows(name):
            score = score_number(example(row, row["answer"].rpartition("####")[2].strip()), row["answer"])
            assert score.correct and score.format_ok, row["id"]


def test_math() -> None:
    problems = [example(row, row["answer"]) for row in rows("math500")]
    assert not wrong(score_math, problems, MATH_FORMS)
    for problem, row in zip(problems, rows("math500"), strict=True):
        score = score_math(problem, row["solution"])
        assert score.correct and score.format_ok and score.unreliable is None, row["id"]


def test_filling() -> None:
    examples = other_examples("filling")
    assert not wrong(score_filling, examples, FILLING_FORMS)
    everything = ", ".join(str(row.answer) for row in examples)
    assert not any(score_filling(row, everything).correct for row in examples)


def test_true_or_false() -> None:
    examples = other_examples("true_or_false")
    assert not wrong(score_true_false, examples, VERDICT_FORMS)
    for row in examples:
        opposite = {"Yes": "No", "No": "Yes"}[str(row.answer)]
        assert not any(score_true_false(row, form.format(opposite)).correct for form in VERDICT_FORMS)


def written(call: tuple[str, Any], layout: str) -> str:
    return layout.format(name=call[0], arguments=json.dumps(call[1]))


def test_tool_calls() -> None:
    swapped = 0
    for row in [*rows("tooluse_train"), *rows("tooluse_eval")]:
        gold = row["golden_answer"]
        calls = gold_calls(ast.literal_eval(gold) if isinstance(gold, str) else gold)
        row_example = example(row, canonical(calls))
        for layout in (
            "Thought: x\nAction: {name}\nAction Input: {arguments}",
            "Action: {name}\nAction Input:\n```json\n{arguments}\n```",
            "**Action:** {name}\n**Action Input:** {arguments}",
        ):
            for ordered in (calls, calls[::-1]):
                assert score_tool_calls(row_example, "\n".join(written(call, layout) for call in ordered)).correct
        assert not score_tool_calls(row_example, "").correct
        moved = [(call[0], other[1]) for call, other in zip(calls, [*calls[1:], calls[0]], strict=True)]
        if canonical(moved) != canonical(calls):
            swapped += 1
            text = "\n".join(written(call, "Action: {name}\nAction Input: {arguments}") for call in moved)
            assert not score_tool_calls(row_example, text).correct
    assert swapped
