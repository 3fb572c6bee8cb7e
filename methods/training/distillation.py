"""Training on the student's own samples towards a teacher: what the on-policy distillation methods share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from cl_bench.harness.errors import NothingAcceptedError
from cl_bench.methods.base import Adaptation, Context, Method, Stage, Student, setting
from cl_bench.methods.training.adaptation import adaptation_of
from cl_bench.methods.training.conditioning import DEFAULT_TEMPLATE, conditioned_messages
from cl_bench.methods.training.divergences import Divergence
from cl_bench.methods.training.losses import Reduction
from cl_bench.methods.training.mixin import TrainingSession
from cl_bench.methods.training.on_policy import OnPolicyObjective, on_policy_trainer, prompt_pairs
from cl_bench.methods.training.settings import TrainingSettings, rollouts
from cl_bench.methods.training.teacher_log import TeacherLog
from cl_bench.methods.training.teachers import EMATeacher, FrozenTeacher, Teacher

_SDFT_CODE = "SDFT reference code (Self-Distillation)"

TeacherKind = Literal["ema", "task_start", "original"]


class SelfTeacherSettings(TrainingSettings):
    """Settings of methods whose teacher is the student itself with the demonstration in view, as in SDFT."""

    teacher_template: str = setting(
        DEFAULT_TEMPLATE,
        "The teacher's user turn, with {question} and {demonstration}.",
        unit="text",
        source="SDFT (2601.19897) section 3; wording ours",
        inferred=True,
    )
    teacher: TeacherKind = setting(
        "ema", "Teacher weights: average of the student, or frozen at an anchor.", unit="choice", source=_SDFT_CODE
    )
    ema_rate: float = setting(
        0.01,
        "Share of the student in each update of the average.",
        unit="fraction per step",
        source=_SDFT_CODE,
        gt=0,
        le=1,
    )
    reduction: Reduction = setting("sequence_mean", "How token losses are averaged.", unit="choice", source=_SDFT_CODE)
    skip_tokens: int = setting(
        3,
        "First completion tokens left out of the loss; always fewer than 20 % of the step's median completion.",
        unit="tokens",
        source=_SDFT_CODE,
        ge=0,
    )
    temperature: float = setting(1.0, "Sampling temperature of the rollouts.", unit="1", source=_SDFT_CODE, gt=0)
    max_completion_length: int = setting(1024, "Longest rollout.", unit="tokens", source=_SDFT_CODE, ge=1)


def train_on_own_samples(
    method: Method,
    student: Student,
    stage: Stage,
    context: Context,
    settings: TrainingSettings,
    objective: Callable[[TrainingSession], OnPolicyObjective],
) -> Adaptation:
    """Train the stage; every prompt is sampled once a visit.

    Args:
        method: The method, for its states in checkpoints.
        student: Trained in place.
        stage: Rows.
        context: Checkpoints, seeds, progress.
        settings: The method's settings for this stage.
        objective: What to train towards; built for the session, whose counters a schedule may read.

    Raises:
        NothingAcceptedError: No prompt is left.
    """
    session = TrainingSession(method, student, stage, context, settings)
    built = objective(session)
    session.teachers["teacher"] = built.teacher
    pairs = prompt_pairs(session, built)
    if not pairs.examples:
        raise NothingAcceptedError(
            f"stage {stage.name} has no prompt to train on",
            why=", ".join(f"{reason}: {count}" for reason, count in pairs.rejected.items()) or "the stage is empty",
            hint="raise method.max_length or lower method.max_completion_length",
        )
    log = TeacherLog(session, built.teacher, built.generation)
    trainer = on_policy_trainer(session, built, pairs)
    trainer.run()
    adaptation = adaptation_of(session, trainer, pairs.rejected, context.ledger.digest())
    adaptation.teacher = log.measure(trainer.last_samples)
    return adaptation


def self_taught(
    settings: SelfTeacherSettings, student: Student, context: Context, divergence: Divergence
) -> OnPolicyObjective:
    """Towards the student's own weights with the demonstration in view, one sample of each prompt."""
    return OnPolicyObjective(
        teacher=self_teacher(settings.teacher, student, context, settings.ema_rate),
        teacher_messages=lambda example: conditioned_messages(
            example, settings.teacher_template, example.demonstration or ""
        ),
        divergence=divergence,
        reduction=settings.reduction,
        generation=rollouts(settings.max_completion_length, settings.temperature, context),
        skip_tokens=settings.skip_tokens,
        needs_demonstration=True,
    )


def self_teacher(kind: TeacherKind, student: Student, context: Context, rate: float) -> Teacher:
    """The student's own weights as teacher: averaged, or frozen at the start of the stage or of the run."""
    if kind == "ema":
        return EMATeacher(student, rate)
    return FrozenTeacher(context.original() if kind == "original" else context.task_start())
