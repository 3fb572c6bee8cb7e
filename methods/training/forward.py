"""Forward passes that compute logits only where a loss needs them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from cl_bench.methods.training.divergences import Head
from cl_bench.methods.training.shared_prompts import positions, shared_prompts


def hidden_at(model: Any, batch: Mapping[str, Tensor], keep: Tensor) -> Tensor:
    """Last hidden states at the kept positions.

    Args:
        model: A causal language model of transformers.
        batch: ``input_ids`` and ``attention_mask``, [B, T]; padding on either side. With ``prompt_lengths`` [B] too,
            rows that continue the same prompt share its pass, where all kept positions predict tokens of completions.
        keep: Boolean [B, T]; position t is kept when its logits predict a loss token.

    Returns:
        [N, D], row by row.
    """
    shared = shared_prompts(model, batch)
    if shared is not None and shared.predicts_all(keep):
        return shared.hidden_at(model, keep)
    mask = batch["attention_mask"]
    output = model.get_decoder()(
        input_ids=batch["input_ids"], attention_mask=mask, position_ids=positions(mask), use_cache=False
    )
    hidden: Tensor = output.last_hidden_state[keep]
    return hidden


def computed_tokens(model: Any, batch: Mapping[str, Tensor]) -> int:
    """Tokens that a model computes in ``hidden_at``; padding does not count."""
    shared = shared_prompts(model, batch)
    return int(batch["attention_mask"].sum()) if shared is None else shared.tokens


def head_of(model: Any) -> Head:
    """The map from hidden states to logits, with the architecture's own scaling of logits."""
    projection = model.get_output_embeddings()
    config = model.config.get_text_config()
    cap = getattr(config, "final_logit_softcapping", None)
    scale = getattr(config, "logit_scale", None) or 1.0
    divisor = getattr(config, "logits_scaling", None) or 1.0

    def head(hidden: Tensor) -> Tensor:
        logits: Tensor = projection(hidden) * scale / divisor if scale != divisor else projection(hidden)
        return cap * torch.tanh(logits / cap) if cap else logits

    return head


def shifted(mask: Tensor) -> Tensor:
    """Positions whose logits predict the tokens under ``mask``: the mask moved one to the left, boolean [B, T]."""
    moved = torch.zeros_like(mask, dtype=torch.bool)
    moved[:, :-1] = mask[:, 1:].bool()
    return moved
