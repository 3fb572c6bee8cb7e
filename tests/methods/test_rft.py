"""Self-training by rejection: what is sampled, kept and counted, and that nothing but the kept text is learned."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cl_bench.harness.errors import NothingAcceptedError
from cl_bench.harness.generation.base import GenerationSettings
from cl_bench.methods.rft import RFT, RFTSettings
from cl_bench.methods.sft import SFT, SFTSettings
from cl_bench.methods.training.self_training import SelfTrainingSettings, generate_own
from tests.methods.probes import COMMON
from tests.methods.test_rewriting import Answer, Scripted, ScriptedContext
from tests.support import TinyContext, same_weights, tiny_model, toy_examples, toy_stage, weights

THREE = toy_examples(3)  # answers 0, 2, 6
FIRST: list[Answer] = [
    ("it is 0", "eos"), ("it is 0", "eos"), ("so 0", "eos"), ("and 0", "eos"),
    ("it is 3", "eos"), ("it is 2", "length"), ("hm 4", "eos"), ("no 1", "eos"),
    ("is 5", "eos"), ("is 4", "eos"), ("is 6", "eos"), ("9", "eos"),
]  # fmt: skip


def context_of(folder: Path, *calls: list[Answer]) -> ScriptedContext:
    context = ScriptedContext(folder)
    context.script = Scripted(*calls)
    return context


def make(**changes: Any) -> RFT:
    return RFT(RFTSettings(**{**COMMON, "max_completion_length": 20, "epochs": 1, **changes}))


def test_distinct_right_samples_are_kept_and_the_others_counted_by_reason(tmp_path: Path) -> None:
    settings = SelfTrainingSettings(4, 2, GenerationSettings(20, 1.0))
    rows = generate_own(toy_stage(THREE), context_of(tmp_path, FIRST), tiny_model(0), settings)
    assert [row["texts"] for row in rows] == [["it is 0", "so 0"], [], ["is 6"]]
    assert [row["right"] for row in rows] == [4, 1, 1]
    assert [row["sampled"] for row in rows] == [4, 4, 4]
    assert rows[0]["reasons"] == ["duplicate"]
    assert rows[1]["reasons"] == ["wrong", "truncated", "wrong", "wrong"]
    assert [row["generated_tokens"] for row in rows] == [8, 8, 8]


def test_a_hint_is_asked_only_where_nothing_was_right_and_shows_the_answer(tmp_path: Path) -> None:
    hinted: list[Answer] = [("since 2", "eos"), ("3", "eos"), ("2", "eos"), ("2", "eos")]
    context = context_of(tmp_path, FIRST, hinted)
    settings = SelfTrainingSettings(4, 1, GenerationSettings(20, 1.0), "{question} It is {demonstration}.")
    rows = generate_own(toy_stage(THREE), context, tiny_model(0), settings)
    assert context.script.asked == [12, 4]
    assert [row["texts"] for row in rows] == [["it is 0"], ["since 2"], ["is 6"]]
    assert [row["hinted"] for row in rows] == [False, True, False]
    assert [row["sampled"] for row in rows] == [4, 4, 4], "hinted samples say nothing about the plain prompt"


def test_training_is_sft_on_the_kept_text(tmp_path: Path) -> None:
    student, other = tiny_model(0), tiny_model(0)
    adaptation = make().adapt(student, toy_stage(THREE), context_of(tmp_path / "rft", FIRST))
    assert adaptation.rejected == {"duplicate": 1, "wrong": 6, "truncated": 1, "dropped_rows": 1}
    assert adaptation.data_generation == {
        "sample_accuracy": pytest.approx(0.5),
        "accepted_share": pytest.approx(2 / 3),
        "hinted_share": 0.0,
        "mean_kept": pytest.approx(2 / 3),
    }
    kept = [replace(THREE[0], demonstration="it is 0"), replace(THREE[2], demonstration="is 6")]
    sft = SFT(SFTSettings(**{**COMMON, "epochs": 1}))
    sft.adapt(other, toy_stage(kept), TinyContext(tmp_path / "sft"))
    assert same_weights(weights(student), weights(other))


def test_nothing_right_is_an_error_that_says_what_to_try(tmp_path: Path) -> None:
    wrong: list[Answer] = [("no", "eos")] * 12
    with pytest.raises(NothingAcceptedError, match="no sample accepted") as caught:
        make().adapt(tiny_model(0), toy_stage(THREE), context_of(tmp_path, wrong))
    assert "wrong: 12" in str(caught.value.why)


def test_neither_demonstration_nor_answer_is_read_without_the_hint(tmp_path: Path) -> None:
    bare = [replace(row, demonstration=None) for row in THREE]
    one, other = tiny_model(0), tiny_model(0)
    make().adapt(one, toy_stage(bare), context_of(tmp_path / "bare", FIRST))
    make().adapt(other, toy_stage(THREE), context_of(tmp_path / "full", FIRST))
    assert same_weights(weights(one), weights(other))
