"""GRPO: gradients of real steps by hand, several updates of one batch of samples, and what moves nothing."""

from __future__ import annotations

import copy
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import cl_bench.methods.training.policy_trainer as trainer_module
from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.methods.base import Stage
from cl_bench.methods.grpo import GRPO, GRPOSettings
from cl_bench.methods.training.divergences import token_log_probs
from cl_bench.methods.training.policy import policy_loss
from cl_bench.methods.training.rollouts import BlockSampler
from cl_bench.methods.training.rows import pad_batch
from cl_bench.tasks.base import Example, Score
from tests.methods.probes import COMMON, Gradients, assert_close, by_hand, first_step, full_logits
from tests.support import TinyContext, same_weights, tiny_model, toy_examples, weights

FOUR = toy_examples(4)
LONGEST = 80
BY_ID = {example.id: example for example in FOUR}


def by_length(example: Example, text: str) -> Score:
    """A verdict that random text passes about every third time."""
    return Score(len(text) % 3 == 0, text, True)


def stage_of(score: Any = by_length) -> Stage:
    return Stage(1, "toy", FOUR, (), {"toy": score})


def make(**changes: Any) -> GRPO:
    short = {"max_completion_length": LONGEST, "max_length": 150, "samples": 3, "temperature": 1.2}
    return GRPO(GRPOSettings(**{**COMMON, **short, **changes}))


def advantages(ledger: list[dict[str, Any]], scale: str) -> list[float]:
    """Reward less the mean of the three samples of its prompt, over their standard deviation."""
    rewards = [float(by_length(BY_ID[row["id"]], row["text"]).correct) for row in ledger]
    found = []
    for start in range(0, len(rewards), 3):
        group = torch.tensor(rewards[start : start + 3])
        divisor = float(group.std()) + 1e-4 if scale == "group" else 1.0
        found += [float(value) / divisor for value in group - group.mean()]
    return found


def expected(
    student: ChatModel, ledger: list[dict[str, Any]], loss_name: str, scale: str, beta: float, other: ChatModel
) -> Gradients:
    weights_of = advantages(ledger, scale)
    assert len(set(weights_of)) > 2
    tokens = sum(len(row["tokens"]) for row in ledger)
    assert len({len(row["tokens"]) for row in ledger}) > 1, "samples of one length would not tell averages apart"

    def loss(model: Any) -> Tensor:
        total = torch.zeros(())
        for row, advantage in zip(ledger, weights_of, strict=True):
            prompt, ids = student.prompt_ids(BY_ID[row["id"]].messages), row["tokens"]
            at = (torch.arange(len(ids)), torch.tensor(ids))
            own = (full_logits(model, prompt, ids) / 1.2).log_softmax(-1)[at]
            # The ratio of the policy to itself is one; its gradient is that of the log-probability.
            value = -advantage * (own - own.detach()).exp()
            if beta:
                held = (full_logits(other.model, prompt, ids) / 1.2).log_softmax(-1)[at].detach()
                value = value + beta * ((held - own).exp() - (held - own) - 1)
            share = {"grpo": len(ids) * len(ledger), "dapo": tokens, "dr_grpo": LONGEST * len(ledger)}[loss_name]
            total = total + value.sum() / share
        return total

    return by_hand(student, loss)


def check(folder: Path, loss_name: str = "grpo", scale: str = "group", beta: float = 0.0) -> None:
    student, start = tiny_model(0), tiny_model(3)
    for micro in (12, 3):
        method = make(loss=loss_name, scale=scale, beta=beta)
        own = copy.deepcopy(student)
        gradients, context = first_step(method, own, stage_of(), folder / f"{micro}", micro, task_start=start)
        assert_close(gradients, expected(student, list(context.ledger), loss_name, scale, beta, start), 1e-3)


@pytest.mark.parametrize(
    ("loss_name", "scale", "beta"), [("grpo", "group", 0.0), ("dapo", "group", 0.3), ("dr_grpo", "none", 0.0)]
)
def test_step_has_the_gradient_of_the_objective(loss_name: str, scale: str, beta: float, tmp_path: Path) -> None:
    check(tmp_path, loss_name, scale, beta)


@pytest.mark.parametrize("mistake", ["no temperature in the ratio", "prompt in the loss", "sequences for tokens"])
def test_planted_mistakes_are_caught(mistake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if mistake == "no temperature in the ratio":
        monkeypatch.setattr(
            trainer_module,
            "token_log_probs",
            lambda head, hidden, tokens, temperature: token_log_probs(head, hidden, tokens, 1),
        )
    elif mistake == "prompt in the loss":

        def everything(rows: Any, pad_id: int) -> dict[str, Tensor]:
            batch = pad_batch(rows, pad_id)
            return {**batch, "completion_mask": batch["attention_mask"].clone()}

        monkeypatch.setattr(trainer_module, "pad_batch", everything)
    else:
        monkeypatch.setattr(
            trainer_module, "loss_weights", lambda mask, reduction, tokens, sequences, length: mask.float() / tokens
        )
    with pytest.raises((AssertionError, IndexError, RuntimeError)):
        check(tmp_path)


def test_later_updates_of_a_batch_are_clipped_against_the_policy_that_drew_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[bool, int]] = []

    def watched(objective: Any, new: Tensor, old: Tensor, advantages: Tensor, mask: Tensor, reference: Any) -> Tensor:
        moved = ((new - old) * mask).abs().max().item() > 1e-3
        seen.append((moved, len(mask)))
        return policy_loss(objective, new, old, advantages, mask, reference)

    monkeypatch.setattr(trainer_module, "policy_loss", watched)
    context = TinyContext(tmp_path)
    adaptation = make(updates=3, batch_size=2, epochs=1, warmup_ratio=0.0).adapt(tiny_model(0), stage_of(), context)
    assert adaptation.steps == 6, "two batches of two prompts, three updates each"
    assert len(list(context.ledger)) == 12, "samples are drawn once a batch"
    assert [moved for moved, _ in seen] == [False, True, True] * 2
    assert [rows for _, rows in seen] == [2] * 6


def test_equal_rewards_move_nothing(tmp_path: Path) -> None:
    student = tiny_model(0)
    before = weights(student)
    always = stage_of(lambda example, text: Score(True, text, True))
    adaptation = make(epochs=1, samples=3).adapt(student, always, TinyContext(tmp_path))
    assert same_weights(before, weights(student))
    assert adaptation.data_generation == {"usable_samples_share": 0.0}


def test_neither_demonstration_nor_answer_is_read(tmp_path: Path) -> None:
    bare = [type(row)(row.task, row.id, row.messages, None, None) for row in FOUR]
    one, other = tiny_model(0), tiny_model(0)
    make(epochs=1).adapt(one, Stage(1, "toy", bare, (), {"toy": by_length}), TinyContext(tmp_path / "bare"))
    make(epochs=1).adapt(other, stage_of(), TinyContext(tmp_path / "full"))
    assert same_weights(weights(one), weights(other))


@pytest.mark.parametrize(("rows", "block", "updates"), [(8, 4, 1), (10, 4, 3), (3, 4, 2)])
def test_blocks_are_repeated_and_full_and_hold_every_row(rows: int, block: int, updates: int) -> None:
    sampler = BlockSampler(rows, block, updates, seed=5)
    order = list(sampler)
    assert len(order) == len(sampler)
    blocks = [order[i : i + block] for i in range(0, len(order), block)]
    for start in range(0, len(blocks), updates):
        assert blocks[start : start + updates] == [blocks[start]] * updates
    counts = Counter(index for one in blocks[::updates] for index in one)
    assert set(counts) == set(range(rows)) and max(counts.values()) <= 2
    assert list(sampler) == order
    sampler.set_epoch(1)
    assert rows < 8 or list(sampler) != order
