"""One forward pass a distinct prompt: rows of a micro-batch that continue the same prompt share its keys and values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

_WORTH_IT = 0.75
"""Share of the rows' tokens under which the two passes (prompts, then completions) are taken in place of one."""


@dataclass(frozen=True, slots=True)
class SharedPrompts:
    """A micro-batch as distinct prompts and their continuations.

    Attributes:
        prompts: Distinct prompts, padded on the left, [G, P].
        prompt_mask: 1 on their tokens, [G, P].
        owner: Each row's prompt, [B].
        completions: Padded on the right, [B, C].
        completion_mask: 1 on their tokens, [B, C].
        last: Column of each row's last prompt token in the batch, [B].
    """

    prompts: Tensor
    prompt_mask: Tensor
    owner: Tensor
    completions: Tensor
    completion_mask: Tensor
    last: Tensor

    @property
    def tokens(self) -> int:
        """Tokens that a model computes; the last of a completion predicts nothing."""
        return int(self.prompt_mask.sum() + self.completion_mask[:, :-1].sum())

    def hidden_at(self, model: Any, keep: Tensor) -> Tensor:
        """Last hidden states [N, D] at the kept positions of the batch, [B, T], row by row."""
        from transformers import DynamicCache

        cache: Any = DynamicCache()
        decoder = model.get_decoder()
        ends = decoder(
            input_ids=self.prompts,
            attention_mask=self.prompt_mask,
            position_ids=positions(self.prompt_mask),
            cache=cache,
            use_cache=True,
        ).last_hidden_state[:, -1]
        # Chosen by a product: the gradient of picking rows by index is summed in an order that threads decide.
        chosen = torch.nn.functional.one_hot(self.owner, len(self.prompts))
        for layer in cache.layers:
            layer.keys, layer.values = _rows_of(layer.keys, chosen), _rows_of(layer.values, chosen)
        mask = torch.cat([self.prompt_mask[self.owner], self.completion_mask[:, :-1]], dim=1)
        states = decoder(
            input_ids=self.completions[:, :-1],
            attention_mask=mask,
            position_ids=positions(mask)[:, self.prompts.shape[1] :],
            cache=cache,
            use_cache=True,
        ).last_hidden_state
        hidden: Tensor = torch.cat([_rows_of(ends, chosen)[:, None], states], dim=1)[self._kept(keep)]
        return hidden

    def predicts_all(self, keep: Tensor) -> bool:
        """Whether every kept position of the batch predicts a token of a completion."""
        return bool(self._kept(keep).sum() == keep.sum())

    def _kept(self, keep: Tensor) -> Tensor:
        """The kept positions among each row's last prompt token and its completion, [B, C]."""
        columns = self.last[:, None] + torch.arange(self.completions.shape[1], device=keep.device)
        return keep.gather(1, columns.clamp(max=keep.shape[1] - 1)) & self.completion_mask.bool()


def shared_prompts(model: Any, batch: Mapping[str, Tensor]) -> SharedPrompts | None:
    """The batch with every prompt once, or None where that would save little or the model has more than attention.

    Args:
        model: A causal language model of transformers.
        batch: ``input_ids`` and ``attention_mask`` [B, T], padding on either side; ``prompt_lengths`` [B], without it
            None is returned.
    """
    if "prompt_lengths" not in batch or len(batch["input_ids"]) == 1:
        return None
    ids, mask, lengths = batch["input_ids"], batch["attention_mask"], batch["prompt_lengths"]
    begin = mask.argmax(1)
    completion_lengths = mask.sum(1) - lengths
    if int(lengths.min()) < 1 or int(completion_lengths.max()) < 2:
        return None
    prompt, inside = _slice(ids, begin + lengths - int(lengths.max()), int(lengths.max()), begin, begin + lengths)
    distinct, owner = torch.where(inside, prompt, -1).unique(dim=0, return_inverse=True)
    end = begin + lengths
    completion, counted = _slice(ids, end, int(completion_lengths.max()), end, end + completion_lengths)
    shared = SharedPrompts(
        distinct.clamp(min=0), (distinct >= 0).long(), owner, completion, counted.long(), begin + lengths - 1
    )
    return shared if shared.tokens <= _WORTH_IT * int(mask.sum()) and _attention_alone(model) else None


def _attention_alone(model: Any) -> bool:
    """Whether all that a later token sees of earlier ones is each layer's own keys and values."""
    config = model.config.get_text_config()
    kinds = set(getattr(config, "layer_types", None) or ())
    shares_keys = bool(getattr(config, "num_kv_shared_layers", 0))
    plain = not model._is_stateful and not shares_keys and kinds <= {"full_attention", "sliding_attention"}
    return plain and not _rope_types(config) & {"dynamic", "longrope"}


def _rope_types(config: Any) -> set[str]:
    """Kinds of rotary embedding, of the model or of each kind of layer; some depend on the longest row of a pass."""
    parameters = getattr(config, "rope_parameters", None) or {}
    return {str(part.get("rope_type")) for part in (parameters, *parameters.values()) if isinstance(part, Mapping)}


def _rows_of(states: Tensor, chosen: Tensor) -> Tensor:
    """Rows [B, ...] of the distinct prompts' states [G, ...], by one-hot [B, G]; exact in any format."""
    with torch.autocast(states.device.type, enabled=False):
        return (chosen.to(states.dtype) @ states.flatten(1)).view(len(chosen), *states.shape[1:])


def _slice(ids: Tensor, start: Tensor, width: int, first: Tensor, past: Tensor) -> tuple[Tensor, Tensor]:
    """``width`` columns of each row from its own start on, and which of them lie in [first, past)."""
    columns = start[:, None] + torch.arange(width, device=ids.device)
    inside = (columns >= first[:, None]) & (columns < past[:, None])
    return ids.gather(1, columns.clamp(0, ids.shape[1] - 1)), inside


def positions(mask: Tensor) -> Tensor:
    """Position of each token among its row's own, [B, T]; padding on either side."""
    return (mask.cumsum(1) - 1).clamp(min=0)
