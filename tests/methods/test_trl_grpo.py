"""GRPO trains as trl's ``GRPOTrainer`` does on the same samples, verdicts and old log-probabilities."""

from __future__ import annotations

import functools
import random
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import cl_bench.methods.training.policy_trainer as policy_module
from cl_bench.methods.training.divergences import token_log_probs
from cl_bench.methods.training.losses import loss_weights
from cl_bench.methods.training.policy import group_advantages, policy_loss
from tests.methods.probes import make_method
from tests.methods.trl_peers import (
    COMMON,
    LONGEST,
    ROWS,
    SAMPLES,
    TEMPERATURE,
    Difference,
    Recorded,
    Step,
    assert_equivalent,
    left_padding,
    moved,
    our_step,
    peer_arguments,
    peer_step,
    prompt_included,
    prompt_rows,
    recorded_stage,
)
from tests.support import tiny_model

BETA = 0.3
GRPO_CASES: dict[str, dict[str, Any]] = {
    "grpo": {"loss": "grpo", "scale": "group"},
    "dapo with a reference": {"loss": "dapo", "scale": "batch", "beta": BETA},
    "dr_grpo": {"loss": "dr_grpo", "scale": "none", "epsilon_high": 0.28},
}
RATES = {"grpo": 0.1, "dapo with a reference": 0.1, "dr_grpo": 0.3, "updates": 0.1}


@functools.cache
def recorded_by_an_older_policy() -> Recorded:
    """Samples whose probability ratios are off one, so that clipping and its direction matter."""
    return Recorded(moved(tiny_model(0), 0.05), TEMPERATURE)


@functools.cache
def recorded_by_the_student() -> Recorded:
    """The same samples with the log-probabilities of the model that is trained."""
    return Recorded(tiny_model(0), TEMPERATURE)


def grpo_peer(recorded: Recorded, folder: Path, model: Any, settings: dict[str, Any], rate: float, **own: Any) -> Any:
    """A ``GRPOTrainer`` that is given its samples; with ``given_old`` also their old log-probabilities."""
    from trl import GRPOConfig, GRPOTrainer

    given_old = own.pop("given_old")

    class Peer(GRPOTrainer):
        def _generate_single_turn(self, prompt_ids: Any, *rest: Any, **more: Any) -> Any:
            return [list(completion.ids) for completion in recorded.in_order(prompt_ids)], None

        def _generate_and_score_completions(self, inputs: Any) -> Any:
            output = super()._generate_and_score_completions(inputs)
            if given_old:
                mask = output["completion_mask"].bool()
                ids = [row[kept].tolist() for row, kept in zip(output["completion_ids"], mask, strict=True)]
                old = torch.zeros(mask.shape)
                old[mask] = torch.tensor([value for row in ids for value in recorded.old_log_probs(row)])
                output["old_per_token_logps"] = old
            return output

    def reward(completion_ids: Sequence[Sequence[int]], **rest: Any) -> list[float]:
        return [recorded.right(ids) for ids in completion_ids]

    arguments = peer_arguments(
        GRPOConfig,
        folder,
        micro=own.pop("micro"),
        accumulation=own.pop("accumulation"),
        learning_rate=rate,
        num_generations=SAMPLES,
        max_completion_length=LONGEST,
        temperature=TEMPERATURE,
        loss_type=settings["loss"],
        scale_rewards=settings["scale"],
        beta=settings.get("beta", 0.0),
        epsilon_high=settings.get("epsilon_high", 0.2),
        # The textbook's KL, which ours is; trl's default multiplies it by the probability ratio.
        use_bias_correction_kl=False,
        **own,
    )
    rewards: Any = reward
    return Peer(
        model=model,
        reward_funcs=rewards,
        args=arguments,
        train_dataset=prompt_rows(),
        processing_class=left_padding(tiny_model(0)),
    )


@functools.cache
def peer_of_grpo(name: str) -> Step:
    """One step of ``GRPOTrainer`` on the recorded samples, in four micro-batches."""
    recorded = recorded_by_an_older_policy()
    with tempfile.TemporaryDirectory() as reference:
        # trl takes its reference from the folder that the model says it came from.
        tiny_model(3).model.save_pretrained(reference)

        def make(model: Any, folder: Path) -> Any:
            model.config._name_or_path = reference
            own = {"micro": SAMPLES, "accumulation": len(ROWS), "max_steps": 1, "given_old": True}
            return grpo_peer(recorded, folder, model, GRPO_CASES[name], RATES[name], **own)

        return peer_step(make, tiny_model(0))


def check_grpo(name: str, micro: int = 3) -> Difference:
    settings = {**COMMON, **GRPO_CASES[name], "samples": SAMPLES, "updates": 1, "learning_rate": RATES[name]}
    recorded = recorded_by_an_older_policy()
    method = make_method("grpo", **settings)
    ours = our_step(method, tiny_model(0), recorded_stage(), micro, recorded, task_start=tiny_model(3))
    return assert_equivalent(ours, peer_of_grpo(name))


@pytest.mark.parametrize("micro", [12, 3])
@pytest.mark.parametrize("name", GRPO_CASES)
def test_grpo_trains_as_trl_does(name: str, micro: int) -> None:
    check_grpo(name, micro)


def test_recorded_samples_are_clipped_here_and_there() -> None:
    """Otherwise the comparison would say nothing about clipping."""
    new, old = recorded_by_the_student(), recorded_by_an_older_policy()
    ratios = [
        (torch.tensor(one.logprobs) - torch.tensor(other.logprobs)).exp()
        for prompt in new.by_prompt
        for one, other in zip(new.by_prompt[prompt], old.by_prompt[prompt], strict=True)
    ]
    every = torch.cat(ratios)
    for outside in (every < 0.8, every > 1.28):
        assert 0.03 < float(outside.float().mean()) < 0.5


@functools.cache
def peer_of_two_updates() -> Step:
    """``GRPOTrainer`` with two optimizer steps a batch of samples; it scores the old policy itself."""
    recorded = recorded_by_the_student()
    order = list(range(len(ROWS) * SAMPLES))
    # Our trainer's own order of the first batch, so that an update is on the same samples in both.
    random.Random("0/toy/0").shuffle(order)

    def in_our_order(batch: dict[str, Any]) -> dict[str, Any]:
        return {key: value[order] if getattr(value, "ndim", 0) else value for key, value in batch.items()}

    def make(model: Any, folder: Path) -> Any:
        own = {"micro": 6, "accumulation": 1, "steps_per_generation": 2, "max_steps": 2, "given_old": False}
        return grpo_peer(recorded, folder, model, GRPO_CASES["grpo"], RATES["updates"], **own)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("trl.trainer.grpo_trainer.shuffle_sequence_dict", in_our_order)
        return peer_step(make, tiny_model(0))


def check_two_updates() -> Difference:
    settings = {**COMMON, **GRPO_CASES["grpo"], "samples": SAMPLES, "updates": 2, "learning_rate": RATES["updates"]}
    recorded = recorded_by_the_student()
    ours = our_step(make_method("grpo", **settings), tiny_model(0), recorded_stage(), 3, recorded)
    return assert_equivalent(ours, peer_of_two_updates())


def test_two_updates_of_one_batch_of_samples_are_trls() -> None:
    check_two_updates()


Mistake = Callable[[pytest.MonkeyPatch], None]


def policy_term(change: Callable[..., Tensor]) -> Mistake:
    """A mistake in the token loss of a policy."""
    return lambda patch: patch.setattr(policy_module, "policy_loss", change)


def advantages_term(change: Callable[..., Tensor]) -> Mistake:
    return lambda patch: patch.setattr(policy_module, "group_advantages", change)


def whole_batch_as_group(rewards: Tensor, group: int, scale: Any, epsilon: float) -> Tensor:
    return group_advantages(rewards, len(rewards), scale, epsilon)


GRPO_MISTAKES: dict[tuple[str, str], Mistake] = {
    ("grpo", "loss doubled"): policy_term(lambda *given: 2 * policy_loss(*given)),
    ("grpo", "sign of the advantages"): advantages_term(lambda *given: -group_advantages(*given)),
    ("grpo", "advantages not scaled"): advantages_term(lambda r, n, scale, e: group_advantages(r, n, "none", e)),
    ("grpo", "one group for all prompts"): advantages_term(whole_batch_as_group),
    ("grpo", "old policy forgotten"): policy_term(
        lambda objective, new, old, *rest: policy_loss(objective, new, new.detach(), *rest)
    ),
    ("grpo", "not clipped"): policy_term(
        lambda objective, *rest: policy_loss(replace(objective, epsilon_low=9.0, epsilon_high=9.0), *rest)
    ),
    ("grpo", "prompt tokens included"): lambda patch: patch.setattr(policy_module, "pad_batch", prompt_included),
    ("grpo", "tokens averaged at once"): lambda patch: patch.setattr(
        policy_module, "loss_weights", lambda mask, kind, *rest: loss_weights(mask, "token_mean", *rest)
    ),
    ("grpo", "mean of a micro-batch"): lambda patch: patch.setattr(
        policy_module, "loss_weights", lambda mask, kind, t, n, m: loss_weights(mask, kind, int(mask.sum()), len(mask))
    ),
    ("grpo", "temperature left out"): lambda patch: patch.setattr(
        policy_module,
        "token_log_probs",
        lambda head, hidden, ids, temperature: token_log_probs(head, hidden, ids, 1.0),
    ),
    ("dapo with a reference", "KL left out"): policy_term(
        lambda objective, *rest: policy_loss(replace(objective, beta=0.0), *rest)
    ),
    ("dapo with a reference", "KL times the ratio"): policy_term(
        lambda objective, *rest: policy_loss(replace(objective, kl_times_ratio=True), *rest)
    ),
    ("dapo with a reference", "samples averaged one by one"): lambda patch: patch.setattr(
        policy_module, "loss_weights", lambda mask, kind, *rest: loss_weights(mask, "sequence_mean", *rest)
    ),
    ("dapo with a reference", "reference is the student"): lambda patch: patch.setattr(
        policy_module, "policy_loss", lambda o, new, old, a, m, held: policy_loss(o, new, old, a, m, new.detach())
    ),
    ("dr_grpo", "mean of the sampled lengths"): lambda patch: patch.setattr(
        policy_module, "loss_weights", lambda mask, kind, *rest: loss_weights(mask, "token_mean", *rest)
    ),
    ("dr_grpo", "one bound for both sides"): policy_term(
        lambda objective, *rest: policy_loss(replace(objective, epsilon_high=0.2), *rest)
    ),
}


@pytest.mark.parametrize(("name", "mistake"), GRPO_MISTAKES)
def test_planted_mistakes_in_grpo_are_caught(name: str, mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    peer_of_grpo(name)
    GRPO_MISTAKES[name, mistake](monkeypatch)
    with pytest.raises(AssertionError, match=r"Difference\("):
        check_grpo(name)


def test_scoring_the_old_policy_again_before_each_update_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    peer_of_two_updates()
    policy_term(lambda objective, new, old, *rest: policy_loss(objective, new, new.detach(), *rest))(monkeypatch)
    with pytest.raises(AssertionError, match=r"Difference\("):
        check_two_updates()
