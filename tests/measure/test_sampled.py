from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from scipy.stats import binomtest

from cl_bench.harness.generation.base import Completion, GenerationSettings, Prompt, Sampler
from cl_bench.harness.generation.local import LocalSampler
from cl_bench.harness.measure.evaluation import TaskRows, evaluate_together
from cl_bench.harness.measure.intervals import bootstrap_mean, wilson
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
    assert set(intervals) == set(values)
    assert all(low <= values[name] <= high for name, (low, high) in intervals.items())


def test_of_equally_frequent_answers_the_first_has_the_vote() -> None:
    assert sampled_values([answers("a", "b")])[0]["maj@2"] == 1
    assert sampled_values([answers("b", "a")])[0]["maj@2"] == 0


def test_answers_that_cannot_be_read_have_no_vote() -> None:
    assert sampled_values([answers(None, None, "a")])[0]["maj@3"] == 1


def test_without_items_there_is_no_score() -> None:
    assert sampled_values([]) == ({}, {})


def test_intervals() -> None:
    low, high = wilson(8, 10)
    assert low == pytest.approx(0.490, abs=1e-3) and high == pytest.approx(0.943, abs=1e-3)
    for successes, n in ((0, 10), (1, 3), (8, 10), (10, 10), (137, 200)):
        expected = binomtest(successes, n).proportion_ci(method="wilson")
        assert wilson(successes, n) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert bootstrap_mean([0.5]) == (0.5, 0.5)
    low, high = bootstrap_mean([0.0, 1.0] * 50)
    assert low == pytest.approx(0.4, abs=0.03) and high == pytest.approx(0.6, abs=0.03)
    assert bootstrap_mean([0.0, 1.0, 1.0]) == bootstrap_mean([0.0, 1.0, 1.0])


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
    assert set(sampled.results_json()["intervals"]) == {"accuracy", "avg@3", "maj@3", "pass@3"}
    assert sampled.tokens > plain.tokens
    assert "sampled" not in plain.samples[0]
