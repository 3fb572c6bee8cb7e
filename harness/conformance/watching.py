"""A context and a task that note what a method does with what it is handed."""

from __future__ import annotations

import copy
import functools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor

from cl_bench.harness.conformance.tiny import TinyContext, same_weights, tiny_model, toy_examples, weights
from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.methods.base import Modifier, Precision
from cl_bench.tasks.base import Example, Score, Task

Weights = dict[str, Tensor]
State = dict[str, Any]
CONTEXT_LENGTH = 1024
"""Room for the templates that show a demonstration, which have about a token a letter here."""
ROWS = 8
"""Rows of a whole stage: two optimizer steps an epoch."""


class WatchingContext(TinyContext):
    """Notes the models that it hands out, the steps that are reported and the state in the middle of the stage."""

    def __init__(
        self,
        folder: Path,
        stage: str,
        student: ChatModel,
        parts: Sequence[Any],
        modifiers: Sequence[Modifier],
        micro: int,
        padding: str,
        every_steps: int | None,
        stop_at: int | None,
    ) -> None:
        """Build for one stage.

        Args:
            folder: Checkpoints and cache.
            stage: Name of the stage.
            student: As the stage begins.
            parts: Method and modifiers, for their states.
            modifiers: Called by the training loop.
            micro: Micro-batch size.
            padding: Padding side of every tokenizer.
            every_steps: Optimizer steps between checkpoints, or None.
            stop_at: Optimizer step after which ``Stopped`` is raised, or None.
        """
        original, aligner = (padded(untouched(seed), padding) for seed in (0, 1))
        super().__init__(
            folder,
            precision=Precision(micro_batch_size=micro),
            every_steps=every_steps,
            stop_at=stop_at,
            aligner=aligner,
            modifiers=modifiers,
            original=original,
            task_start=replace(student, model=copy.deepcopy(student.model)),
            stage=stage,
        )
        self._parts, self._handed = parts, list[tuple[str, ChatModel, Weights]]()
        self.steps, self.middle = 0, list[State]()

    def changed(self) -> list[str]:
        """Names of the models handed out whose weights are not what they were."""
        return sorted({name for name, model, was in self._handed if not same_weights(weights(model), was)})

    def aligner(self) -> ChatModel:
        """See ``Context``."""
        return self._noted("aligner()", super().aligner())

    def original(self) -> ChatModel:
        """See ``Context``."""
        return self._noted("original()", super().original())

    def task_start(self) -> ChatModel:
        """See ``Context``."""
        return self._noted("task_start()", super().task_start())

    def after_step(self, step: int) -> None:
        """Note the step, and the state that a checkpoint would hold."""
        self.steps = step
        if not self.middle:
            self.middle = [copy.deepcopy(part.training_state()) for part in self._parts]
        super().after_step(step)

    def _noted(self, name: str, model: ChatModel) -> ChatModel:
        self._handed.append((name, model, weights(model)))
        return model


class GuardedTask(Task):
    """Sums; notes whoever reads the rows that no method may see."""

    name = "toy"

    def __init__(self) -> None:
        """Nothing has been read."""
        self.peeked: list[str] = []

    def train(self) -> Sequence[Example]:
        """Rows of two stages."""
        return toy_examples(2 * ROWS)

    def dev(self) -> Sequence[Example]:
        """None."""
        return ()

    def test(self) -> Sequence[Example]:
        """Noted."""
        self.peeked.append("test")
        return self.train()

    def ood(self) -> Sequence[Example]:
        """Noted."""
        self.peeked.append("ood")
        return self.train()

    def score(self, example: Example, text: str) -> Score:
        """The text of a random model passes about every second time, so that rewards differ."""
        return Score(bool(text) and len(text) % 2 == 0, text or None, True)

    def rows(self, index: int, count: int) -> list[Example]:
        """Other rows for each of two stages."""
        return list(self.train())[(index - 1) * ROWS :][:count]

    def scorers(self) -> dict[str, Any]:
        """As a run hands them to a stage."""
        return {self.name: self.score}


@functools.cache
def untouched(seed: int) -> ChatModel:
    """The tiny student (0) or aligner (1) before anything is trained; not to be changed."""
    return tiny_model(seed, context_length=CONTEXT_LENGTH, ends=8)


def padded(model: ChatModel, side: str) -> ChatModel:
    """A copy of a model whose tokenizer pads on that side."""
    tokenizer = copy.deepcopy(model.tokenizer)
    tokenizer.padding_side = side
    return replace(model, model=copy.deepcopy(model.model), tokenizer=tokenizer)
