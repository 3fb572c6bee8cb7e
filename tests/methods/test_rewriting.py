"""Rejection sampling of rewrites: what is accepted, what is rejected and why, and what the cache may serve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from cl_bench.harness.generation.base import Completion, GenerationSettings, Prompt, Sampler
from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.methods.base import Stage
from cl_bench.methods.synthself import SynthSelf, SynthSelfSettings
from cl_bench.methods.training.rewriting import RewriteSettings, generate_rewrites
from cl_bench.tasks.base import Example
from tests.support import TinyContext, tiny_model, toy_examples, toy_score

SETTINGS = RewriteSettings("{question} | {demonstration}", 3, GenerationSettings(20, 1.0), ("reference",))
Answer = tuple[str, Literal["eos", "length"]]


class Scripted(Sampler):
    """Gives prepared answers, one list a call; notes how many prompts each call had."""

    context_length = 160

    def __init__(self, *calls: list[Answer]) -> None:
        self.calls, self.asked = list(calls), list[int]()

    def generate(self, prompts: Sequence[Prompt], settings: GenerationSettings) -> list[Completion]:
        self.asked.append(len(prompts))
        answers = self.calls.pop(0)[: len(prompts)] if prompts else []
        return [Completion((1, 2), text, ended, (0.0, 0.0)) for text, ended in answers]


class ScriptedContext(TinyContext):
    """A context with that sampler."""

    script: Scripted

    def sampler(self, model: ChatModel, fixed: bool = False) -> Sampler:
        return self.script


def rewrites(folder: Path, stage: Stage, script: Scripted) -> list[dict[str, object]]:
    context = ScriptedContext(folder, aligner=tiny_model(1))
    context.script = script
    return generate_rewrites(stage, context, SETTINGS)


def stage_of(*examples: Example, name: str = "toy") -> Stage:
    return Stage(1, name, examples, (), {"toy": toy_score, "other": toy_score})


def test_first_accepted_candidate_is_kept_and_every_rejection_has_its_reason(tmp_path: Path) -> None:
    rows = toy_examples(4)  # answers 0, 2, 6, 12
    script = Scripted(
        [("it is 0", "eos"), ("as the Reference says 2", "eos"), ("it is 6", "length"), ("", "eos")],
        [("it is 3", "eos"), ("is 6", "eos"), ("it is 11", "eos")],
        [("two: 2", "eos"), ("it is 13", "eos")],
    )
    found = rewrites(tmp_path, stage_of(*rows), script)
    assert script.asked == [4, 3, 2]
    assert [row["text"] for row in found] == ["it is 0", "two: 2", "is 6", None]
    assert [row["candidate"] for row in found] == [1, 3, 2, None]
    assert [row["reasons"] for row in found] == [
        [],
        ["leak_phrase", "wrong"],
        ["truncated"],
        ["empty", "wrong", "wrong"],
    ]
    assert [row["first_correct"] for row in found] == [True, True, True, False]
    assert [row["first_accepted"] for row in found] == [True, False, False, False]
    assert [row["generated_tokens"] for row in found] == [2, 6, 4, 6]


def test_prompt_that_does_not_fit_and_row_without_demonstration_are_counted(tmp_path: Path) -> None:
    long = replace(toy_examples(1)[0], demonstration="long " * 60)
    bare = replace(toy_examples(2)[1], demonstration=None)
    found = rewrites(tmp_path, stage_of(long, bare), Scripted())
    assert [row["reasons"] for row in found] == [["aligner_prompt_too_long"], ["no_demonstration"]]


def test_tasks_that_share_an_id_and_repeated_rows_get_their_own_rewrites(tmp_path: Path) -> None:
    one, two = toy_examples(2)
    two = replace(two, task="other", id=one.id)
    script = Scripted([("it is 0", "eos"), ("it is 2", "eos")])
    found = rewrites(tmp_path, stage_of(one, two, one), script)
    assert script.asked[0] == 2
    assert [row["text"] for row in found] == ["it is 0", "it is 2", "it is 0"]


@pytest.mark.parametrize(("name", "calls"), [("toy", []), ("toy-2", [1])])
def test_cache_serves_the_same_stage_alone(name: str, calls: list[int], tmp_path: Path) -> None:
    row = toy_examples(1)[0]
    rewrites(tmp_path, stage_of(row), Scripted([("it is 0", "eos")]))
    script = Scripted([("still 0", "eos")])
    rewrites(tmp_path, stage_of(row, name=name), script)
    assert [asked for asked in script.asked if asked] == calls


def test_accuracy_of_the_aligner_is_of_rows_that_were_sampled(tmp_path: Path) -> None:
    rows = toy_examples(3)  # answers 0, 2, 6
    long = replace(rows[2], demonstration="long " * 60)
    context = ScriptedContext(tmp_path, aligner=tiny_model(1))
    context.script = Scripted([("it is 0", "eos"), ("it is 7", "eos")], [("it is 8", "eos")])
    settings = SynthSelfSettings(candidates=2, max_completion_length=20, rewrite_template=SETTINGS.template, epochs=1)
    adaptation = SynthSelf(settings).adapt(tiny_model(0), stage_of(rows[0], rows[1], long), context)
    found = adaptation.data_generation
    assert found["first_sample_accuracy"] == found["first_sample_accepted"] == 0.5
    assert found["accepted_share"] == pytest.approx(1 / 3)
    assert found["mean_candidates"] == 1
    assert adaptation.rejected == {"aligner_prompt_too_long": 1, "wrong": 2, "dropped_rows": 2}
    assert adaptation.generated_tokens == {"aligner": 6}


def test_nothing_accepted_leaves_no_zeros_behind(tmp_path: Path) -> None:
    context = ScriptedContext(tmp_path, aligner=tiny_model(1))
    context.script = Scripted([("no", "eos")])
    settings = SynthSelfSettings(
        candidates=1, max_completion_length=20, rewrite_template=SETTINGS.template, epochs=1, unaccepted="gold"
    )
    found = SynthSelf(settings).adapt(tiny_model(0), stage_of(*toy_examples(1)), context).data_generation
    assert found == {"first_sample_accuracy": 0.0, "first_sample_accepted": 0.0, "accepted_share": 0.0}
