"""Training with lm-eval in between equals training alone, bit for bit, where training draws random numbers."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import cl_bench.tasks.retention
from cl_bench.harness.generation.base import Completion, GenerationSettings, Prompt
from cl_bench.harness.generation.local import LocalSampler
from cl_bench.harness.measure import evaluation
from cl_bench.harness.measure.evaluation import TaskRows, evaluate_together
from cl_bench.harness.measure.suite import SuiteRunner
from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.methods.sft import SFT
from cl_bench.tasks.lab.task import LabTask
from cl_bench.tasks.retention.suites import load_suite
from cl_bench.tasks.sources.base import DataOptions
from tests.support import TinyContext, same_weights, tiny_model, toy_examples, toy_stage, weights

SUITE = Path(cl_bench.tasks.retention.__file__).parent / "lab.yaml"
SETTINGS: dict[str, Any] = {"epochs": 2, "batch_size": 4, "learning_rate": 1e-2}
DROPOUT = 0.3


def student() -> ChatModel:
    """A model whose training draws from torch's global generator."""
    model = tiny_model(0, context_length=400)
    for module in model.model.modules():
        if hasattr(module, "attention_dropout"):
            module.attention_dropout = DROPOUT  # type: ignore[assignment]
    return model


def states() -> tuple[str, str, bytes]:
    """Of every global generator: a method may draw from each of them."""
    return str(random.getstate()), str(np.random.get_state()), bytes(torch.get_rng_state().numpy())


class Careless(LocalSampler):
    """A sampler that draws from every global generator, as a library may."""

    def generate(self, prompts: Sequence[Prompt], settings: GenerationSettings) -> list[Completion]:
        """Draw, then answer."""
        random.random(), np.random.rand(), torch.rand(3)
        return super().generate(prompts, settings)


class Watched(TinyContext):
    """Evaluates the student after every step: a task, and benchmarks through lm-eval."""

    watched: ChatModel
    evaluations = 0
    moved = False

    def after_step(self, step: int) -> None:
        """Evaluate."""
        before = states()
        self._evaluate()
        self.moved |= states() != before

    def _evaluate(self) -> None:
        sampler, task = Careless(self.watched), LabTask("chemistry")
        runner = SuiteRunner(load_suite(SUITE)[:2], DataOptions("lab"), rows=2)
        assert all(result.samples for result in runner.run(self.watched, sampler).values())
        rows = [TaskRows("chemistry", task, task.test()[:2])]
        evaluate_together(self.watched, rows, sampler, GenerationSettings(4))
        self.evaluations += 1


def trained(folder: Path, evaluate: bool, dropout: bool = True, moves: bool = False) -> dict[str, torch.Tensor]:
    model = student() if dropout else tiny_model(0, context_length=400)
    context = Watched(folder) if evaluate else TinyContext(folder)
    if isinstance(context, Watched):
        context.watched = model
    SFT(SFT.Settings(**SETTINGS)).adapt(model, toy_stage(toy_examples(8)), context)
    assert not isinstance(context, Watched) or (context.evaluations == 4 and context.moved is moves)
    return weights(model)


def test_train_evaluate_train_is_train_train(tmp_path: Path) -> None:
    alone = trained(tmp_path / "alone", evaluate=False)
    assert same_weights(alone, trained(tmp_path / "watched", evaluate=True))
    # Without random numbers in training the test could not fail.
    assert not same_weights(alone, trained(tmp_path / "dry", evaluate=False, dropout=False))


def test_an_evaluation_that_keeps_no_random_states_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = trained(tmp_path / "alone", evaluate=False)
    monkeypatch.setattr(evaluation, "preserved_rng", nullcontext)
    assert not same_weights(alone, trained(tmp_path / "watched", evaluate=True, moves=True))
