"""Losses in chunks of positions are the losses in one piece: value and every weight's gradient, through the models."""

from __future__ import annotations

import copy
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from torch import Tensor

from cl_bench.methods.isdft import ISDFTSettings, tilted
from cl_bench.methods.training.anchors import Anchor
from cl_bench.methods.training.divergences import Divergence, divergence_of, forward_kl, jensen_shannon, sampled_token
from cl_bench.methods.training.mixin import Counters, TrainingSession
from cl_bench.methods.training.on_policy import on_policy_loss
from cl_bench.methods.training.rows import pad_batch
from tests.support import tiny_model

ROWS, NEW_TOKENS, VOCABULARY = 6, 60, 500
TOLERANCE = 1e-6


def tilted_halfway() -> Divergence:
    session = SimpleNamespace(counters=Counters(), total_steps=10)
    return tilted(ISDFTSettings(budget_start=0.5), cast(TrainingSession, session))


OBJECTIVES: dict[str, Callable[[], Divergence]] = {
    "sdft": lambda: forward_kl,
    "reverse": lambda: jensen_shannon(1.0),
    "jsd": lambda: jensen_shannon(0.5),
    "isdft": tilted_halfway,
    "top-k": lambda: divergence_of(0.5, 20),
    "sampled-token": lambda: sampled_token,
}


def batch() -> dict[str, Tensor]:
    """Samples behind prompts of different lengths; the teacher's prompts are longer."""
    generator = torch.Generator().manual_seed(0)

    def tokens(count: int) -> list[int]:
        return torch.randint(3, VOCABULARY, (count,), generator=generator).tolist()

    completions = [tokens(NEW_TOKENS - row) for row in range(ROWS)]
    student = pad_batch([(tokens(4 + row), ids) for row, ids in enumerate(completions)], 0)
    teacher = pad_batch([(tokens(9 + 2 * row), ids) for row, ids in enumerate(completions)], 0)
    weights = student["completion_mask"] / student["completion_mask"].sum()
    return {
        "input_ids": student["input_ids"],
        "attention_mask": student["attention_mask"],
        "loss_weights": weights,
        "old_log_probs": -6 * torch.ones_like(weights),
        "teacher_input_ids": teacher["input_ids"],
        "teacher_attention_mask": teacher["attention_mask"],
        "teacher_keep": teacher["completion_mask"],
    }


def loss_and_gradients(divergence: Divergence, clip: float | None) -> tuple[Tensor, dict[str, Tensor]]:
    student: Any = copy.deepcopy(tiny_model(0, VOCABULARY).model)
    teacher, frozen = tiny_model(1, VOCABULARY).model, tiny_model(2, VOCABULARY).model
    anchor = Anchor(frozen, forward_kl, 0.1)
    loss = on_policy_loss(student, teacher, batch(), divergence, 1.1, anchor, clip)
    loss.backward()
    assert all(parameter.grad is None for model in (teacher, frozen) for parameter in model.parameters())
    return loss.detach(), {name: p.grad for name, p in student.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("clip", [None, 2.0])
@pytest.mark.parametrize("name", OBJECTIVES)
def test_loss_and_gradients(name: str, clip: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    positions: list[int] = []
    divergence = OBJECTIVES[name]()

    def counting(student_logits: Tensor, teacher_logits: Tensor, tokens: Tensor | None = None) -> Tensor:
        positions.append(len(student_logits))
        return divergence(student_logits, teacher_logits, tokens)

    loss, gradients = loss_and_gradients(counting, clip)
    count = ROWS * NEW_TOKENS - sum(range(ROWS))
    assert positions == [count] and float(loss) != 0
    positions.clear()
    monkeypatch.setattr("cl_bench.methods.training.divergences._WHOLE_BELOW", 0)
    in_chunks, chunk_gradients = loss_and_gradients(counting, clip)
    # Each chunk once forward and once more for its backward pass.
    assert len(positions) >= 4 and sum(positions) == 2 * count and max(positions) < count
    assert float((in_chunks - loss).abs() / loss.abs()) <= TOLERANCE
    assert chunk_gradients.keys() == gradients.keys()
    for key, gradient in gradients.items():
        apart = float((chunk_gradients[key] - gradient).norm())
        assert apart <= TOLERANCE * max(float(gradient.norm()), 1e-3), key
