"""Signs of collapse are reported against the untouched model, and only then."""

from __future__ import annotations

from typing import Any

from cl_bench.harness.measure.collapse import repeats_itself, shares, signs_of_collapse


def rows(ended: str, text: str, correct: bool, count: int = 10) -> list[dict[str, Any]]:
    return [{"response": text, "ended": ended, "correct": correct} for _ in range(count)]


HEALTHY = shares(rows("eos", "the answer is four", True))


def test_repetition_is_four_words_five_times() -> None:
    assert repeats_itself("a b c d " * 5)
    assert not repeats_itself("a b c d " * 4)
    assert not repeats_itself("")


def test_healthy_model_shows_no_sign() -> None:
    assert signs_of_collapse({"chemistry": HEALTHY}, {"chemistry": HEALTHY}, ["chemistry"]) == []


def test_each_sign_is_named_with_its_column() -> None:
    endless = shares(rows("length", "a b c d " * 9, False))
    found = signs_of_collapse({"chemistry": endless}, {"chemistry": HEALTHY}, ["chemistry"])
    assert [any(word in sign for sign in found) for word in ("never end", "repeat", "no response")] == [True] * 3
    assert all("chemistry" in sign for sign in found)


def test_what_the_untouched_model_did_already_is_no_sign() -> None:
    endless = shares(rows("length", "a b c d " * 9, False))
    assert signs_of_collapse({"chemistry": endless}, {"chemistry": endless}, ["chemistry"]) == []


def test_zero_on_a_task_not_trained_on_is_forgetting_not_collapse() -> None:
    wrong = shares(rows("eos", "the answer is five", False))
    assert signs_of_collapse({"biology": wrong}, {"biology": HEALTHY}, ["chemistry"]) == []


def test_columns_scored_by_likelihood_are_left_out() -> None:
    scored = shares([{"response": None, "ended": "scored", "correct": False}])
    assert signs_of_collapse({"logic": scored}, {"logic": HEALTHY}, ["logic"]) == []
