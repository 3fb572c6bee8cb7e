"""Token losses of supervised methods, and the reductions that turn token losses into one number per optimizer step.

Everything here is pure. Logits are [N, V] at the N positions that predict loss tokens; labels are [N].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

Reduction = Literal["token_mean", "sequence_mean", "fixed_length"]


def at_least_fp32(logits: Tensor) -> Tensor:
    """Logits in fp32 or better (autocast yields bf16 ones)."""
    return logits if logits.dtype == torch.float64 else logits.float()


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Negative log-likelihood of each label, [N], in the logits' dtype (at least fp32)."""
    return torch.nn.functional.cross_entropy(at_least_fp32(logits), labels, reduction="none")


def dft_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Dynamic fine-tuning (2508.05629): each label's negative log-likelihood times its detached probability, [N]."""
    losses = cross_entropy(logits, labels)
    return (-losses).detach().exp() * losses


def loss_weights(
    mask: Tensor, reduction: Reduction, step_tokens: int, step_sequences: int, length: int | None = None
) -> Tensor:
    """Weights [B, T] such that the sum of weight x token loss over an optimizer step's micro-batches is its loss.

    Args:
        mask: [B, T], 1 where a token is under the loss.
        reduction: ``token_mean``: every token of the step counts 1 / step_tokens. ``sequence_mean``: every sequence
            counts 1 / step_sequences, its tokens equally (a sequence without a loss token counts as zero).
            ``fixed_length``: every token counts 1 / (step_sequences x length), as in Dr. GRPO.
        step_tokens: Loss tokens of the whole optimizer step.
        step_sequences: Sequences of the whole optimizer step.
        length: Longest completion that may be sampled; for ``fixed_length``.
    """
    mask = mask if mask.dtype == torch.float64 else mask.to(torch.float32)
    if reduction == "fixed_length":
        assert length is not None
        return mask / max(step_sequences * length, 1)
    if reduction == "token_mean":
        return mask / max(step_tokens, 1)
    return mask / mask.sum(1, keepdim=True).clamp(min=1) / max(step_sequences, 1)


def skip_mask(mask: Tensor, skip: int) -> Tensor:
    """The mask with the first ``skip`` loss tokens of every row taken out, [B, T]."""
    return mask * (mask.cumsum(1) > skip).to(mask.dtype)


def tokens_to_skip(limit: int, completion_lengths: Sequence[int], share: float = 0.2) -> int:
    """First tokens to leave out of the loss: at most ``limit``, always fewer than ``share`` of the median completion.

    SDFT skips three tokens of completions hundreds of tokens long; on short completions the same three would be most
    of the signal.
    """
    if not completion_lengths:
        return 0
    bound = share * float(torch.tensor(completion_lengths, dtype=torch.float64).median())
    return max(0, min(limit, -int(-bound // 1) - 1))
