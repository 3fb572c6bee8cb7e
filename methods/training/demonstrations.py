"""Training on the gold demonstrations: what SFT, DFT and ASFT share."""

from __future__ import annotations

from cl_bench.harness.errors import NothingAcceptedError
from cl_bench.methods.base import Adaptation, Context, Method, Stage, Student
from cl_bench.methods.training.adaptation import adaptation_of, rows_hash
from cl_bench.methods.training.anchors import Anchor
from cl_bench.methods.training.mixin import TrainingSession
from cl_bench.methods.training.rows import TrainingRow, training_rows
from cl_bench.methods.training.settings import TrainingSettings
from cl_bench.methods.training.supervised import TokenLoss, supervised_trainer


def train_on_demonstrations(
    method: Method,
    student: Student,
    stage: Stage,
    context: Context,
    settings: TrainingSettings,
    token_loss: TokenLoss,
    anchor: Anchor | None = None,
) -> Adaptation:
    """Train on every demonstration that fits, token mean over each optimizer step.

    Args:
        method: The method, for its states in checkpoints.
        student: Trained in place.
        stage: Rows; those without a demonstration are dropped and counted.
        context: Checkpoints, seeds, progress.
        settings: The method's settings for this stage.
        token_loss: Loss of one label.
        anchor: What the student is held near, or None.

    Raises:
        NothingAcceptedError: No row is left.
    """
    rejected: dict[str, int] = {}
    rows = demonstration_rows(student, stage, settings.max_length, rejected)
    session = TrainingSession(method, student, stage, context, settings)
    trainer = supervised_trainer(session, rows, token_loss, anchor=anchor)
    trainer.run()
    return adaptation_of(session, trainer, rejected, rows_hash(rows))


def demonstration_rows(student: Student, stage: Stage, max_length: int, rejected: dict[str, int]) -> list[TrainingRow]:
    """Prompt and demonstration of each row as ids; what is left out is counted in ``rejected``.

    Raises ``NothingAcceptedError`` where no row is left.
    """
    pairs = []
    for example in stage.examples:
        if example.demonstration:
            pairs.append((example, example.demonstration))
        else:
            rejected["no_demonstration"] = rejected.get("no_demonstration", 0) + 1
    rows = training_rows(student, pairs, max_length, rejected)
    if not rows:
        raise NothingAcceptedError(
            f"stage {stage.name} has no row to train on",
            why=", ".join(f"{reason}: {count}" for reason, count in rejected.items()) or "the stage is empty",
            hint="check the data, or raise method.max_length",
        )
    return rows
