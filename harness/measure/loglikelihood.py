"""Log-probabilities of given continuations: fp32, batched by length, one shared prefix computed once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from cl_bench.harness.errors import UsageError
from cl_bench.methods.training.forward import head_of

if TYPE_CHECKING:
    from cl_bench.harness.generation.batches import KeptBatches
    from cl_bench.harness.models.chat_model import ChatModel

TokenIds = Sequence[int]
_KIND = "log-likelihoods"


class ContinuationScore(NamedTuple):
    """How likely a model finds one continuation.

    Attributes:
        logprob: Sum of the tokens' log-probabilities, in nats.
        is_greedy: Whether greedy decoding would have produced exactly this continuation.
        per_token: Log-probability of each token, in nats.
    """

    logprob: float
    is_greedy: bool
    per_token: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class _Row:
    """Continuations of one context laid out as one sequence: the common prefix, then what each adds to it."""

    requests: tuple[int, ...]
    tokens: tuple[int, ...]
    positions: tuple[int, ...]
    branches: tuple[int, ...]
    sources: tuple[tuple[int, ...], ...]
    targets: tuple[tuple[int, ...], ...]


def loglikelihoods(
    model: ChatModel,
    requests: Sequence[tuple[TokenIds, TokenIds]],
    batch_size: int = 64,
    kept: KeptBatches | None = None,
) -> list[ContinuationScore]:
    """Score continuations under a model.

    Continuations of the same context share one forward pass over what they have in common (a tree of attention), and
    logits are computed at continuation positions only. Always fp32, whatever autocast surrounds the call.

    Args:
        model: The model; its training mode is left as it is, so call it in evaluation mode.
        requests: Pairs of context ids (at least one) and continuation ids.
        batch_size: Continuations in one forward pass. Batches are a pure function of the requests and this number.
        kept: Where finished batches come from, and go to, or None.

    Returns:
        One score per request, in order. An empty continuation scores 0 and counts as greedy.

    Raises:
        UsageError: A context is empty, or a request is longer than the model's context.
    """
    for context, continuation in requests:
        if not context:
            raise UsageError("a continuation cannot be scored without a context", hint="start it with the end token")
        if len(context) + len(continuation) > model.context_length:
            length = len(context) + len(continuation)
            raise UsageError(
                f"a request of {length} tokens does not fit the context of {model.context_length} tokens",
                hint="skip and count such rows",
            )
    rows = sorted(_rows(requests, batch_size), key=lambda row: (len(row.tokens), row.requests))
    scores: list[ContinuationScore] = [ContinuationScore(0.0, True, ())] * len(requests)
    for batch in _batches(rows, batch_size):
        found = _kept_batch(model, batch, kept)
        for index, score in zip((index for row in batch for index in row.requests), found, strict=True):
            scores[index] = score
    return scores


def _kept_batch(model: ChatModel, batch: Sequence[_Row], kept: KeptBatches | None) -> list[ContinuationScore]:
    """A batch's scores, computed or taken over from an earlier process."""
    if kept is None:
        return _score_batch(model, batch)
    asked = [[row.tokens, row.positions, row.branches, row.sources, row.targets] for row in batch]
    stored = kept.get(_KIND, asked)
    if stored is None:
        scores = _score_batch(model, batch)
        kept.put(_KIND, asked, [[score.is_greedy, score.per_token] for score in scores])
        return scores
    return [ContinuationScore(sum(per_token), greedy, tuple(per_token)) for greedy, per_token in stored]


def _rows(requests: Sequence[tuple[TokenIds, TokenIds]], batch_size: int) -> list[_Row]:
    groups: dict[tuple[int, ...], list[int]] = {}
    for index, (context, continuation) in enumerate(requests):
        if continuation:
            groups.setdefault(tuple(context), []).append(index)
    return [
        _row(context, members[start : start + batch_size], requests)
        for context, members in groups.items()
        for start in range(0, len(members), batch_size)
    ]


def _row(context: tuple[int, ...], members: Sequence[int], requests: Sequence[tuple[TokenIds, TokenIds]]) -> _Row:
    sequences = [(*context, *requests[index][1]) for index in members]
    # The last token of a sequence predicts nothing that is asked for, so it is never fed to the model.
    inputs = [sequence[:-1] for sequence in sequences]
    trunk = _common_prefix(inputs)
    tokens, positions, branches = list(inputs[0][:trunk]), list(range(trunk)), [0] * trunk
    sources: list[tuple[int, ...]] = []
    for branch, sequence in enumerate(inputs, start=1):
        offset = len(tokens) - trunk
        tokens += sequence[trunk:]
        positions += range(trunk, len(sequence))
        branches += [branch] * (len(sequence) - trunk)
        places = range(len(context) - 1, len(sequence))
        sources.append(tuple(place if place < trunk else place + offset for place in places))
    targets = tuple(tuple(requests[index][1]) for index in members)
    return _Row(tuple(members), tuple(tokens), tuple(positions), tuple(branches), tuple(sources), targets)


def _common_prefix(sequences: Sequence[tuple[int, ...]]) -> int:
    first, last = min(sequences), max(sequences)
    length = 0
    while length < min(len(first), len(last)) and first[length] == last[length]:
        length += 1
    return length


def _batches(rows: Sequence[_Row], batch_size: int) -> list[list[_Row]]:
    batches: list[list[_Row]] = []
    room = 0
    for row in rows:
        if not batches or room < len(row.requests):
            batches.append([])
            room = batch_size
        batches[-1].append(row)
        room -= len(row.requests)
    return batches


@torch.inference_mode()
def _score_batch(model: ChatModel, rows: Sequence[_Row]) -> list[ContinuationScore]:
    network: Any = model.model
    network = network.get_base_model() if hasattr(network, "get_base_model") else network
    device = next(network.parameters()).device
    tokens = _padded([row.tokens for row in rows], model.pad_id, device)
    positions = _padded([row.positions for row in rows], 0, device)
    branches = _padded([row.branches for row in rows], -1, device)
    where = [(index, place) for index, row in enumerate(rows) for places in row.sources for place in places]
    wanted = torch.tensor([token for row in rows for ids in row.targets for token in ids], device=device)
    with torch.autocast(device.type, enabled=False):
        mask = _attention_mask(branches, network.dtype)
        hidden = network.get_decoder()(
            input_ids=tokens, position_ids=positions, attention_mask=mask, use_cache=False
        ).last_hidden_state
        at = torch.tensor(where, device=device)
        logits = head_of(network)(hidden[at[:, 0], at[:, 1]]).float()
    chosen = logits.gather(-1, wanted[:, None]).squeeze(-1) - logits.logsumexp(-1)
    greedy = (logits.argmax(-1) == wanted).tolist()
    values = chosen.tolist()
    scores: list[ContinuationScore] = []
    start = 0
    for target in (target for row in rows for target in row.targets):
        end = start + len(target)
        per_token = tuple(values[start:end])
        scores.append(ContinuationScore(sum(per_token), all(greedy[start:end]), per_token))
        start = end
    return scores


def _padded(rows: Sequence[Sequence[int]], fill: int, device: torch.device) -> torch.Tensor:
    width = max(len(row) for row in rows)
    return torch.tensor([[*row, *[fill] * (width - len(row))] for row in rows], device=device)


def _attention_mask(branches: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Additive mask [rows, 1, length, length]: each token sees earlier tokens of the trunk and of its own branch."""
    keys, queries = branches[:, None, :], branches[:, :, None]
    length = branches.shape[1]
    causal = torch.ones(length, length, dtype=torch.bool, device=branches.device).tril()
    allowed = causal & ((keys == 0) | (keys == queries))
    mask = torch.zeros(allowed.shape, dtype=dtype, device=branches.device)
    return mask.masked_fill_(~allowed, torch.finfo(dtype).min)[:, None]
