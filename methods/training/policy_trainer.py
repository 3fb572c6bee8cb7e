"""The policy-gradient trainer: groups of rollouts -> rewards -> advantages -> one or more clipped updates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from cl_bench.harness.generation.base import Completion, GenerationSettings
from cl_bench.harness.measure.cost import forward_flops
from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.methods.training.divergences import token_log_probs
from cl_bench.methods.training.forward import computed_tokens, head_of, hidden_at, shifted
from cl_bench.methods.training.groups import Group, Prompts, draw_groups, split_evenly
from cl_bench.methods.training.losses import Reduction, loss_weights
from cl_bench.methods.training.mixin import TrainingMixin, TrainingSession, training_arguments
from cl_bench.methods.training.policy import PolicyObjective, Scale, group_advantages, policy_loss
from cl_bench.methods.training.rollouts import BlockSampler, shuffle
from cl_bench.methods.training.rows import pad_batch
from cl_bench.tasks.base import Example


@dataclass(frozen=True, slots=True)
class PolicyTraining:
    """How a policy is trained.

    Attributes:
        objective: Loss of a token.
        reduction: How token losses become an optimizer step's loss.
        generation: Length and temperature of the rollouts.
        samples: Samples of each prompt.
        scale: What rewards less their group's mean are divided by.
        epsilon: Added to that divisor.
        updates: Optimizer steps that each batch of rollouts is split into; from the second on the policy has moved.
        reference: Model of the KL term, or None.
    """

    objective: PolicyObjective
    reduction: Reduction
    generation: GenerationSettings
    samples: int
    scale: Scale
    epsilon: float
    updates: int = 1
    reference: ChatModel | None = None


@dataclass(frozen=True, slots=True)
class RewardedSample:
    """A rollout with its advantage."""

    prompt_ids: tuple[int, ...]
    completion: Completion
    advantage: float


def sample_log_probs(model: Any, batch: Mapping[str, Tensor], temperature: float) -> Tensor:
    """Log-probabilities of the tokens under the loss, [B, T], zero elsewhere."""
    under_loss = batch["loss_weights"] > 0
    hidden = hidden_at(model, batch, shifted(under_loss))
    values = token_log_probs(head_of(model), hidden, batch["input_ids"][under_loss], temperature)
    found = torch.zeros(under_loss.shape, dtype=values.dtype, device=values.device)
    found[under_loss] = values
    return found


def policy_step_loss(model: Any, batch: Mapping[str, Tensor], training: PolicyTraining) -> Tensor:
    """A micro-batch's share of the optimizer step's loss.

    Args:
        model: The student.
        batch: ``input_ids``, ``attention_mask``, ``loss_weights``, ``old_log_probs`` [B, T] and ``advantages`` [B].
        training: Objective, temperature and reference.
    """
    temperature = training.generation.temperature
    log_probs = sample_log_probs(model, batch, temperature)
    reference = None
    if training.reference is not None:
        with torch.no_grad():
            reference = sample_log_probs(training.reference.model, batch, temperature)
    mask = (batch["loss_weights"] > 0).to(log_probs.dtype)
    old, advantages = batch["old_log_probs"], batch["advantages"]
    losses = policy_loss(training.objective, log_probs, old, advantages, mask, reference)
    return (losses * batch["loss_weights"]).sum()


def policy_trainer(
    session: TrainingSession, training: PolicyTraining, rows: Sequence[Example], prompts: Prompts
) -> Any:
    """A trainer over the rows' prompts; every ``updates`` optimizer steps begin with rollouts of the student.

    Rollouts and their log-probabilities are in the ledger, so that a resume between two updates of one batch goes on
    with the same samples.
    """
    from transformers import Trainer, TrainingArguments

    class PolicyTrainer(TrainingMixin, Trainer):  # type: ignore[misc]
        _batch: tuple[int, list[RewardedSample]] | None = None

        def _get_train_sampler(self, train_dataset: Any = None) -> BlockSampler:
            return BlockSampler(len(rows), session.settings.batch_size, training.updates, session.context.seed)

        def prepare_step(self, batches: list[Any]) -> list[dict[str, Tensor]]:
            examples = [rows[index] for batch in batches for index in batch]
            block, update = divmod(self.state.global_step, training.updates)
            if self._batch is None or self._batch[0] != block:
                how, visit = training.generation, int(self.state.epoch or 0)
                groups = draw_groups(
                    session, examples, prompts, how, training.samples, step=block, visit=visit, update=update
                )
                # After a resume the samples were counted before.
                self._batch = block, _rewarded(session, training, groups, block, count=update == 0)
            samples = self._batch[1]
            own = samples[split_evenly(len(samples), training.updates)[update]]
            parts = [own[where] for where in split_evenly(len(own), len(batches))]
            return _weighted(
                [_pad(session.student.pad_id, part or own[:1], bool(part)) for part in parts], training, own
            )

        def step_loss(self, model: Any, batch: Mapping[str, Tensor]) -> Tensor:
            if training.reference is not None:
                reference = training.reference
                tokens = computed_tokens(reference.model, batch)
                session.counters.anchor_flops += forward_flops(reference.parameter_count(), tokens)
            return policy_step_loss(model, batch, training)

    trainer = PolicyTrainer(
        model=session.student.model,
        args=training_arguments(session, TrainingArguments, max(1, training.samples // training.updates)),
        train_dataset=list(range(len(rows))),
        data_collator=_collate,
    )
    trainer.session = session
    return trainer


def _collate(indices: list[int]) -> Any:
    # Rendered and padded in ``prepare_step``, once the rollouts exist.
    return indices


def _rewarded(
    session: TrainingSession, training: PolicyTraining, groups: Sequence[Group], block: int, *, count: bool
) -> list[RewardedSample]:
    """All samples with their advantages, in an order of the block's own, so that an update mixes groups."""
    verdicts = [session.stage.score(g.example, c.text).correct for g in groups for c in g.completions]
    rewards = torch.tensor([float(right) for right in verdicts], dtype=torch.float64)
    if count:
        differ = [group for group in rewards.view(-1, training.samples) if bool(group.min() != group.max())]
        session.counters.samples += len(verdicts)
        session.counters.usable_samples += training.samples * len(differ)
    advantages = iter(group_advantages(rewards, training.samples, training.scale, training.epsilon).tolist())
    samples = [RewardedSample(g.prompt_ids, c, next(advantages)) for g in groups for c in g.completions]
    shuffle(samples, session, block)
    return samples


def _pad(pad_id: int, samples: Sequence[RewardedSample], counted: bool) -> dict[str, Tensor]:
    batch = pad_batch([(sample.prompt_ids, sample.completion.ids) for sample in samples], pad_id)
    under_loss = batch["completion_mask"].bool()
    old = torch.zeros(under_loss.shape)
    old[under_loss] = torch.tensor([value for sample in samples for value in sample.completion.logprobs])
    if not counted:
        batch["completion_mask"].zero_()
    return {**batch, "old_log_probs": old, "advantages": torch.tensor([sample.advantage for sample in samples])}


def _weighted(
    batches: list[dict[str, Tensor]], training: PolicyTraining, samples: Sequence[RewardedSample]
) -> list[dict[str, Tensor]]:
    masks = [batch.pop("completion_mask") for batch in batches]
    tokens = sum(int(mask.sum()) for mask in masks)
    for batch, mask in zip(batches, masks, strict=True):
        batch["loss_weights"] = loss_weights(
            mask, training.reduction, tokens, len(samples), training.generation.max_new_tokens
        )
    return batches
