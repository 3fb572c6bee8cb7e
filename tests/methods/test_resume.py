"""A killed and resumed stage equals the uninterrupted one bit for bit; one with a part missing does not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import cl_bench.methods.training.mixin as mixin_module
from cl_bench.harness.seeds import global_seed
from cl_bench.methods.base import Stage
from cl_bench.methods.training.ledger import Ledger
from cl_bench.methods.training.teachers import EMATeacher
from cl_bench.tasks.base import Example, Score
from tests.methods.probes import make_method
from tests.support import Stopped, TinyContext, same_weights, tiny_model, toy_examples, toy_stage, weights

METHODS = ("sft", "synthself", "sdft", "grpo", "sdpo")
Outcome = tuple[dict[str, Any], list[dict[str, Any]], Any]


def by_length(example: Example, text: str) -> Score:
    """A verdict that random text passes about every third time, so that rewards differ."""
    return Score(len(text) % 3 == 0, text, True)


def adapt(name: str, folder: Path, stop_at: int | None = None, global_state: int = 1) -> Outcome:
    """Run (or resume) one stage of 14 rows, 8 optimizer steps, a checkpoint every 3."""
    student, stage = tiny_model(0), Stage(1, "toy", toy_examples(14), (), {"toy": by_length})
    context = TinyContext(folder, every_steps=3, stop_at=stop_at, aligner=tiny_model(1))
    with global_seed(global_state):
        adaptation = make_method(name, max_grad_norm=1.0).adapt(student, stage, context)
    return weights(student), list(context.ledger), adaptation


def check_resume(name: str, tmp_path: Path) -> None:
    whole = adapt(name, tmp_path / "whole")
    with pytest.raises(Stopped):
        adapt(name, tmp_path / "killed", stop_at=5)
    resumed = adapt(name, tmp_path / "killed")
    assert same_weights(whole[0], resumed[0])
    assert whole[1] == resumed[1]
    assert whole[2] == resumed[2]


@pytest.mark.parametrize("name", METHODS)
def test_resume_is_exact(name: str, tmp_path: Path) -> None:
    check_resume(name, tmp_path)


@pytest.mark.parametrize("name", METHODS)
def test_training_changes_the_student_and_repeats_exactly(name: str, tmp_path: Path) -> None:
    one, other = adapt(name, tmp_path / "a"), adapt(name, tmp_path / "b")
    assert same_weights(one[0], other[0])
    assert not same_weights(one[0], weights(tiny_model(0)))


def forget_ema(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EMATeacher, "load_state", lambda self, state: None)


def forget_optimizer(monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers import Trainer

    monkeypatch.setattr(Trainer, "_load_optimizer_and_scheduler", lambda self, checkpoint: None)


def lose_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    read = Ledger.read
    monkeypatch.setattr(Ledger, "read", staticmethod(lambda path: read(path)[1:]))


def forget_counters(monkeypatch: pytest.MonkeyPatch) -> None:
    restore = mixin_module.TrainingSession.restore

    def mistaken(self: Any, folder: Path) -> None:
        before = self.counters
        restore(self, folder)
        self.counters = before

    monkeypatch.setattr(mixin_module.TrainingSession, "restore", mistaken)


MUTANTS: Mapping[tuple[str, str], Any] = {
    ("sdft", "EMA"): forget_ema,
    ("sft", "optimizer"): forget_optimizer,
    ("sdft", "optimizer"): forget_optimizer,
    ("sdft", "generated row"): lose_a_row,
    ("synthself", "generated row"): lose_a_row,
    ("sft", "counters"): forget_counters,
}


@pytest.mark.parametrize(("name", "part"), MUTANTS)
def test_resume_check_catches_a_missing(name: str, part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS[name, part](monkeypatch)
    with pytest.raises((AssertionError, ValueError)):
        check_resume(name, tmp_path)


def test_damaged_checkpoint_is_refused(tmp_path: Path) -> None:
    from cl_bench.harness.errors import StoreError

    with pytest.raises(Stopped):
        adapt("sdft", tmp_path, stop_at=5)
    ledger = next(tmp_path.glob("mid/step-*/ledger.jsonl"))
    ledger.write_text("".join(ledger.read_text().splitlines(keepends=True)[1:]))
    with pytest.raises(StoreError, match=r"ledger\.jsonl"):
        adapt("sdft", tmp_path)


def test_rows_of_a_ledger_look_the_same_after_a_checkpoint(tmp_path: Path) -> None:
    ledger = Ledger([{"text": "b", "id": "a"}])
    ledger.append({"step": 1, "id": "c"})
    ledger.write(tmp_path / "ledger.jsonl")
    restored = Ledger(Ledger.read(tmp_path / "ledger.jsonl"))
    assert [list(row.items()) for row in restored] == [list(row.items()) for row in ledger]


@pytest.mark.parametrize("name", METHODS)
def test_trainers_leave_no_forward_pass_of_theirs_on_the_student(name: str, tmp_path: Path) -> None:
    student = tiny_model(0)
    make_method(name).adapt(student, toy_stage(toy_examples(4)), TinyContext(tmp_path, aligner=tiny_model(1)))
    assert "forward" not in student.model.__dict__
    assert not student.model.training


def test_checkpoint_holds_no_pickled_arguments(tmp_path: Path) -> None:
    with pytest.raises(Stopped):
        adapt("sft", tmp_path, stop_at=4)
    names = {path.name for path in tmp_path.glob("mid/step-*/*")}
    assert "training_args.bin" not in names
    assert {"model.safetensors", "optimizer.pt", "trainer_state.json", "ledger.jsonl"} <= names


def test_ledger_comes_back_whatever_characters_the_text_holds(tmp_path: Path) -> None:
    ledger = Ledger([{"id": "a", "text": "one\u2028two\x85three\x0cfour\nfive"}, {"id": "b", "text": ""}])
    ledger.write(tmp_path / "ledger.jsonl")
    assert Ledger.read(tmp_path / "ledger.jsonl") == list(ledger)
