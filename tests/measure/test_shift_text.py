"""What answers look like: drift against earlier ones, and artefacts, each planted."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cl_bench.harness.measure.shift.artefacts import (
    artefact_rates,
    artefact_records,
    artefacts_of,
    broken_blocks,
    fenced_blocks,
    leaked_template,
    ngram_growth,
)
from cl_bench.harness.measure.shift.records import Record
from cl_bench.harness.measure.shift.responses import drift_records
from cl_bench.methods import opsd, rft, sdpo
from cl_bench.methods.training.conditioning import DEFAULT_TEMPLATE
from cl_bench.tasks.lab.conditioning import COMBINED, TRAINED

CLEAN = "The metal melts at 40 degrees, so the answer is 40."
SPECIAL = ("<|im_end|>", "<|endoftext|>")


def row(text: str | None, id_: str = "1", ended: str = "eos", tokens: int = 5) -> dict[str, Any]:
    return {"id": id_, "response": text, "tokens": tokens, "ended": ended}


PLANTED = {
    "repetition": [
        "it is 4 and " * 6,
        "\\boxed{4} " * 40,
        "abcab" * 80,
    ],
    "leaked_template": [
        f"{CLEAN}<|im_end|>",
        f"{CLEAN}\nuser\nWhat is next?",
        f"{CLEAN}\nassistant",
        "[INST] What? [/INST] 4",
        "<start_of_turn>model 4",
        "### Response: 4",
    ],
    "leaked_teacher": ["As in the reference solution, it is 4.", "Reference: 4. So 4.", "The example response says 4."],
    "broken_blocks": [
        "```python\nprint(4)",
        "```\nprint(4)\n```\nor\n```\nprint(4)\n```",
        "<think>it is 4",
        "<think>a</think><think>b</think>4",
        "So \\boxed{4}, that is \\boxed{4}.",
    ],
}


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in PLANTED.items() for text in texts])
def test_each_planted_artefact_is_found_as_what_it_is(kind: str, text: str) -> None:
    found = artefacts_of(row(text), SPECIAL)
    assert found[kind] and found["any"]


@pytest.mark.parametrize(
    "text",
    [
        CLEAN,
        "",
        "```python\nprint(4)\n```",
        "<think>it is 4</think>\n4",
        "it was opened by the template</think>\n4",
        "The user asks for the system's state. \\boxed{4}",
        "system",
        "1, 2, 3, 4, 5, 6, 7, 8, 9",
        "a < b and c > d | e",
    ],
)
def test_clean_answers_have_none(text: str) -> None:
    assert not any(artefacts_of(row(text), SPECIAL).values())


ANY_ROLE_LINE = re.compile(r"\n\s*(?:user|assistant|system)\s*:?\s*(?:\n|$)", re.IGNORECASE)
"""What a line with a role alone is, in a form that takes the square of an answer's length."""
_PIECES = st.sampled_from(["user", "System", "ASSISTANT", ":", "\n", " ", "\t", "\r", "\x0b", "\u2028", "\xa0", "x"])


@given(st.lists(_PIECES, max_size=12).map("".join))
@example("user\n:\n")
@example("a\nuser\n")
@example("a\n\n  user  :  \n")
def test_a_line_that_only_names_a_role_is_found_wherever_it_was(text: str) -> None:
    assert leaked_template(text) is bool(ANY_ROLE_LINE.search(text))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("\n" * 200_000, False),
        ("\nuser" + " " * 200_000 + "x", False),
        ("\n" + " " * 200_000 + "x", False),
        ("\nuser:" + " " * 200_000 + "x", False),
        ("\n" * 200_000 + "user" + " " * 1000, True),
    ],
)
def test_long_answers_of_blanks_are_searched_too(text: str, found: bool) -> None:
    assert leaked_template(text) is found


@given(st.lists(st.sampled_from(["```", "`", "\n", "\r", "a", " "]), max_size=14).map("".join))
def test_code_blocks_stand_between_fences(text: str) -> None:
    assert fenced_blocks(text) == re.findall(r"```[^\n]*\n(.*?)```", text, re.DOTALL)


def test_long_answers_of_fences_are_searched_too() -> None:
    assert broken_blocks("```\na\n```\nb" * 20_000)
    assert not broken_blocks("```" * 50_000 + "\n" + "a" * 50_000)


def test_truncation_is_counted_apart() -> None:
    found = artefacts_of(row(CLEAN, ended="length"))
    assert found["truncation"] and not found["any"]


def by_name(records: list[Record]) -> dict[tuple[str, str], Record]:
    return {(record.measure, record.against): record for record in records}


def test_rates_are_absolute_and_beyond_the_untouched_models() -> None:
    bad = PLANTED["leaked_template"][0]
    base = {"a": [row(bad, "1"), *(row(CLEAN, str(i)) for i in range(2, 5))]}
    previous = {"a": [row(bad, str(i)) for i in range(1, 4)] + [row(CLEAN, "4")]}
    after = {"a": [row(bad, "1"), row(bad, "2"), row(CLEAN, "3"), row(CLEAN, "4", ended="length")]}
    found = by_name(artefact_records(after, {"base": base, "previous": previous}, SPECIAL))
    assert found["artefact_rate", "none"].value == 0.5
    assert found["artefact_rate", "none"].by["truncation"] == 0.25
    assert found["artefact_rate_change", "base"].value == 0.25
    assert found["artefact_rate_change", "previous"].value == -0.25
    assert found["artefact_rate", "none"].n == 4


def test_choices_by_likelihood_are_no_answers() -> None:
    assert artefact_rates({"a": [row("<|im_end|>", tokens=0), row(None)]}, SPECIAL) == (0, {})
    found = by_name(artefact_records({"a": [row(None)]}, {"base": {}, "previous": {}}, SPECIAL))
    for record in found.values():
        assert record.value is None and record.reason


def test_the_word_that_spreads_comes_first_and_one_loop_is_no_growth_of_many() -> None:
    before = [f"the answer is {i}" for i in range(60)]
    after = [f"the answer is \\boxed {i}" for i in range(40)] + [f"the answer is {i}" for i in range(20)]
    growing = ngram_growth(before, after)
    assert next(iter(growing)) in {"\\boxed", "is \\boxed"}
    assert list(growing.values()) == sorted(growing.values(), reverse=True)
    assert ngram_growth(before, before) == {}
    assert "loop" not in ngram_growth(before, [*before, "loop " * 500])


@pytest.mark.parametrize("planted", ["zyx", "so it"])
def test_what_was_planted_leads_and_what_was_frequent_before_does_not(planted: str) -> None:
    draw = random.Random(0)
    words = [f"w{number}" for number in range(30)]
    before = [" ".join(draw.choices(words, k=12)) for _ in range(200)]
    after = [" ".join(draw.choices(words, k=12)) + (f" {planted}" if i % 4 == 0 else "") for i in range(200)]
    growing = ngram_growth(before, after)
    assert planted in list(growing)[:3] and growing[planted] > 4
    # Chance alone: words drawn alike on both sides stay far below what was planted.
    others = [z for gram, z in growing.items() if not set(gram.split()) & set(planted.split())]
    assert max(others, default=0.0) < growing[planted]
    assert planted not in ngram_growth(after, before), "what became rare did not grow"


def test_rows_that_only_one_side_answered_change_and_grow_nothing() -> None:
    old = {"a": [row(CLEAN, str(i)) for i in range(8)]}
    looping = [row(PLANTED["repetition"][0] + " zyx", str(i)) for i in range(8)]
    found = by_name(artefact_records({**old, "new": looping}, {"base": old, "previous": {"b": looping}}, SPECIAL))
    assert found["artefact_rate", "none"].value == 0.5 and found["artefact_rate", "none"].n == 16
    assert (found["artefact_rate_change", "base"].value, found["artefact_rate_change", "base"].n) == (0, 8)
    assert found["ngram_growth", "base"].value is None and found["ngram_growth", "base"].reason == "no n-gram grew"
    previous = found["artefact_rate_change", "previous"]
    assert previous.value is None and "in both rows" in previous.reason and previous.n == 0


def test_two_rows_the_same_have_neither_drift_nor_change() -> None:
    rows = {"a": [row(CLEAN, "1"), row(PLANTED["leaked_template"][0], "2", ended="length")]}
    drift = {record.measure: record.value for record in drift_records(rows, rows, "previous")}
    assert set(drift.values()) == {1.0}
    found = by_name(artefact_records(rows, {"base": rows, "previous": rows}, SPECIAL))
    change = found["artefact_rate_change", "base"]
    assert change.value == 0 and set(change.by.values()) == {0}
    assert found["ngram_growth", "base"].value is None


TEACHERS = (
    sdpo.SOLUTION_TEMPLATE,
    sdpo.FEEDBACK_TEMPLATE,
    opsd.SOLUTION_TEMPLATE,
    rft.HINT_TEMPLATE,
    DEFAULT_TEMPLATE,
    *TRAINED[:1],
    *COMBINED,
)


@pytest.mark.parametrize("template", TEACHERS)
def test_every_wording_that_shows_a_teacher_more_than_the_student_is_known(template: str) -> None:
    shown = template.replace("{question}", "").replace("{demonstration}", "4").replace("{attempt}", "3")
    assert artefacts_of(row(f"{CLEAN} {shown}"))["leaked_teacher"]


def test_drift_of_answers_against_earlier_ones() -> None:
    before = {"a": [row("one two three four", "1", tokens=4), row("same", "2", tokens=2), row("gone", "3")], "b": []}
    after = {"a": [row("one two three five", "1", tokens=8), row("same", "2", tokens=1)], "b": [row("new", "9")]}
    found = {record.measure: record for record in drift_records(before, after, "base")}
    assert found["response_length_ratio"].value == pytest.approx(9 / 6)
    assert found["response_exact_match"].value == 0.5
    assert found["response_edit_similarity"].value == pytest.approx((0.75 + 1) / 2)
    assert found["response_exact_match"].n == 2
    assert dict(found["response_exact_match"].by) == {"a": 0.5}


def test_a_row_whose_every_answer_is_empty_has_numbers() -> None:
    before = {"a": [row(CLEAN, str(i), tokens=4) for i in range(6)]}
    after = {"a": [row("", str(i), tokens=1) for i in range(6)]}
    drift = {record.measure: record for record in drift_records(before, after, "base")}
    assert {record.n for record in drift.values()} == {6}, "to say nothing is an answer, too"
    assert drift["response_length_ratio"].value == 0.25
    assert drift["response_exact_match"].value == drift["response_edit_similarity"].value == 0
    found = by_name(artefact_records(after, {"base": before, "previous": after}, SPECIAL))
    assert (found["artefact_rate", "none"].value, found["artefact_rate", "none"].n) == (0, 6)
    assert found["ngram_growth", "base"].reason == "no n-gram grew"


def test_no_answers_in_both_rows_is_null_with_a_reason() -> None:
    for record in drift_records({"a": [row("x", "1")]}, {"a": [row("x", "2")]}, "previous"):
        assert record.value is None and record.reason and not record.by
