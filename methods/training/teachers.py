"""Teachers, owned in memory: never reloaded from a path, fp32, without gradient."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.methods.training.adapters import effective_weights, plain_copy


class Teacher(ABC):
    """A model that gives targets. ``chat`` is its model with the tokenizer that renders its prompts."""

    chat: ChatModel

    @abstractmethod
    def update(self, student: ChatModel) -> None:
        """Called after every optimizer step."""

    @abstractmethod
    def state(self) -> dict[str, Tensor]:
        """Weights to put into a checkpoint; empty for a teacher that the run can load again."""

    @abstractmethod
    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Inverse of ``state``."""


class FrozenTeacher(Teacher):
    """A fixed model: the untouched one, the model at the start of the task, or the aligner."""

    def __init__(self, chat: ChatModel) -> None:
        """Freeze a model that nobody trains (the context's own copies)."""
        chat.model.requires_grad_(False)
        chat.model.eval()
        self.chat = chat

    def update(self, student: ChatModel) -> None:
        """Nothing moves."""

    def state(self) -> dict[str, Tensor]:
        """Nothing: the run loads this model again."""
        return {}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Nothing to put back."""


class EMATeacher(Teacher):
    """Exponential moving average of the student's weights: teacher <- (1 - rate) teacher + rate student, in fp32.

    In bf16 the average hardly moves (a rate of 0.01 is below its resolution), so the copy is fp32 whatever the
    student's format. Source: SDFT (2601.19897), ``ref_model_mixup_alpha`` of its code.
    """

    def __init__(self, student: ChatModel, rate: float) -> None:
        """Start from a copy of the student as it is now (the start of the stage)."""
        model: Any = plain_copy(student.model).float()
        model.requires_grad_(False)
        model.eval()
        self.chat = replace(student, model=model, name=f"{student.name} (EMA)")
        self.rate = rate

    @torch.no_grad()
    def update(self, student: ChatModel) -> None:
        """One step of the average; tied weights once. Of adapters the product is averaged, not A and B."""
        theirs = effective_weights(student.model)
        for name, mine in self.chat.model.named_parameters():
            mine.lerp_(theirs[name].detach().float(), self.rate)

    def state(self) -> dict[str, Tensor]:
        """The averaged weights by parameter name."""
        return {name: p.detach().clone() for name, p in self.chat.model.named_parameters()}

    @torch.no_grad()
    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Put averaged weights back. Raises ``KeyError`` where a weight is missing."""
        for name, parameter in self.chat.model.named_parameters():
            parameter.copy_(state[name])
