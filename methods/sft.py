"""SFT: cross-entropy on the gold demonstrations."""

from __future__ import annotations

from typing import ClassVar, cast

from cl_bench.harness.errors import NothingAcceptedError
from cl_bench.methods.base import Adaptation, Context, Fidelity, Method, MethodSettings, Need, Stage, Student
from cl_bench.methods.training.adaptation import adaptation_of, rows_hash
from cl_bench.methods.training.losses import cross_entropy
from cl_bench.methods.training.mixin import TrainingSession
from cl_bench.methods.training.rows import training_rows
from cl_bench.methods.training.settings import TrainingSettings
from cl_bench.methods.training.supervised import supervised_trainer


class SFTSettings(TrainingSettings):
    """Settings of SFT: those of every trained method."""


class SFT(Method):
    """Supervised fine-tuning: token-mean negative log-likelihood of the demonstration, prompt excluded, end included.

    Source: SynthSelf (2610.13113) table 5 for the settings; trl's ``SFTTrainer`` with ``loss_type="nll"`` for the loss.
    """

    name: ClassVar[str] = "sft"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.DEMONSTRATIONS})
    fidelity: ClassVar[Fidelity] = Fidelity.REFERENCE_EXECUTED
    paper: ClassVar[str] = "standard; settings of SynthSelf (2610.13113) table 5"
    family: ClassVar[str] = "supervised"
    Settings: ClassVar[type[MethodSettings]] = SFTSettings

    def adapt(self, student: Student, stage: Stage, context: Context) -> Adaptation:
        """Train on the demonstrations. Raises ``NothingAcceptedError`` where no row is left."""
        settings = cast(SFTSettings, self.settings).for_stage(stage)
        rejected: dict[str, int] = {}
        pairs = []
        for example in stage.examples:
            if example.demonstration:
                pairs.append((example, example.demonstration))
            else:
                rejected["no_demonstration"] = rejected.get("no_demonstration", 0) + 1
        rows = training_rows(student, pairs, settings.max_length, rejected)
        if not rows:
            raise NothingAcceptedError(
                f"stage {stage.name} has no row to train on",
                why=", ".join(f"{reason}: {count}" for reason, count in rejected.items()) or "the stage is empty",
                hint="check the data, or raise method.max_length",
            )
        session = TrainingSession(self, student, stage, context, settings)
        trainer = supervised_trainer(session, rows, cross_entropy)
        trainer.run()
        return adaptation_of(session, trainer, rejected, rows_hash(rows))
