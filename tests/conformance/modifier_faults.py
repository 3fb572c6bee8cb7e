"""Modifiers that each do one thing wrong, and the right one that they come from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from cl_bench.methods.base import Context, Fidelity, MethodSettings, Modifier, Stage, Student
from tests.conformance.faults import UnreadSettings


class Pull(Modifier):
    """Right: pulls towards the start of the stage."""

    name: ClassVar[str] = "pull"
    fidelity: ClassVar[Fidelity] = Fidelity.RECONSTRUCTED
    Settings: ClassVar[type[MethodSettings]] = MethodSettings

    def before_stage(self, student: Student, stage: Stage, context: Context) -> None:
        self.start = {name: p.detach().clone() for name, p in context.task_start().model.named_parameters()}

    def parameter_penalty(self, student: Student) -> Tensor | None:
        weights = student.model.named_parameters()
        return self.strength() * torch.stack([(p - self.start[n]).square().sum() for n, p in weights]).sum()

    def strength(self) -> float:
        """Of the penalty."""
        return 1.0


class PullForgetsStages(Pull):
    """Pulls harder in every stage, and does not carry their number on."""

    seen = 0

    def after_stage(self, student: Student, stage: Stage, context: Context) -> None:
        self.seen += 1

    def strength(self) -> float:
        return 1.0 + 10 * self.seen


class PullForgetsSteps(Pull):
    """Pulls harder in every step, and does not keep their number in checkpoints."""

    made = 0

    def strength(self) -> float:
        self.made += 1
        return 10.0 * self.made


class PullsNothing(Pull):
    """A penalty of zero."""

    def strength(self) -> float:
        return 0.0


class PullMovesTheAnchor(Pull):
    """Writes into the model that the context handed out."""

    def before_stage(self, student: Student, stage: Stage, context: Context) -> None:
        start = context.task_start()
        self.start = dict(start.model.named_parameters())

    def after_stage(self, student: Student, stage: Stage, context: Context) -> None:
        for name, weight in student.model.named_parameters():
            self.start[name].data.copy_(weight)


class MeanTokenPenalty(Modifier):
    """The mean over the micro-batch in place of the sum, times the tokens of the micro-batch's longest row."""

    name: ClassVar[str] = "mean-token-penalty"
    fidelity: ClassVar[Fidelity] = Fidelity.RECONSTRUCTED
    Settings: ClassVar[type[MethodSettings]] = MethodSettings

    def token_penalty(self, student: Student, batch: Mapping[str, Tensor]) -> tuple[Tensor, Tensor] | None:
        model: Any = student.model
        logits = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits
        return 20 * logits.square().mean(), (batch["loss_weights"] > 0).sum()


class UnreadModifier(Pull):
    """Shows a setting that does nothing."""

    Settings: ClassVar[type[MethodSettings]] = UnreadSettings
