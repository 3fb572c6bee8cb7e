"""GRPO: the student's samples are weighed by how much better than their group they did."""

from __future__ import annotations

from typing import ClassVar, Literal, cast

from cl_bench.harness.errors import NothingAcceptedError, UsageError
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
from cl_bench.methods.training.adaptation import adaptation_of
from cl_bench.methods.training.mixin import TrainingSession
from cl_bench.methods.training.policy import REDUCTIONS, PolicyObjective, Scale
from cl_bench.methods.training.policy_trainer import PolicyTraining, policy_trainer
from cl_bench.methods.training.settings import TrainingSettings, rollouts
from cl_bench.tasks.base import Example

_TRL = "trl.GRPOTrainer"


class GRPOSettings(TrainingSettings):
    """Settings of GRPO."""

    samples: int = setting(8, "Samples of each prompt.", unit="samples", source=_TRL, ge=2)
    scale: Scale = setting(
        "group",
        "Rewards less their group's mean are divided by the group's or the batch's standard deviation, or not at all.",
        unit="choice",
        source=_TRL,
    )
    loss: Literal["grpo", "dr_grpo", "dapo", "bnpo"] = setting(
        "grpo",
        "Average within each sample (grpo), over all tokens (dapo, bnpo), or over the longest length (dr_grpo).",
        unit="choice",
        source=_TRL,
    )
    epsilon_low: float = setting(0.2, "Clip of the probability ratio below 1.", unit="1", source=_TRL, ge=0)
    epsilon_high: float = setting(0.2, "Clip of the probability ratio above 1.", unit="1", source=_TRL, ge=0)
    beta: float = setting(0.0, "Weight of the KL to the reference (estimator k3).", unit="1", source=_TRL, ge=0)
    reference: Literal["task_start", "original"] = setting(
        "task_start", "Frozen model of the KL term.", unit="choice", source=_TRL, inferred=True
    )
    updates: int = setting(
        1, "Optimizer steps that a batch of samples is split into.", unit="steps", source="GRPO (2402.03300)", ge=1
    )
    temperature: float = setting(1.0, "Sampling temperature.", unit="1", source=_TRL, gt=0)
    max_completion_length: int = setting(1024, "Longest sample.", unit="tokens", source=_TRL, inferred=True, ge=1)


class GRPO(Method):
    """Group relative policy optimisation (2402.03300) with the task's scorer as reward: 1 for right, 0 for wrong.

    Advantages within the group, clipped probability ratio, optional KL to a reference in memory (trl reloads it from
    disk). A group of equal rewards has no gradient; the share of the others is reported. No demonstration is read.
    """

    name: ClassVar[str] = "grpo"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.REWARD})
    fidelity: ClassVar[Fidelity] = Fidelity.REFERENCE_EXECUTED
    checked: ClassVar[str] = "vectors and training steps of trl; gradients by hand"
    paper: ClassVar[str] = "2402.03300"
    family: ClassVar[str] = "on-policy"
    Settings: ClassVar[type[MethodSettings]] = GRPOSettings

    def adapt(self, student: Student, stage: Stage, context: Context) -> Adaptation:
        """Train on the student's own samples. Raises ``NothingAcceptedError`` where no prompt is left."""
        settings = cast(GRPOSettings, cast(GRPOSettings, self.settings).for_stage(stage))
        if settings.batch_size * settings.samples < settings.updates:
            raise UsageError(
                f"{settings.updates} updates need at least as many samples",
                why=f"a batch has {settings.batch_size * settings.samples}",
                hint="lower method.updates",
            )
        training = PolicyTraining(
            objective=PolicyObjective(settings.epsilon_low, settings.epsilon_high, "token", settings.beta),
            reduction=REDUCTIONS[settings.loss],
            generation=rollouts(settings.max_completion_length, settings.temperature, context),
            samples=settings.samples,
            scale=settings.scale,
            epsilon=1e-4,
            updates=settings.updates,
            reference=None
            if settings.beta == 0
            else (context.original() if settings.reference == "original" else context.task_start()),
        )
        session = TrainingSession(self, student, stage, context, settings)
        rows, prompts, rejected = _fitting(session, training)
        if not rows:
            raise NothingAcceptedError(
                f"stage {stage.name} has no prompt to train on",
                why=", ".join(f"{reason}: {count}" for reason, count in rejected.items()) or "the stage is empty",
                hint="raise method.max_length or lower method.max_completion_length",
            )
        trainer = policy_trainer(session, training, rows, prompts)
        trainer.run()
        return adaptation_of(session, trainer, rejected, context.ledger.digest())


def _fitting(
    session: TrainingSession, training: PolicyTraining
) -> tuple[list[Example], dict[tuple[str, str], tuple[int, ...]], dict[str, int]]:
    """Rows whose prompt leaves room for an answer, their prompts, and what was left out."""
    longest = min(session.settings.max_length, session.student.context_length)
    rows: list[Example] = []
    prompts: dict[tuple[str, str], tuple[int, ...]] = {}
    rejected: dict[str, int] = {}
    for example in session.stage.examples:
        ids = session.student.prompt_ids(example.messages)
        if len(ids) + training.generation.max_new_tokens > longest:
            rejected["prompt_too_long"] = rejected.get("prompt_too_long", 0) + 1
        else:
            rows.append(example)
            prompts[example.key] = ids
    return rows, prompts, rejected
