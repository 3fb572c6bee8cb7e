"""Which weights a run gives its methods as the stage's start and as the untouched model, stage after stage."""

from __future__ import annotations

from pathlib import Path

import pytest
from torch import Tensor

from cl_bench.methods.base import Adaptation, Context, Stage, Student
from cl_bench.methods.sft import SFT
from tests.end_to_end.conftest import SMALL, Cli
from tests.support import same_weights, weights

State = dict[str, Tensor]
Seen = list[dict[str, State]]
"""By stage: weights of the student before and after it, of the stage's start and of the untouched model."""


def watch(seen: Seen, patch: pytest.MonkeyPatch) -> None:
    """Note all of them around a method's training; the anchors are loaded after it."""
    adapt = SFT.adapt

    def watched(self: SFT, student: Student, stage: Stage, context: Context) -> Adaptation:
        before = weights(student)
        adaptation = adapt(self, student, stage, context)
        anchors = {"start": weights(context.task_start()), "original": weights(context.original())}
        seen.append({"before": before, "after": weights(student), **anchors})
        return adaptation

    patch.setattr(SFT, "adapt", watched)


def check(seen: Seen) -> None:
    assert len(seen) > 1
    for index, stage in enumerate(seen):
        assert same_weights(stage["start"], stage["before"])
        assert same_weights(stage["original"], seen[0]["before"])
        assert not same_weights(stage["after"], stage["before"])
        assert index == 0 or same_weights(stage["before"], seen[index - 1]["after"])


def run(cli: Cli, folder: Path) -> None:
    done = cli("run", "--method", "sft", "--sequence", "science", *SMALL, cwd=folder)
    assert done.returncode == 0, done.stderr


def test_a_stage_starts_where_the_one_before_ended_and_the_original_stays(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: Seen = []
    watch(seen, monkeypatch)
    run(cli, tmp_path)
    check(seen)
    # The check would see an anchor that is reloaded from where the run's model came from.
    with pytest.raises(AssertionError):
        check([{**stage, "start": stage["original"]} for stage in seen])
