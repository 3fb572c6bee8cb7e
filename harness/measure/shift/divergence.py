"""Distribution shift: how far post-training moved the next-token distributions, per token in nats.

"Forward" is KL(base || post), "reverse" is KL(post || base), exact over the vocabulary at each given context. What the
contexts are is the caller's choice and belongs to the name under which a number is reported: forward KL on samples of
the base is what RL's Razor (2509.04259) relates to forgetting. Token means weigh every token alike, sequence means
every sequence. Log-softmax in the inputs' dtype, at least fp32.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.harness.models.vocabulary import shared_vocabulary_size
from cl_bench.harness.seeds import preserved_rng
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
    """A per-token quantity of some rows.

    Attributes:
        sums: Sum over each row's tokens.
        counts: Tokens of each row; 0 for one that was not measured.
    """

    sums: list[float]
    counts: list[int]

    @classmethod
    def of(cls, rows: int) -> TokenStatistics:
        """Nothing measured yet."""
        return cls([0.0] * rows, [0] * rows)

    def put(self, places: Sequence[int], values: Tensor, lengths: Sequence[int]) -> None:
        """Take in the values [N] of several rows that lie one after another; ``places`` says which rows these are."""
        for place, part in zip(places, values.cpu().double().split(list(lengths)), strict=True):
            self.sums[place], self.counts[place] = float(part.sum()), part.numel()

    def of_rows(self, places: Iterable[int]) -> TokenStatistics:
        """The same for some of the rows."""
        chosen = list(places)
        return TokenStatistics([self.sums[place] for place in chosen], [self.counts[place] for place in chosen])

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
        hidden = [hidden_states(model, [forms[i] for forms in part]) for i, model in enumerate((first, second))]
        heads = head_of(first.model), head_of(second.model)
        size = piece_size(first)
        pieces = zip(hidden[0].split(size), hidden[1].split(size), strict=True)
        return torch.cat([token_kl(heads[0](one), heads[1](two)) for one, two in pieces])

    return _collect((first, second), pairs, batch_size, compare).summary()


def measure_nll(model: ChatModel, rows: Sequence[TokenRow], batch_size: int = 32) -> Mapping[str, float | int | None]:
    """Negative log-likelihood of the rows' completion tokens; see ``row_nll`` and ``TokenStatistics.summary``."""
    return row_nll(model, rows, batch_size).summary()


def row_nll(model: ChatModel, rows: Sequence[TokenRow], batch_size: int = 32) -> TokenStatistics:
    """Negative log-likelihood of each row's completion, for example of the training data under the base.

    Args:
        model: The model; not changed, nor its mode.
        rows: Prompt and completion ids; one that lacks either is not measured.
        batch_size: Rows in one forward pass.
    """

    def likelihood(part: Sequence[tuple[TokenRow, ...]]) -> Tensor:
        own = [row for (row,) in part]
        hidden, head, size = hidden_states(model, own), head_of(model.model), piece_size(model)
        targets = torch.tensor([token for _, completion in own for token in completion], device=hidden.device)
        pieces = zip(hidden.split(size), targets.split(size), strict=True)
        return torch.cat([token_nll(head(states), ids) for states, ids in pieces])

    return _collect((model,), [(row,) for row in rows], batch_size, likelihood)


def hidden_states(chat: ChatModel, rows: Sequence[TokenRow]) -> Tensor:
    """Last hidden states [N, D] that predict the rows' completion tokens, row by row."""
    device = next(chat.model.parameters()).device
    batch = {name: value.to(device) for name, value in pad_batch(rows, chat.pad_id).items()}
    return hidden_at(chat.model, batch, shifted(batch["completion_mask"]))


def piece_size(chat: ChatModel) -> int:
    """Positions whose logits are computed at once."""
    head: Any = chat.model.get_output_embeddings()
    vocabulary: int = head.weight.shape[0]
    return min(_POSITIONS, max(1, _LOGITS // vocabulary))


def _collect(
    models: Sequence[ChatModel],
    rows: Sequence[tuple[TokenRow, ...]],
    batch_size: int,
    compute: Callable[[Sequence[tuple[TokenRow, ...]]], Tensor],
) -> TokenStatistics:
    """Collect what ``compute`` gives for the completion's tokens of each row, seen by every model in its own form."""
    statistics = TokenStatistics.of(len(rows))
    # Part by part: what was frozen in evaluation mode within a model in training stays so.
    modes = [(module, module.training) for model in models for module in model.model.modules()]
    try:
        for model in models:
            model.model.eval()
        with preserved_rng(), torch.no_grad():
            _fill(statistics, rows, batch_size, compute)
    finally:
        for module, mode in modes:
            module.training = mode
    return statistics


def _fill(
    statistics: TokenStatistics,
    rows: Sequence[tuple[TokenRow, ...]],
    batch_size: int,
    compute: Callable[[Sequence[tuple[TokenRow, ...]]], Tensor],
) -> None:
    for places in batches([forms[0] for forms in rows], batch_size):
        part = [rows[place] for place in places]
        statistics.put(places, compute(part), [len(forms[0][1]) for forms in part])


def batches(rows: Sequence[TokenRow], size: int) -> Iterator[list[int]]:
    """Places of the rows that have prompt and completion, similar lengths together: less padding."""
    usable = [place for place, row in enumerate(rows) if row[0] and row[1]]
    usable.sort(key=lambda place: (len(rows[place][0]) + len(rows[place][1]), *rows[place][0]))
    for start in range(0, len(usable), size):
        yield usable[start : start + size]
