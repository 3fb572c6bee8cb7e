from __future__ import annotations

import pytest

from cl_bench.tasks.scoring.reading import (
    BOX_CLOSE,
    BOX_OPEN,
    answer_part,
    boxes,
    first_turn,
    last_boxed,
    plain,
    stated,
    tag_form,
    tagged,
    tagged_answer,
    without_end_tokens,
)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("so B", "so B"),
        ("<think>a</think>b", "b"),
        ("a</think>b", "b"),
        ("<think>a</think>b<think>c</think>d", "d"),
        ("a<think>b", "a"),
        ("<Thinking>a</Thinking>b", "b"),
        ("x<reasoning>a</reasoning>b", "xb"),
        ("a</reasoning>b", "b"),
        ("<answer>B</answer></reasoning>", "<answer>B</answer>"),
        ("<reasoning>a", ""),
        ("<reasoning>a<answer>B</answer>", "<answer>B</answer>"),
        ("<reasoning>a</reasoning><answer>B</answer></reasoning>", "<answer>B</answer></reasoning>"),
        ("b<|im_end|></s>", "b"),
        ("\ufeff\u200bb\x00", "b"),
    ],
)
def test_reasoning_blocks_are_set_aside(text: str, part: str) -> None:
    assert answer_part(text) == part


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("no tag", None),
        ("<answer>B</answer>", "B"),
        ("<Answer> B ", "B"),
        ("<answer>A</answer><answer>B</answer>x", "B"),
        ("<answer>A</answer><answer> </answer><answer>", "A"),
        ("<answer></answer>", ""),
    ],
)
def test_last_tag_that_holds_anything(text: str, content: str | None) -> None:
    assert tagged(text) == content


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("no tag", None),
        ("<answer></answer>", ""),
        ("<answer>A</answer><answer>B</answer>", "A or B"),
        ("<answer>A</answer> or <answer>B</answer>", "A or B"),
        ("<answer>A</answer>\n<answer>B</answer>, <answer>C</answer>", "A or B or C"),
        ("<answer>B</answer> <answer>B</answer>", "B"),
        ("<answer>A</answer> no, wait <answer>B</answer>", "B"),
        ("<answer>B</answer><answer> </answer>", "B"),
    ],
)
def test_tags_side_by_side_are_one_answer(text: str, content: str | None) -> None:
    assert tagged_answer(text) == content


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("<reasoning>a</reasoning><answer>B</answer>", "B"),
        ("\n<reasoning>a\n</reasoning>\n\n<answer> B </answer>\n", "B"),
        ("<think>x</think>\n<reasoning>a</reasoning><answer>B</answer>", "B"),
        ("<reasoning>a</reasoning>x<answer>B</answer>", None),
        ("x<reasoning>a</reasoning><answer>B</answer>", None),
        ("<answer>B</answer>", None),
        ("<reasoning>a</reasoning><answer>B", None),
    ],
)
def test_tag_form(text: str, content: str | None) -> None:
    assert tag_form(text) == content


@pytest.mark.parametrize(
    ("text", "content"),
    [
        (r"\boxed{1} and \boxed{2}", "2"),
        (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        (r"\boxed {\{1, 2\}}", r"\{1, 2\}"),
        (r"\fbox{3}", "3"),
        (r"\boxed{1} \boxed{}", "1"),
        (r"\boxed{1} \boxed{2", "1"),
        (r"{\boxed{}}}}", None),
        (r"\boxed{\{}", r"\{"),
        ("boxed", None),
    ],
)
def test_last_box_with_balanced_braces(text: str, content: str | None) -> None:
    assert last_boxed(text) == content


def test_boxes_within_boxes_end_first() -> None:
    assert [box.content for box in boxes(r"\boxed{a \boxed{b}}")] == ["b", r"a \boxed{b}"]


def test_statements_come_last_first() -> None:
    text = "The answer is 1.\nFinal answer:\n\n**2**\nThe answer to part (a) would be 3\nanswers vary. answer:"
    assert [line for _, line in stated(text)] == ["3", "2**", "1."]


def test_a_question_of_its_own_ends_the_first_turn() -> None:
    assert first_turn("#### 7\n\nQuestion: What?\n#### 8") == "#### 7\n"
    assert first_turn("The question: what?") == "The question: what?"


def test_plain_text_has_no_markup() -> None:
    text = "### The  **answer**\u00a0is \\(\\text{\\textbf{B}}\\)\n\n\n> or “$C$” <b>x</b> \\boxed{\\mathrm{D}}"
    assert plain(text) == f'The answer is B\nor "C" x {BOX_OPEN}D{BOX_CLOSE}'


def test_special_tokens_go_at_the_ends_only() -> None:
    assert without_end_tokens("<s>x = '<s>'</s>\n<|im_end|>\n") == "x = '<s>'"
    assert without_end_tokens("\ufeffx = 1\n") == "x = 1\n"
