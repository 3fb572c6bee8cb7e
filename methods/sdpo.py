"""SDPO: each sample learns from the same model having seen a successful sibling, or feedback on the sample."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal, cast

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
from cl_bench.methods.training.conditioning import conditioned_messages
from cl_bench.methods.training.distillation import TeacherKind, self_teacher, train_on_own_samples
from cl_bench.methods.training.divergences import Divergence, divergence_of, sampled_token
from cl_bench.methods.training.groups import Choice, Group
from cl_bench.methods.training.losses import Reduction
from cl_bench.methods.training.mixin import TrainingSession
from cl_bench.methods.training.on_policy import OnPolicyObjective
from cl_bench.methods.training.settings import TrainingSettings, rollouts
from cl_bench.tasks.base import Example, Message

_CODE = "SDPO reference code, its experiments' scripts"
SOLUTION_TEMPLATE = (
    "{question}\n\nA correct solution:\n\n{demonstration}\n\nNow solve the question above correctly yourself."
)
"""Default wording for instruction-tuned models; profiles may replace it."""
FEEDBACK_TEMPLATE = (
    "{question}\n\nAn earlier attempt:\n\n{attempt}\n\nFeedback: {feedback}\n\nNow solve the question above correctly."
)
"""Default wording of feedback on the sample itself."""


class SDPOSettings(TrainingSettings):
    """Settings of SDPO."""

    samples: int = setting(8, "Samples of each prompt in a step.", unit="samples", source=_CODE, ge=1)
    teacher_template: str = setting(
        SOLUTION_TEMPLATE,
        "The teacher's user turn with a successful sibling, {question} and {demonstration}.",
        unit="text",
        source="SDPO (2601.20802); wording ours",
        inferred=True,
    )
    own_success: bool = setting(
        False,
        "Let a successful sample be its own sibling; otherwise a group's only success has no teacher.",
        unit="switch",
        source=_CODE,
    )
    feedback: str = setting(
        "",
        "Feedback that a wrong sample without a successful sibling is shown; empty: such samples have no teacher.",
        unit="text",
        source=_CODE,
        inferred=True,
    )
    feedback_template: str = setting(
        FEEDBACK_TEMPLATE,
        "The teacher's user turn with feedback, {question}, {attempt} and {feedback}.",
        unit="text",
        source="SDPO (2601.20802); wording ours",
        inferred=True,
    )
    teacher: TeacherKind = setting(
        "ema", "Teacher weights: an average of the student, or frozen.", unit="choice", source=_CODE
    )
    ema_rate: float = setting(
        0.05, "Share of the student in each update of the average.", unit="fraction per step", source=_CODE, gt=0, le=1
    )
    objective: Literal["distribution", "sampled_token"] = setting(
        "distribution", "Compare distributions, or the sampled token alone (reverse KL).", unit="choice", source=_CODE
    )
    alpha: float = setting(
        0.5, "0: forward KL(teacher || student), 1: reverse KL, between: JSD.", unit="1", source=_CODE, ge=0, le=1
    )
    top_k: int | None = setting(
        100, "Compare on the student's likeliest tokens; none: the whole vocabulary.", unit="tokens", source=_CODE, ge=1
    )
    rest: Literal["tail", "renormalise"] = setting(
        "tail", "All other tokens in one bucket, or left out.", unit="choice", source=_CODE
    )
    importance_clip: float | None = setting(
        2.0,
        "Largest weight of a token's probability ratio against the policy that drew it; none: no weights.",
        unit="1",
        source=_CODE,
        gt=0,
    )
    updates: int = setting(
        8,
        "Optimizer steps that each batch of rollouts is split into; from the second on the importance weights act.",
        unit="steps",
        source=_CODE,
        ge=1,
    )
    reduction: Reduction = setting(
        "token_mean", "How token losses are averaged, over usable samples.", unit="choice", source=_CODE
    )
    temperature: float = setting(1.0, "Sampling temperature of the rollouts.", unit="1", source=_CODE, gt=0)
    max_completion_length: int = setting(8192, "Longest rollout.", unit="tokens", source=_CODE, ge=1)


class SDPO(Method):
    """Self-distillation policy optimisation (2601.20802).

    Of a group of samples, each one's teacher is the same model shown the first successful other sample. Samples without
    any are left out of the loss and of its normaliser (trl counts them as zeros); a step without a usable sample is
    skipped and counted. No demonstration is read.
    """

    name: ClassVar[str] = "sdpo"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.REWARD})
    fidelity: ClassVar[Fidelity] = Fidelity.REFERENCE_EXECUTED
    checked: ClassVar[str] = "vectors of the authors' code; gradients by hand"
    paper: ClassVar[str] = "2601.20802"
    family: ClassVar[str] = "on-policy"
    Settings: ClassVar[type[MethodSettings]] = SDPOSettings

    def adapt(self, student: Student, stage: Stage, context: Context) -> Adaptation:
        """Train on the student's own samples. Raises ``NothingAcceptedError`` where no prompt is left."""
        settings = cast(SDPOSettings, cast(SDPOSettings, self.settings).for_stage(stage))

        def objective(session: TrainingSession) -> OnPolicyObjective:
            return OnPolicyObjective(
                teacher=self_teacher(settings.teacher, student, context, settings.ema_rate),
                teacher_messages=lambda example: example.messages,
                divergence=_divergence(settings),
                reduction=settings.reduction,
                generation=rollouts(settings.max_completion_length, settings.temperature, context),
                samples=settings.samples,
                choose=lambda group, counters: list(taught(group, stage, settings)),
                importance_clip=settings.importance_clip,
                updates=settings.updates,
            )

        return train_on_own_samples(self, student, stage, context, settings, objective)


def taught(group: Group, stage: Stage, settings: SDPOSettings) -> Iterator[Choice]:
    """The samples of a group that have a teacher, each with its prompt."""
    right = [stage.score(group.example, completion.text).correct for completion in group.completions]
    for index, completion in enumerate(group.completions):
        siblings = [i for i, success in enumerate(right) if success and (settings.own_success or i != index)]
        if siblings:
            shown = group.completions[siblings[0]].text
            yield index, conditioned_messages(group.example, settings.teacher_template, shown)
        elif settings.feedback and not right[index]:
            yield index, _with_feedback(group.example, settings, completion.text)


def _with_feedback(example: Example, settings: SDPOSettings, attempt: str) -> Sequence[Message]:
    template = settings.feedback_template.replace("{feedback}", settings.feedback).replace(
        "{attempt}", "{demonstration}"
    )
    return conditioned_messages(example, template, attempt)


def _divergence(settings: SDPOSettings) -> Divergence:
    if settings.objective == "sampled_token":
        return sampled_token
    return divergence_of(settings.alpha, settings.top_k, support="student", rest=settings.rest)
