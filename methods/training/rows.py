"""Training rows as token ids, and micro-batches padded from them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.tasks.base import Example


@dataclass(frozen=True, slots=True)
class TrainingRow:
    """A prompt with the completion to learn, as ids (the completion ends with the end token)."""

    example_id: str
    prompt_ids: tuple[int, ...]
    completion_ids: tuple[int, ...]

    def __len__(self) -> int:
        """Length in tokens."""
        return len(self.prompt_ids) + len(self.completion_ids)


def training_rows(
    model: ChatModel, pairs: Iterable[tuple[Example, str]], max_length: int, rejected: dict[str, int]
) -> list[TrainingRow]:
    """Rows for (example, completion text) pairs; what does not fit is dropped and counted as ``too_long``."""
    limit = min(max_length, model.context_length)
    rows = []
    for example, text in pairs:
        row = TrainingRow(example.id, model.prompt_ids(example.messages), model.completion_ids(text))
        if len(row) > limit:
            rejected["too_long"] = rejected.get("too_long", 0) + 1
        else:
            rows.append(row)
    return rows


def pad_batch(
    rows: Sequence[tuple[Sequence[int], Sequence[int]]], pad_id: int, side: Literal["left", "right"] = "right"
) -> dict[str, Tensor]:
    """Pad (prompt ids, completion ids) pairs.

    Returns:
        ``input_ids``, ``attention_mask`` and ``completion_mask`` (1 on completion tokens, the end token included), each
        int64 [B, T]; ``prompt_lengths``, int64 [B].
    """
    longest = max(len(prompt) + len(completion) for prompt, completion in rows)
    ids = torch.full((len(rows), longest), pad_id)
    attention, completion_mask = torch.zeros_like(ids), torch.zeros_like(ids)
    for i, (prompt, completion) in enumerate(rows):
        length = len(prompt) + len(completion)
        start = longest - length if side == "left" else 0
        ids[i, start : start + length] = torch.tensor([*prompt, *completion])
        attention[i, start : start + length] = 1
        completion_mask[i, start + len(prompt) : start + length] = 1
    lengths = torch.tensor([len(prompt) for prompt, _ in rows])
    return {
        "input_ids": ids,
        "attention_mask": attention,
        "completion_mask": completion_mask,
        "prompt_lengths": lengths,
    }
