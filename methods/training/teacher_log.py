"""What the teacher was worth in a stage, measured once at its end on samples of the last batch."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from cl_bench.harness.generation.base import GenerationSettings, Prompt
from cl_bench.harness.measure.shift.divergence import measure_kl
from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.harness.state_file import load_state, save_state
from cl_bench.methods.training.groups import TeacherSample
from cl_bench.methods.training.mixin import TrainingSession
from cl_bench.methods.training.teachers import Teacher

_ROWS = 16
"""Samples looked at, at most: the numbers say where a teacher went, and are no benchmark of it."""
_STATE = "teacher-at-start"


class TeacherLog:
    """Keeps the teacher's first weights on disk, where it has any that move, and compares at the end."""

    def __init__(self, session: TrainingSession, teacher: Teacher, generation: GenerationSettings) -> None:
        """To be built before training begins or goes on, while the teacher is as at the start of the stage."""
        self._session, self._teacher, self._generation = session, teacher, generation
        state = teacher.state()
        self._moves = bool(state)
        if state:
            save_state(session.context.scratch, _STATE, state)

    @torch.no_grad()
    def measure(self, samples: Sequence[TeacherSample]) -> dict[str, float]:
        """Numbers about the teacher as it is now; empty without a sample.

        Args:
            samples: The last batch's; the first 16 count.

        Returns:
            ``reward``: share of right answers among the teacher's own samples, one for each of its prompts;
            ``kl_to_student``: KL(teacher || student) on the student's samples, each model under its own prompt, nats a
            token; ``kl_to_start``: KL(teacher now || teacher at the start of the stage), likewise, 0 for a frozen one.
        """
        chosen = [sample for sample in samples if sample.completion.ids][:_ROWS]
        if not chosen:
            return {}
        teacher, student = self._teacher.chat, self._session.student
        rows = [(sample.teacher_ids, sample.completion.ids) for sample in chosen]
        own = [sample.prompt_ids for sample in chosen]
        found = {"kl_to_student": _mean(measure_kl(teacher, student, rows, second_prompts=own))}
        found["kl_to_start"] = _mean(measure_kl(teacher, self._at_start(), rows)) if self._moves else 0.0
        reward = self._reward(chosen)
        return found if reward is None else {"reward": reward, **found}

    def _at_start(self) -> ChatModel:
        now = self._teacher.chat
        model: Any = copy.deepcopy(now.model)
        weights = load_state(self._session.context.scratch, _STATE)
        for name, parameter in model.named_parameters():
            parameter.copy_(weights[name])
        return replace(now, model=model, name=f"{now.name} at the start")

    def _reward(self, samples: Sequence[TeacherSample]) -> float | None:
        context, teacher = self._session.context, self._teacher.chat
        sampler = context.sampler(teacher)
        asked = [sample for sample in samples if sampler.fits(len(sample.teacher_ids), self._generation)]
        if not asked:
            return None
        prompts = [
            Prompt(sample.teacher_ids, context.row_seed("teacher-log", sample.example.id, rollout=place))
            for place, sample in enumerate(asked)
        ]
        written = sampler.generate(prompts, self._generation)
        right = [self._session.stage.score(s.example, c.text).correct for s, c in zip(asked, written, strict=True)]
        return sum(right) / len(right)


def _mean(summary: Mapping[str, float | int | None]) -> float:
    mean = summary["token_mean"]
    assert mean is not None, "samples without tokens were left out"
    return float(mean)
