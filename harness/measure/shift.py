"""Distribution shift: how far post-training moved the next-token distributions, per token in nats.

"Forward" is KL(base || post), "reverse" is KL(post || base), exact over the vocabulary at each given context. What the
contexts are is the caller's choice and belongs to the name under which a number is reported: forward KL on samples of
the base is what RL's Razor (2509.04259) relates to forgetting. Token means weigh every token alike, sequence means
every sequence. Log-softmax in the inputs' dtype, at least fp32.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.harness.models.vocabulary import shared_vocabulary_size
from cl_bench.methods.training.forward import head_of, hidden_at, shifted
from cl_bench.methods.training.losses import at_least_fp32
from cl_bench.methods.training.policy import k3
from cl_bench.methods.training.rows import pad_batch

TokenRow = tuple[Sequence[int], Sequence[int]]
"""Prompt ids and completion ids; measured on the completion's tokens."""

_POSITIONS, _LOGITS = 512, 2**24
"""Positions whose logits are alive at once, of each model: no more than this, nor than give this many logits."""


def token_kl(first_logits: Tensor, second_logits: Tensor) -> Tensor:
    """KL(first || second) at each position: logits [..., V] to [...].

    Forward KL is ``token_kl(base, post)``, reverse KL ``token_kl(post, base)``. Columns beyond the smaller table's
    size are padding, no tokens, and are cut.
    """
    size = shared_vocabulary_size(first_logits.shape[-1], second_logits.shape[-1])
    first = at_least_fp32(first_logits[..., :size]).log_softmax(-1)
    second = at_least_fp32(second_logits[..., :size]).log_softmax(-1)
    return (first.exp() * (first - second)).sum(-1)


def token_nll(logits: Tensor, ids: Tensor) -> Tensor:
    """Negative log-likelihood of each token: logits [..., V] that predict ``ids`` [...], to [...]."""
    return -at_least_fp32(logits).log_softmax(-1).gather(-1, ids.unsqueeze(-1)).squeeze(-1)


def sampled_kl_k1(sampled_from_nll: Tensor, other_nll: Tensor) -> Tensor:
    """The estimator k1 = log p(y) - log q(y) of KL(p || q) on tokens sampled from p: unbiased, can be negative."""
    return other_nll - sampled_from_nll


def sampled_kl_k3(sampled_from_nll: Tensor, other_nll: Tensor) -> Tensor:
    """The estimator k3 = q/p - 1 - log(q/p) of KL(p || q) on tokens sampled from p: unbiased and never negative."""
    return k3(-sampled_from_nll, -other_nll)


def token_mean(values: Tensor, mask: Tensor) -> float:
    """Mean of [B, T] over the tokens under the mask."""
    kept = mask.to(values.dtype)
    return float((values * kept).sum() / kept.sum())


def sequence_mean(values: Tensor, mask: Tensor) -> float:
    """Mean over sequences of the mean of [B, T] over each sequence's tokens under the mask (at least one each)."""
    kept = mask.to(values.dtype)
    return float(((values * kept).sum(-1) / kept.sum(-1)).mean())


@dataclass(slots=True)
class TokenStatistics:
    """A per-token quantity, collected sequence by sequence.

    Attributes:
        sums: Sum over each sequence's tokens.
        counts: Tokens of each sequence.
    """

    sums: list[float] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)

    def add(self, values: Tensor, lengths: Sequence[int]) -> None:
        """Add the values [N] of several sequences that lie one after another."""
        for part in values.double().split(list(lengths)):
            self.sums.append(float(part.sum()))
            self.counts.append(part.numel())

    def summary(self) -> dict[str, float | int | None]:
        """``token_mean``, ``sequence_mean``, ``tokens``, ``sequences``; the means are None without a token."""
        filled = [(total, count) for total, count in zip(self.sums, self.counts, strict=True) if count]
        tokens = sum(count for _, count in filled)
        return {
            "token_mean": sum(total for total, _ in filled) / tokens if tokens else None,
            "sequence_mean": sum(total / count for total, count in filled) / len(filled) if filled else None,
            "tokens": tokens,
            "sequences": len(filled),
        }


def measure_kl(
    first: ChatModel,
    second: ChatModel,
    rows: Sequence[TokenRow],
    batch_size: int = 32,
    second_prompts: Sequence[Sequence[int]] | None = None,
) -> Mapping[str, float | int | None]:
    """KL(first || second) on the completion tokens of rows.

    For forward KL ``first`` is the base and the completions are its samples; for reverse KL ``first`` is the
    post-trained model and the completions are its own. Neither model is changed, nor its mode.

    Args:
        first: The model whose distribution is averaged over.
        second: The other model; same tokenizer, its table may be padded to another size.
        rows: Prompt and completion ids; rows without completion count for nothing.
        batch_size: Rows in one forward pass.
        second_prompts: Prompt of each row that the second model sees in place of the row's; None: the same.

    Returns:
        See ``TokenStatistics.summary``.
    """
    theirs = [row[0] for row in rows] if second_prompts is None else second_prompts
    pairs = [(row, (prompt, row[1])) for row, prompt in zip(rows, theirs, strict=True)]

    def compare(part: Sequence[tuple[TokenRow, ...]]) -> Tensor:
        hidden = [_hidden(model, [forms[i] for forms in part]) for i, model in enumerate((first, second))]
        heads = head_of(first.model), head_of(second.model)
        size = _piece(first)
        pieces = zip(hidden[0].split(size), hidden[1].split(size), strict=True)
        return torch.cat([token_kl(heads[0](one), heads[1](two)) for one, two in pieces])

    return _collect((first, second), pairs, batch_size, compare)


def measure_nll(model: ChatModel, rows: Sequence[TokenRow], batch_size: int = 32) -> Mapping[str, float | int | None]:
    """Negative log-likelihood of the rows' completion tokens, for example of the training data under the base.

    Args:
        model: The model; not changed, nor its mode.
        rows: Prompt and completion ids.
        batch_size: Rows in one forward pass.

    Returns:
        See ``TokenStatistics.summary``.
    """

    def likelihood(part: Sequence[tuple[TokenRow, ...]]) -> Tensor:
        own = [row for (row,) in part]
        hidden, head, size = _hidden(model, own), head_of(model.model), _piece(model)
        targets = torch.tensor([token for _, completion in own for token in completion], device=hidden.device)
        pieces = zip(hidden.split(size), targets.split(size), strict=True)
        return torch.cat([token_nll(head(states), ids) for states, ids in pieces])

    return _collect((model,), [(row,) for row in rows], batch_size, likelihood)


def _hidden(chat: ChatModel, rows: Sequence[TokenRow]) -> Tensor:
    device = next(chat.model.parameters()).device
    batch = {name: value.to(device) for name, value in pad_batch(rows, chat.pad_id).items()}
    return hidden_at(chat.model, batch, shifted(batch["completion_mask"]))


def _piece(chat: ChatModel) -> int:
    head: Any = chat.model.get_output_embeddings()
    vocabulary: int = head.weight.shape[0]
    return min(_POSITIONS, max(1, _LOGITS // vocabulary))


def _collect(
    models: Sequence[ChatModel],
    rows: Sequence[tuple[TokenRow, ...]],
    batch_size: int,
    compute: Callable[[Sequence[tuple[TokenRow, ...]]], Tensor],
) -> Mapping[str, float | int | None]:
    """Collect what ``compute`` gives for the completion's tokens of each row, seen by every model in its own form."""
    statistics = TokenStatistics()
    modes = [model.model.training for model in models]
    try:
        for model in models:
            model.model.eval()
        with torch.no_grad():
            for part in _batches(rows, batch_size):
                statistics.add(compute(part), [len(forms[0][1]) for forms in part])
    finally:
        for model, mode in zip(models, modes, strict=True):
            model.model.train(mode)
    return statistics.summary()


def _batches(rows: Sequence[tuple[TokenRow, ...]], size: int) -> Iterator[list[tuple[TokenRow, ...]]]:
    # Similar lengths together: less padding. The order does not matter to the means.
    usable = [forms for forms in rows if forms[0][0] and forms[0][1]]
    usable.sort(key=lambda forms: (len(forms[0][0]) + len(forms[0][1]), *forms[0][0]))
    for start in range(0, len(usable), size):
        yield usable[start : start + size]
