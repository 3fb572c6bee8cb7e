"""Probe: the model is right after a few steps on other items, answered by the untouched model; a copy is trained."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cl_bench.harness.measure.items.probed import Attempt, ProbeInput
from cl_bench.harness.seeds import global_seed
from cl_bench.methods.training.losses import cross_entropy, loss_weights
from cl_bench.methods.training.rows import pad_batch

if TYPE_CHECKING:
    from cl_bench.harness.models.chat_model import ChatModel
    from cl_bench.methods.training.rows import TrainingRow

NAME = "relearning"
FEWEST = 8
"""Rows under which the probe is not made: less is hardly a style."""
_SEED = 0


@dataclass(frozen=True, slots=True)
class Relearning:
    """How the copy is trained.

    Attributes:
        steps: Optimizer steps.
        rows: Rows, at most; every step takes all of them.
        learning_rate: Constant learning rate of AdamW; no weight decay.
        max_grad_norm: Gradients are clipped to this norm.
        micro_batch_size: Rows in one forward and backward pass.
    """

    steps: int = 20
    rows: int = 32
    learning_rate: float = 5e-5
    max_grad_norm: float = 1.0
    micro_batch_size: int = 16


def relearning(given: ProbeInput, settings: Relearning) -> Attempt:
    """Train a copy on the untouched model's right answers to other items and ask again."""
    lessons = given.column.lessons(given.base(), settings.rows)
    details = {"rows": len(lessons)}
    if len(lessons) < FEWEST:
        return Attempt(
            reason=f"the untouched model is right on {len(lessons)} dev rows that are no items of the column, "
            f"{FEWEST} are needed",
            details=details,
        )
    trained = trained_copy(given.model, lessons, settings)
    return Attempt(given.column.answers(trained, given.ids), details=details)


def trained_copy(model: ChatModel, lessons: Sequence[TrainingRow], settings: Relearning) -> ChatModel:
    """A copy of a model after the steps; the model itself stays as it is.

    Token mean over the completions of all rows in every step, in fp32 and without dropout.
    """
    import torch

    from cl_bench.methods.training.supervised import supervised_loss

    trained = replace(model, model=copy.deepcopy(model.model))
    network = trained.model
    network.requires_grad_(True)
    network.eval()
    # Rows of like lengths need least padding; the order of the lessons does not matter.
    rows = sorted(lessons, key=lambda row: (len(row), row.example_id))
    tokens = sum(len(row.completion_ids) for row in rows)
    parts = [rows[at : at + settings.micro_batch_size] for at in range(0, len(rows), settings.micro_batch_size)]
    batches = []
    for part in parts:
        batch = pad_batch([(row.prompt_ids, row.completion_ids) for row in part], model.pad_id)
        batch["loss_weights"] = loss_weights(batch.pop("completion_mask"), "token_mean", tokens, len(rows))
        batches.append({name: value.to(network.device) for name, value in batch.items()})
    optimizer = torch.optim.AdamW(network.parameters(), lr=settings.learning_rate, weight_decay=0.0)
    with global_seed(_SEED), torch.enable_grad():
        for _ in range(settings.steps):
            optimizer.zero_grad(set_to_none=True)
            for batch in batches:
                supervised_loss(network, batch, cross_entropy).backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), settings.max_grad_norm)
            optimizer.step()
    network.requires_grad_(False)
    return trained
