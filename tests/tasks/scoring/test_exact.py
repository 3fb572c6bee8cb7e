from __future__ import annotations

import pytest

from cl_bench.tasks.base import Example
from cl_bench.tasks.scoring.exact import score_exact


@pytest.mark.parametrize(
    ("text", "correct", "format_ok"),
    [
        (" blue  whale. ", True, True),
        ("It is large, so the answer is blue whale.", True, False),
        ("Answer: Blue whale", True, False),
        ("<answer>blue whale</answer>", True, False),
        ("<think>shark</think>blue whale", True, False),
        ("The answer is shark. No, the answer is:\nblue whale", True, False),
        ("The answer is **blue whale**", True, False),
        ("The answer is **blue whale**.", True, False),
        ("The answer is shark. Wait, no. Blue whale.", True, False),
        ("The answer is shark.\nBut actually blue whale", True, False),
        ("The answer is blue whale.\nBut actually shark", False, False),
        ("The answer is blue whale. Wait, that's wrong.", False, False),
        ("The answer is blue whale.\nActually, many people would have thought of a shark.", True, False),
        ("<answer>shark</answer> or <answer>blue whale</answer>", False, False),
        ("not the blue whale", False, False),
        ("<think>blue whale", False, False),
        ("", False, False),
    ],
)
def test_exact_answer_alone_tagged_or_stated(text: str, correct: bool, format_ok: bool) -> None:
    example = Example("t", "1", ({"role": "user", "content": "q"},), answer="Blue Whale")
    score = score_exact(example, text)
    assert (score.correct, score.format_ok) == (correct, format_ok)


def test_nothing_is_never_right() -> None:
    score = score_exact(Example("t", "1", ({"role": "user", "content": "q"},), answer=""), "")
    assert (score.correct, score.parsed, score.format_ok) == (False, None, False)


@pytest.mark.parametrize("answer", ["no, thanks", "Sorry, no", "wait", "a - b", "edit: x"])
def test_an_answer_may_look_like_a_retraction(answer: str) -> None:
    example = Example("t", "1", ({"role": "user", "content": "q"},), answer=answer)
    assert score_exact(example, answer).correct and score_exact(example, f"Answer: {answer}").correct
