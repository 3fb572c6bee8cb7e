"""The files that ``cl-bench new method`` writes; words between @ signs are filled in by ``new``."""

from __future__ import annotations

METHOD = '''"""@NAME@: say in one line what it does."""

from __future__ import annotations

from typing import ClassVar, cast

import torch
from torch import Tensor

from cl_bench.harness.errors import NothingAcceptedError
from cl_bench.methods.base import Adaptation, Context, Fidelity, Method, MethodSettings, Need, Stage, Student, setting
from cl_bench.methods.training.adaptation import adaptation_of, rows_hash
from cl_bench.methods.training.losses import cross_entropy
from cl_bench.methods.training.mixin import TrainingSession
from cl_bench.methods.training.rows import training_rows
from cl_bench.methods.training.settings import TrainingSettings
from cl_bench.methods.training.supervised import supervised_trainer


class @CLASS@Settings(TrainingSettings):
    """Settings of @NAME@, beside learning rate, epochs and what else every method has."""

    smoothing: float = setting(
        0.1, "Share of the target spread evenly over the vocabulary.", unit="fraction", source="cl-bench", ge=0, lt=1
    )


class @CLASS@(Method):
    """Learn from the demonstrations with a smoothed target; put your own loss in place of ``smoothed``."""

    name: ClassVar[str] = "@NAME@"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.DEMONSTRATIONS})
    fidelity: ClassVar[Fidelity] = Fidelity.RECONSTRUCTED
    paper: ClassVar[str] = ""
    family: ClassVar[str] = "supervised"
    Settings: ClassVar[type[MethodSettings]] = @CLASS@Settings

    def adapt(self, student: Student, stage: Stage, context: Context) -> Adaptation:
        """Train the student in place. Raises ``NothingAcceptedError`` where no row is left."""
        settings = cast(@CLASS@Settings, cast(@CLASS@Settings, self.settings).for_stage(stage))
        rejected: dict[str, int] = {}
        pairs = [(example, example.demonstration) for example in stage.examples if example.demonstration]
        rows = training_rows(student, pairs, settings.max_length, rejected)
        if not rows:
            raise NothingAcceptedError(f"stage {stage.name} has no row to train on", why=str(rejected))

        def token_loss(logits: Tensor, labels: Tensor) -> Tensor:
            return smoothed(logits, labels, settings.smoothing)

        session = TrainingSession(self, student, stage, context, settings)
        trainer = supervised_trainer(session, rows, token_loss)
        trainer.run()
        return adaptation_of(session, trainer, rejected, rows_hash(rows))


def smoothed(logits: Tensor, labels: Tensor, share: float) -> Tensor:
    """Cross-entropy against a target that gives ``share`` to the whole vocabulary, one value a label.

    Args:
        logits: [N, V], at the positions that predict the labels.
        labels: [N].
        share: 0 is plain cross-entropy.
    """
    evenly = -torch.log_softmax(logits.float(), dim=-1).mean(dim=-1)
    return (1 - share) * cross_entropy(logits, labels) + share * evenly
'''

TEST = '''"""Tests of @NAME@: its loss on numbers worked out by hand, and the checks of cl-bench."""

from __future__ import annotations

import math
from pathlib import Path

import torch

from cl_bench.harness.cli import exit_code_of
from cl_bench.harness.plugins import import_file

FILE = @FILE@


def test_loss_of_even_logits_is_the_logarithm_of_the_vocabulary() -> None:
    smoothed = import_file(FILE).smoothed
    loss = smoothed(torch.zeros(3, 4), torch.tensor([0, 1, 2]), 0.1)
    assert torch.allclose(loss, torch.full((3,), math.log(4.0)))


def test_smoothing_costs_a_confident_answer() -> None:
    smoothed = import_file(FILE).smoothed
    logits = torch.tensor([[9.0, 0.0, 0.0, 0.0]])
    label = torch.tensor([0])
    assert smoothed(logits, label, 0.1).item() > smoothed(logits, label, 0.0).item() + 0.5


def test_cl_bench_accepts_it() -> None:
    assert exit_code_of(["validate", "method", str(FILE)]) == 0
'''
