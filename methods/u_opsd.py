"""U-OPSD: OPSD without labels; what most of the model's own samples agree on stands in for the solution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
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
from cl_bench.methods.opsd import OPSDSettings, solution_divergence
from cl_bench.methods.training.conditioning import conditioned_messages
from cl_bench.methods.training.distillation import TeacherKind, self_taught, train_on_own_samples
from cl_bench.methods.training.groups import Choice, Group
from cl_bench.methods.training.mixin import Counters, TrainingSession
from cl_bench.methods.training.on_policy import OnPolicyObjective

_PAGE = "U-OPSD (2608.06296), project page"
TIED = "a vote was tied; the answer sampled first was taken"


class UOPSDSettings(OPSDSettings):
    """Settings of U-OPSD: those of OPSD and the vote's."""

    samples: int = setting(12, "Samples of each prompt, all of which vote.", unit="samples", source=_PAGE, ge=2)
    threshold: float = setting(
        0.0,
        "A prompt is skipped where a smaller share of its samples agrees on the answer voted for.",
        unit="fraction",
        source=_PAGE,
        ge=0,
        le=1,
    )
    trained: int = setting(
        1,
        "Samples that disagree with the vote and are trained on, the longest first; truncated ones never.",
        unit="samples",
        source=_PAGE,
        ge=1,
    )
    shown: Literal["first", "shortest"] = setting(
        "first",
        "Which agreeing sample the teacher is shown as the solution.",
        unit="choice",
        source=_PAGE,
        inferred=True,
    )
    teacher: TeacherKind = setting(
        "ema",
        "Teacher weights: a slow average of the student, or frozen at the start of the stage or of the run.",
        unit="choice",
        source=_PAGE,
    )


class UOPSD(Method):
    """Unsupervised on-policy self-distillation (2608.06296), from its project page: the code was not public.

    The student samples a group; the answers read from it are voted on; the teacher, the same model shown a sample that
    agrees with the vote, scores the longest samples that disagree. No demonstration and no gold answer is read. A
    confidently wrong majority is reinforced.
    """

    name: ClassVar[str] = "u-opsd"
    needs: ClassVar[frozenset[Need]] = frozenset({Need.ANSWER_EXTRACTION})
    fidelity: ClassVar[Fidelity] = Fidelity.RECONSTRUCTED
    checked: ClassVar[str] = "gradients by hand"
    paper: ClassVar[str] = "2608.06296"
    family: ClassVar[str] = "on-policy"
    Settings: ClassVar[type[MethodSettings]] = UOPSDSettings

    def adapt(self, student: Student, stage: Stage, context: Context) -> Adaptation:
        """Train on the student's own samples. Raises ``NothingAcceptedError`` where no prompt is left."""
        settings = cast(UOPSDSettings, cast(UOPSDSettings, self.settings).for_stage(stage))

        def objective(session: TrainingSession) -> OnPolicyObjective:
            return replace(
                self_taught(settings, student, context, solution_divergence(settings)),
                teacher_messages=lambda example: example.messages,
                needs_demonstration=False,
                samples=settings.samples,
                choose=lambda group, counters: voted(group, stage, settings, counters),
            )

        return train_on_own_samples(self, student, stage, context, settings, objective)


def voted(group: Group, stage: Stage, settings: UOPSDSettings, counters: Counters) -> Sequence[Choice]:
    """The samples of a group that are trained on, each with the prompt that shows an agreeing one.

    A prompt is left out, and counted by reason, where no sample has an answer, the vote's share is below the threshold,
    or every answer agrees.
    """
    answers = [stage.extract(group.example, completion.text) for completion in group.completions]
    votes = [answer for answer in answers if answer is not None]
    if not votes:
        counters.leave_out("no_answer")
        return ()
    winner = max(votes, key=votes.count)
    agreeing = [index for index, answer in enumerate(answers) if answer == winner]
    if len(agreeing) / len(answers) < settings.threshold:
        counters.leave_out("vote_below_threshold")
        return ()
    ended = [index for index, completion in enumerate(group.completions) if completion.ended != "length"]
    wrong = [index for index in ended if answers[index] not in (None, winner)]
    if not wrong:
        counters.leave_out("nobody_disagrees")
        return ()
    if any(votes.count(answer) == len(agreeing) for answer in set(votes) - {winner}):
        counters.remark(TIED)
    shown = agreeing[0]
    if settings.shown == "shortest":
        shown = min(agreeing, key=lambda index: len(group.completions[index].ids))
    messages = conditioned_messages(group.example, settings.teacher_template, group.completions[shown].text)
    longest = sorted(wrong, key=lambda index: -len(group.completions[index].ids))
    return [(index, messages) for index in longest[: settings.trained]]
