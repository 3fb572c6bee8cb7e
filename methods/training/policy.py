"""Policy-gradient losses of the GRPO family: advantages within a group of samples, and the clipped loss of each token.

Pure functions. Sources: GRPO (2402.03300), Dr. GRPO (2503.20783), DAPO (2503.14476), GSPO (2507.18071); values and
gradients agree with trl 1.16 ``GRPOTrainer``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from cl_bench.methods.training.losses import Reduction

Scale = Literal["group", "batch", "none"]
"""What rewards less their group's mean are divided by: the group's standard deviation, the batch's, or nothing."""

REDUCTIONS: dict[str, Reduction] = {
    "grpo": "sequence_mean",
    "dr_grpo": "fixed_length",
    "dapo": "token_mean",
    "bnpo": "token_mean",
}
"""How each loss averages its tokens over an optimizer step. trl's ``bnpo`` averages within each micro-batch, so that it
depends on how the step is split; over the whole step it is ``dapo``."""


def group_advantages(rewards: Tensor, group: int, scale: Scale = "group", epsilon: float = 1e-4) -> Tensor:
    """Reward minus the mean of its group, scaled, [N].

    Args:
        rewards: [N]; the samples of one prompt stand together.
        group: Samples of a prompt. A group of equal rewards has advantages of zero.
        scale: What to divide by (standard deviations with Bessel's correction); ``none`` as in Dr. GRPO.
        epsilon: Added to the standard deviation.
    """
    grouped = rewards.view(-1, group)
    advantages = (grouped - grouped.mean(1, keepdim=True)).view(-1)
    if scale == "none" or rewards.numel() == 1:
        return advantages
    if scale == "batch":
        return advantages / (rewards.std() + epsilon)
    deviation = grouped.std(1) if group > 1 else grouped.new_zeros(len(grouped))
    return advantages / (deviation.repeat_interleave(group) + epsilon)


@dataclass(frozen=True, slots=True)
class PolicyObjective:
    """What one token of a sample contributes.

    Attributes:
        epsilon_low: The probability ratio is clipped below 1 - this.
        epsilon_high: The probability ratio is clipped above 1 + this.
        level: One ratio per ``token``, or per ``sequence`` (its geometric mean, as in GSPO).
        beta: Weight of the KL to the reference; 0 needs none.
        kl_times_ratio: Multiply that KL by the probability ratio, as trl does by default; the textbook does not.
    """

    epsilon_low: float = 0.2
    epsilon_high: float = 0.2
    level: Literal["token", "sequence"] = "token"
    beta: float = 0.0
    kl_times_ratio: bool = False


def policy_loss(
    objective: PolicyObjective,
    logprobs: Tensor,
    old_logprobs: Tensor,
    advantages: Tensor,
    mask: Tensor,
    reference_logprobs: Tensor | None = None,
) -> Tensor:
    """Loss of each token, [B, T], zero where the mask is; gradient flows through ``logprobs`` alone.

    Args:
        objective: Clipping, level and KL.
        logprobs: [B, T] of the samples' tokens under the student.
        old_logprobs: [B, T] under the policy that drew them; ``logprobs.detach()`` where that is the student itself.
        advantages: [B].
        mask: [B, T], 1 on the samples' tokens.
        reference_logprobs: [B, T] under the reference; needed where ``beta`` is not 0.
    """
    log_ratio = (logprobs - old_logprobs) * mask
    if objective.level == "sequence":
        log_ratio = log_ratio.sum(-1, keepdim=True) / mask.sum(-1, keepdim=True).clamp(min=1)
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1 - objective.epsilon_low, 1 + objective.epsilon_high)
    weight = advantages[:, None]
    loss = -torch.minimum(ratio * weight, clipped * weight)
    if objective.beta:
        assert reference_logprobs is not None
        penalty = k3(logprobs, reference_logprobs)
        loss = loss + objective.beta * (penalty * ratio if objective.kl_times_ratio else penalty)
    return loss * mask


def k3(logprobs: Tensor, reference_logprobs: Tensor) -> Tensor:
    """Estimator of KL(student || reference) from the student's own tokens: never negative (Schulman's k3)."""
    gap = reference_logprobs - logprobs
    return gap.exp() - gap - 1
