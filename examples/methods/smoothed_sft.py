"""Supervised fine-tuning with label smoothing: a whole method in one file."""

from __future__ import annotations

from typing import ClassVar, cast

from torch import Tensor
from torch.nn.functional import cross_entropy

from cl_bench.harness.errors import NothingAcceptedError
from cl_bench.methods.base import (
    Adaptation,
    Context,
    Fidelity,
    Method,
    MethodSettings,
    Need,
    Stage,
    Student,
    setting,
)
from cl_bench.methods.training.adaptation import adaptation_of, rows_hash
from cl_bench.methods.training.mixin import TrainingSession
from cl_bench.methods.training.rows import training_rows
from cl_bench.methods.training.settings import TrainingSettings
from cl_bench.methods.training.supervised import supervised_trainer


class SmoothedSFTSettings(TrainingSettings):
    """The shared settings and one of its own."""

    smoothing: float = setting(
        0.1,
        "Probability moved from the label to the whole vocabulary.",
        unit="fraction",
        source="Szegedy et al. 2016",
        ge=0,
        lt=1,
    )


class SmoothedSFT(Method):
    """Cross-entropy against smoothed labels. With ``smoothing=0`` it is ``sft``."""

    name: ClassVar[str] = "smoothed-sft"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.DEMONSTRATIONS})
    fidelity: ClassVar[Fidelity] = Fidelity.PAPER_FORMULA
    paper: ClassVar[str] = "label smoothing, 1512.00567"
    family: ClassVar[str] = "supervised"
    Settings: ClassVar[type[MethodSettings]] = SmoothedSFTSettings

    def adapt(self, student: Student, stage: Stage, context: Context) -> Adaptation:
        """Train on the demonstrations. Raises ``NothingAcceptedError`` where no row is left."""
        settings = cast(SmoothedSFTSettings, cast(SmoothedSFTSettings, self.settings).for_stage(stage))
        rejected: dict[str, int] = {}
        pairs = [(example, example.demonstration) for example in stage.examples if example.demonstration]
        rows = training_rows(student, pairs, settings.max_length, rejected)
        if not rows:
            raise NothingAcceptedError(f"stage {stage.name} has no row to train on", why=f"dropped: {rejected}")

        def token_loss(logits: Tensor, labels: Tensor) -> Tensor:
            return cross_entropy(logits.float(), labels, reduction="none", label_smoothing=settings.smoothing)

        session = TrainingSession(self, student, stage, context, settings)
        trainer = supervised_trainer(session, rows, token_loss)
        trainer.run()
        return adaptation_of(session, trainer, rejected, rows_hash(rows))
