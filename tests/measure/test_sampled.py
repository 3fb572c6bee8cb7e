from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from cl_bench.harness.generation.base import Completion, GenerationSettings, Prompt, Sampler
from cl_bench.harness.generation.local import LocalSampler
from cl_bench.harness.measure.evaluation import TaskRows, evaluate_together
from cl_bench.harness.measure.sampled import Sampling, sampled_answers, sampled_values
from cl_bench.tasks.base import Example, Score, Task
from tests.support import tiny_model, toy_examples, toy_score


class Sums(Task):
    name, chance, max_new_tokens = "toy", 0.1, 8

    def train(self) -> Sequence[Example]:
        return ()

    dev = train

    def test(self) -> Sequence[Example]:
        return toy_examples(5)

    def score(self, example: Example, text: str) -> Score:
        return toy_score(example, text)


def answers(*parsed: str | None, gold: str = "a") -> list[dict[str, Any]]:
    return [{"parsed": one, "correct": one == gold} for one in parsed]


def test_scores_of_sampled_answers_by_hand() -> None:
    items = [answers("a", "a", "b", None), answers("b", "b", "a", "c"), answers(None, None, None, None)]
    values, intervals = sampled_values(items)
    assert values == {
        "avg@4": pytest.approx((2 + 1 + 0) / 12),
        "maj@4": pytest.approx(1 / 3),
        "pass@4": pytest.approx(2 / 3),
    }
    assert intervals == {}, "three items are too few for an interval"


def test_enough_items_have_intervals() -> None:
    values, intervals = sampled_values([answers("a", "b", "b"), answers("a", "a", None)] * 30)
    assert set(intervals) == set(values) == {"avg@3", "maj@3", "pass@3"}
    assert all(low <= values[name] <= high for name, (low, high) in intervals.items())
    assert set(sampled_values([answers("a", "b"), answers("a", "a")] * 25)[1]) == {"avg@2"}


def test_of_equally_frequent_answers_the_first_has_the_vote() -> None:
    assert sampled_values([answers("a", "b")])[0]["maj@2"] == 1
    assert sampled_values([answers("b", "a")])[0]["maj@2"] == 0


def test_right_answers_count_as_one_however_they_are_written() -> None:
    rows = [{"parsed": text, "correct": True} for text in ("$18.", "18", "18.00")]
    rows += [{"parsed": "20", "correct": False}] * 2
    assert sampled_values([rows])[0]["maj@5"] == 1


def test_equal_wrong_numbers_count_as_one() -> None:
    rows = [{"parsed": text, "correct": False} for text in ("1,000", "1000.0", "$1000")]
    rows += [{"parsed": "18", "correct": True}] * 2
    assert sampled_values([rows])[0]["maj@5"] == 0


def test_whole_texts_have_no_majority() -> None:
    assert set(sampled_values([answers("a", "b")], votes=False)[0]) == {"avg@2", "pass@2"}


def test_answers_that_cannot_be_read_have_no_vote() -> None:
    assert sampled_values([answers(None, None, "a")])[0]["maj@3"] == 1


def test_without_items_there_is_no_score() -> None:
    assert sampled_values([]) == ({}, {})


class Recording(Sampler):
    context_length = 100

    def __init__(self) -> None:
        self.asked: list[tuple[Prompt, float]] = []

    def generate(self, prompts: Sequence[Prompt], settings: GenerationSettings) -> list[Completion]:
        self.asked += [(prompt, settings.temperature) for prompt in prompts]
        return [Completion((1,), str(prompt.seed % 7), "eos", (0.0,)) for prompt in prompts]


def test_seeds_depend_on_column_item_and_number_alone() -> None:
    settings, sampling = GenerationSettings(8), Sampling(3, 0.7)
    one, two = Recording(), Recording()
    sampled_answers("c", [("x", (1, 2)), ("y", (3,))], one, settings, sampling)
    sampled_answers("c", [("y", (3,))], two, settings, sampling)
    assert one.asked[3:] == two.asked
    assert len({prompt.seed for prompt, _ in one.asked}) == 6
    assert {temperature for _, temperature in one.asked} == {0.7}


def test_a_result_has_sampled_scores_beside_the_greedy_one() -> None:
    model, task = tiny_model(), Sums()
    sampler, settings = LocalSampler(model), GenerationSettings(8, batch_size=4)
    rows = [TaskRows("toy", task, task.test())]
    plain = evaluate_together(model, rows, sampler, settings)["toy"]
    sampled = evaluate_together(model, rows, sampler, settings, sampling=Sampling(3, 1.0))["toy"]
    again = evaluate_together(model, rows, sampler, settings, sampling=Sampling(3, 1.0))["toy"]
    assert sampled.value == plain.value
    assert [row["response"] for row in sampled.samples] == [row["response"] for row in plain.samples]
    assert [len(row["sampled"]) for row in sampled.samples] == [3] * 5
    assert sampled.samples == again.samples
    assert len({one["response"] for row in sampled.samples for one in row["sampled"]}) > 1
    assert {"avg@3", "maj@3", "pass@3"} <= set(sampled.values)
    assert sampled.results_json()["intervals"] == {}, "five items are too few for an interval"
    assert sampled.tokens > plain.tokens
    assert "sampled" not in plain.samples[0]
