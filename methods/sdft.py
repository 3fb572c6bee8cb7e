"""SDFT: the student learns, on its own samples, from itself having seen the demonstration."""

from __future__ import annotations

from typing import ClassVar, Literal, cast

from cl_bench.harness.errors import NothingAcceptedError
from cl_bench.harness.generation.base import GenerationSettings
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
from cl_bench.methods.training.conditioning import DEFAULT_TEMPLATE, conditioned_messages
from cl_bench.methods.training.divergences import jensen_shannon
from cl_bench.methods.training.losses import Reduction
from cl_bench.methods.training.mixin import TrainingSession
from cl_bench.methods.training.on_policy import OnPolicyObjective, on_policy_trainer, prompt_pairs
from cl_bench.methods.training.settings import TrainingSettings
from cl_bench.methods.training.teachers import EMATeacher, FrozenTeacher, Teacher

_CODE = "SDFT reference code (Self-Distillation)"


class SDFTSettings(TrainingSettings):
    """Settings of SDFT."""

    teacher_template: str = setting(
        DEFAULT_TEMPLATE,
        "The teacher's user turn, with {question} and {demonstration}.",
        unit="text",
        source="SDFT (2601.19897) section 3; wording ours",
        inferred=True,
    )
    teacher: Literal["ema", "task_start", "original"] = setting(
        "ema", "Teacher weights: average of the student, or frozen at an anchor.", unit="choice", source=_CODE
    )
    ema_rate: float = setting(
        0.01, "Share of the student in each update of the average.", unit="fraction per step", source=_CODE, gt=0, le=1
    )
    alpha: float = setting(
        0.0, "0: forward KL(teacher || student), 1: reverse KL, between: JSD.", unit="1", source=_CODE, ge=0, le=1
    )
    reduction: Reduction = setting("sequence_mean", "How token losses are averaged.", unit="choice", source=_CODE)
    skip_tokens: int = setting(
        3,
        "First completion tokens left out of the loss; always fewer than 20 % of the step's median completion.",
        unit="tokens",
        source=_CODE,
        ge=0,
    )
    temperature: float = setting(1.0, "Sampling temperature of the rollouts.", unit="1", source=_CODE, gt=0)
    max_completion_length: int = setting(1024, "Longest rollout.", unit="tokens", source=_CODE, ge=1)


class SDFT(Method):
    """Self-distillation fine-tuning (2601.19897).

    One sample per prompt from the current student; the teacher (EMA of the student, in memory, fp32, restarted from the
    student at every stage) sees question and demonstration and scores that sample; full-vocabulary forward KL. The
    paper's text says reverse KL; its code and results use forward KL, and so does the default here.
    """

    name: ClassVar[str] = "sdft"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.DEMONSTRATIONS})
    fidelity: ClassVar[Fidelity] = Fidelity.REFERENCE_EXECUTED
    paper: ClassVar[str] = "2601.19897"
    family: ClassVar[str] = "on-policy"
    Settings: ClassVar[type[MethodSettings]] = SDFTSettings

    def adapt(self, student: Student, stage: Stage, context: Context) -> Adaptation:
        """Train on the student's own samples. Raises ``NothingAcceptedError`` where no prompt is left."""
        settings = cast(SDFTSettings, cast(SDFTSettings, self.settings).for_stage(stage))
        teacher = _teacher(student, settings, context)
        session = TrainingSession(self, student, stage, context, settings, teachers={"teacher": teacher})
        objective = OnPolicyObjective(
            teacher=teacher,
            teacher_messages=lambda example: conditioned_messages(
                example, settings.teacher_template, example.demonstration or ""
            ),
            divergence=jensen_shannon(settings.alpha),
            reduction=settings.reduction,
            generation=GenerationSettings(
                max_new_tokens=settings.max_completion_length,
                temperature=settings.temperature,
                batch_size=context.precision.generation_batch_size,
            ),
            skip_tokens=settings.skip_tokens,
            needs_demonstration=True,
        )
        pairs = prompt_pairs(session, objective)
        if not pairs.examples:
            raise NothingAcceptedError(
                f"stage {stage.name} has no prompt to train on",
                why=", ".join(f"{reason}: {count}" for reason, count in pairs.rejected.items()) or "the stage is empty",
                hint="raise method.max_length or lower method.max_completion_length",
            )
        trainer = on_policy_trainer(session, objective, pairs)
        trainer.run()
        return adaptation_of(session, trainer, pairs.rejected, context.ledger.digest())


def _teacher(student: Student, settings: SDFTSettings, context: Context) -> Teacher:
    if settings.teacher == "ema":
        return EMATeacher(student, settings.ema_rate)
    return FrozenTeacher(context.original() if settings.teacher == "original" else context.task_start())
