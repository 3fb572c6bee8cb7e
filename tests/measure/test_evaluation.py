from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from cl_bench.harness.errors import UsageError
from cl_bench.harness.generation.base import Completion, GenerationSettings, Prompt, Sampler
from cl_bench.harness.generation.local import LocalSampler
from cl_bench.harness.measure.evaluation import (
    TaskRows,
    evaluate_together,
    evaluation_settings,
    fixed_indices,
    fixed_rows,
    no_trace,
    with_system_prompt,
    with_worked_examples,
    worked_examples,
)
from cl_bench.harness.measure.task_result import TaskResult
from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.tasks.base import Example, Score, Task
from tests.support import same_weights, tiny_model, toy_examples, toy_score, weights


def evaluate_task(
    model: ChatModel,
    task: Task,
    examples: Sequence[Example],
    sampler: Sampler,
    settings: GenerationSettings,
    **more: Any,
) -> TaskResult:
    """The result of one task alone."""
    return evaluate_together(model, [TaskRows(task.name, task, examples)], sampler, settings, **more)[task.name]


class ToyTask(Task):
    """Sums; a response is of good form when it says "sum"."""

    name, chance, max_new_tokens = "toy", 0.1, 8

    def train(self) -> Sequence[Example]:
        return ()

    def dev(self) -> Sequence[Example]:
        return ()

    def test(self) -> Sequence[Example]:
        return toy_examples(6)

    def score(self, example: Example, text: str) -> Score:
        score = toy_score(example, text)
        doubt = "checker crashed" if text == "crash" else None
        return Score(score.correct, score.parsed, text.startswith("sum"), doubt)


class ScriptedSampler(Sampler):
    """Answers in the order given; refuses prompts above a length."""

    def __init__(self, answers: Sequence[tuple[str, str]], context_length: int = 160) -> None:
        self.answers, self.context_length = list(answers), context_length
        self.prompts: list[Prompt] = []

    def generate(self, prompts: Sequence[Prompt], settings: GenerationSettings) -> list[Completion]:
        self.prompts = list(prompts)
        return [
            Completion((1,) * len(text), text, ended, ())  # type: ignore[arg-type]
            for (text, ended), _ in zip(self.answers, prompts, strict=True)
        ]


SETTINGS = GenerationSettings(max_new_tokens=8)


def test_counts_values_and_samples(tiny_model: ChatModel) -> None:
    answers = [("sum is 0", "eos"), ("2", "eos"), ("sum 7", "eos"), ("sum 12", "length"), ("", "eos"), ("crash", "eos")]
    result = evaluate_task(tiny_model, ToyTask(), toy_examples(6), ScriptedSampler(answers), SETTINGS)
    assert result.counts == {
        "n": 6, "correct": 3, "strict": 1, "parsed": 5, "truncated": 1, "skipped": 0, "unreliable": 1,
    }  # fmt: skip
    assert result.value == result.values["accuracy"] == 0.5
    assert result.values["acc_strict"] == 1 / 6
    assert result.tokens == sum(len(text) for text, _ in answers)
    row = result.samples[3]
    assert set(row) == {"task", "id", "prompt_hash", "response", "correct", "parsed", "format_ok", "tokens", "ended"}
    # A cut response is never of good form, whatever it looks like.
    assert (row["correct"], row["format_ok"], row["ended"]) == (True, False, "length")
    assert result.samples[5]["unreliable"] == "checker crashed"
    content = result.results_json()
    assert content["results"]["toy"]["acc,none"] == 0.5
    assert content["n-samples"]["toy"] == {"original": 6, "effective": 6}


def test_rows_that_do_not_fit_are_skipped_not_wrong(tiny_model: ChatModel) -> None:
    examples = toy_examples(3)
    long = Example("toy", "long", ({"role": "user", "content": "1" * 200},), answer="1")
    sampler = ScriptedSampler([("0", "eos"), ("2", "eos"), ("7", "eos")])
    result = evaluate_task(tiny_model, ToyTask(), [examples[0], long, *examples[1:]], sampler, SETTINGS)
    assert (result.counts["n"], result.counts["skipped"]) == (3, 1)
    assert result.value == 2 / 3
    assert result.samples[1]["ended"] == "skipped" and result.samples[1]["correct"] is None
    assert result.results_json()["n-samples"]["toy"] == {"original": 4, "effective": 3}


def test_a_task_without_any_row_has_a_reason_instead_of_a_value(tiny_model: ChatModel) -> None:
    long = Example("toy", "long", ({"role": "user", "content": "1" * 200},), answer="1")
    skipped = evaluate_task(tiny_model, ToyTask(), [long], ScriptedSampler([]), SETTINGS)
    assert skipped.value is None and "too long" in str(skipped.reason)
    empty = evaluate_task(tiny_model, ToyTask(), [], ScriptedSampler([]), SETTINGS)
    assert empty.value is None and empty.reason == "no rows"
    assert empty.results_json()["results"]["toy"] == {"alias": "toy"}


def test_system_prompt_comes_first_and_replaces_the_examples_own(tiny_model: ChatModel) -> None:
    own = ({"role": "system", "content": "own"}, {"role": "user", "content": "q"})
    assert with_system_prompt(own, None) == own
    assert with_system_prompt(own, "other") == ({"role": "system", "content": "other"}, own[1])
    sampler = ScriptedSampler([("0", "eos")])
    evaluate_task(tiny_model, ToyTask(), toy_examples(1), sampler, SETTINGS, system_prompt="be brief")
    assert "be brief" in tiny_model.tokenizer.decode(list(sampler.prompts[0].ids))


def test_worked_examples_are_turns_after_the_system_turn() -> None:
    asked = Example("toy", "q", ({"role": "system", "content": "be brief"}, {"role": "user", "content": "1+1?"}))
    worked = [
        Example("toy", "w", ({"role": "user", "content": "2+2?"},), demonstration="sum 4"),
        Example("toy", "v", ({"role": "user", "content": "3+3?"},), demonstration="sum 6"),
    ]
    (row,) = with_worked_examples([asked], worked)
    assert [(turn["role"], turn["content"]) for turn in row.messages] == [
        ("system", "be brief"),
        ("user", "2+2?"),
        ("assistant", "sum 4"),
        ("user", "3+3?"),
        ("assistant", "sum 6"),
        ("user", "1+1?"),
    ]
    assert row.question == "1+1?"
    assert row.key == asked.key
    assert with_worked_examples([asked], []) == [asked]


def test_worked_examples_are_training_rows_with_a_demonstration() -> None:
    class Trained(ToyTask):
        def train(self) -> Sequence[Example]:
            rows = toy_examples(6)
            return [replace(row, demonstration=None if place % 2 else "sum") for place, row in enumerate(rows)]

    assert worked_examples(Trained(), 0) == []
    assert len(worked_examples(Trained(), 2)) == 2
    assert all(row.demonstration for row in worked_examples(Trained(), 3))
    with pytest.raises(UsageError, match=r"evaluation\.shots is 4, but task toy has 3"):
        worked_examples(Trained(), 4)


def test_prompts_are_rendered_once_for_several_models(tiny_model: ChatModel) -> None:
    cache: dict[tuple[str, str], tuple[int, ...]] = {}
    sampler = ScriptedSampler([("0", "eos")])
    evaluate_task(tiny_model, ToyTask(), toy_examples(1), sampler, SETTINGS, prompt_cache=cache)
    assert cache == {("toy", "toy-0"): sampler.prompts[0].ids}
    cache["toy", "toy-0"] = (9, 9)
    evaluate_task(tiny_model, ToyTask(), toy_examples(1), sampler, SETTINGS, prompt_cache=cache)
    assert sampler.prompts[0].ids == (9, 9)


def test_fixed_rows_depend_on_ids_alone() -> None:
    examples = toy_examples(40)
    chosen = fixed_rows(examples, 10)
    assert len(chosen) == 10 and chosen == [example for example in examples if example in chosen]
    assert {e.id for e in fixed_rows(examples[::-1], 10)} == {e.id for e in chosen}
    assert {e.id for e in chosen} <= {e.id for e in fixed_rows(examples, 20)}
    assert [e.id for e in chosen] != [e.id for e in examples[:10]]
    assert fixed_rows(examples, None) == examples and len(fixed_rows(examples, 99)) == 40
    ids = [e.id for e in examples]
    assert not set(fixed_indices(ids, 20)) & set(fixed_indices(ids, 20, last=True))


def test_settings_are_greedy_and_the_tasks_own() -> None:
    task = ToyTask()
    assert evaluation_settings(task, 32) == GenerationSettings(max_new_tokens=8, temperature=0.0, batch_size=32)


def test_evaluation_leaves_no_trace() -> None:
    model = tiny_model()
    model.model.train()
    model.model.get_input_embeddings().eval()
    model.tokenizer.padding_side = "right"
    model.model.config.use_cache = False
    before = weights(model)
    states = random.getstate(), str(np.random.get_state()), torch.get_rng_state()
    with no_trace(model):
        assert not model.model.training
        random.random(), np.random.rand(), torch.rand(3)
        model.tokenizer.padding_side, model.model.config.use_cache = "left", True
    evaluate_task(model, ToyTask(), toy_examples(4), LocalSampler(model), SETTINGS)
    assert random.getstate() == states[0]
    assert str(np.random.get_state()) == states[1]
    assert torch.equal(torch.get_rng_state(), states[2])
    assert model.model.training and not model.model.get_input_embeddings().training
    assert model.tokenizer.padding_side == "right" and model.model.config.use_cache is False
    assert same_weights(before, weights(model))


def test_no_trace_even_after_an_error() -> None:
    model = tiny_model()
    model.model.train()
    state = torch.get_rng_state()
    try:
        with no_trace(model):
            torch.rand(1)
            raise RuntimeError
    except RuntimeError:
        pass
    assert model.model.training and torch.equal(torch.get_rng_state(), state)


def test_tasks_decoded_together_score_as_alone(tiny_model: ChatModel) -> None:
    examples = toy_examples(9)
    parts = {"a": examples[:4], "b": examples[4:], "c": []}
    items = [TaskRows(name, ToyTask(), rows) for name, rows in parts.items()]
    for batch_size in (3, 64):
        settings = GenerationSettings(max_new_tokens=8, batch_size=batch_size)
        together = evaluate_together(tiny_model, items, LocalSampler(tiny_model), settings)
        assert list(together) == ["a", "b", "c"]
        for item in items:
            alone = evaluate_task(tiny_model, item.task, item.examples, LocalSampler(tiny_model), settings)
            alone.seconds = together[item.name].seconds
            assert alone == together[item.name]
    assert together["c"].reason == "no rows"


def test_answers_go_to_their_own_task_when_rows_are_skipped(tiny_model: ChatModel) -> None:
    examples = toy_examples(3)
    long = Example("toy", "long", ({"role": "user", "content": "9" * 300},), None, "9")
    items = [TaskRows("a", ToyTask(), [long, examples[0]]), TaskRows("b", ToyTask(), [examples[1], long, examples[2]])]
    sampler = ScriptedSampler([("sum 0", "eos"), ("no", "eos"), ("sum 6", "eos")])
    together = evaluate_together(tiny_model, items, sampler, SETTINGS)
    assert [row["response"] for row in together["a"].samples] == [None, "sum 0"]
    assert [row["response"] for row in together["b"].samples] == ["no", None, "sum 6"]
    assert [together[name].counts["correct"] for name in "ab"] == [1, 1]
    assert [together[name].counts["skipped"] for name in "ab"] == [1, 1]
    assert together["a"].tokens == len("sum 0")
