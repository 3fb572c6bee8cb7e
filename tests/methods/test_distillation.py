"""Methods that learn from a teacher on their own samples: gradients of a real step against gradients by hand."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import pytest
import torch
from torch import Tensor

import cl_bench.methods.isdft as isdft_module
import cl_bench.methods.on_policy_distillation as distillation_module
import cl_bench.methods.training.distillation as shared_module
import cl_bench.methods.training.teacher_log as teacher_log_module
from cl_bench.harness.generation.base import Completion, GenerationSettings
from cl_bench.harness.measure.shift.divergence import measure_kl
from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.methods.isdft import ISDFTSettings, budget
from cl_bench.methods.training.conditioning import conditioned_messages
from cl_bench.methods.training.divergences import jensen_shannon
from cl_bench.methods.training.groups import TeacherSample
from cl_bench.methods.training.mixin import TrainingSession
from cl_bench.methods.training.teacher_log import TeacherLog
from cl_bench.methods.training.teachers import EMATeacher
from cl_bench.methods.training.tilt import tilted_target
from tests.methods.probes import SHORT, Gradients, assert_close, by_hand, first_step, full_logits, make_method
from tests.support import Stopped, TinyContext, same_weights, tiny_model, toy_examples, toy_stage, weights

FOUR = toy_examples(4)
BY_ID = {example.id: example for example in FOUR}
TokenLoss = Callable[[Tensor, Tensor], Tensor]
"""Log-probabilities [T, V] of student and teacher to losses [T]."""


def kl(first: Tensor, second: Tensor) -> Tensor:
    return (first.exp() * (first - second)).sum(-1)


def conditioned(example: Any) -> Any:
    return conditioned_messages(example, SHORT, example.demonstration or "")


def plain(example: Any) -> Any:
    return example.messages


def expected(
    student: ChatModel,
    teacher: ChatModel,
    ledger: Sequence[dict[str, Any]],
    messages: Callable[[Any], Any],
    token_loss: TokenLoss,
    temperature: float = 1.0,
    skip: int = 0,
    by_sequence: bool = False,
    anchor: tuple[ChatModel, float] | None = None,
) -> Gradients:
    """Gradients of the mean over tokens (or over sequences of the mean over tokens) of a token loss."""
    frozen: Any = copy.deepcopy(teacher.model)

    def loss(model: Any) -> Tensor:
        parts = []
        for row in ledger:
            example, tokens = BY_ID[row["id"]], row["tokens"]
            own = full_logits(model, student.prompt_ids(example.messages), tokens)
            with torch.no_grad():
                target = full_logits(frozen, student.prompt_ids(messages(example)), tokens)
            values = token_loss((own / temperature).log_softmax(-1), (target / temperature).log_softmax(-1))
            if anchor is not None:
                with torch.no_grad():
                    held = full_logits(anchor[0].model, student.prompt_ids(example.messages), tokens)
                values = values + anchor[1] * kl(held.log_softmax(-1), own.log_softmax(-1))
            parts.append(values[skip:])
        if by_sequence:
            return torch.stack([part.mean() for part in parts]).mean()
        return torch.cat(parts).mean()

    return by_hand(student, loss)


def check_on_policy_distillation(tmp_path: Path) -> None:
    student, aligner = tiny_model(0), tiny_model(1)
    losses: dict[float, TokenLoss] = {1.0: lambda own, other: kl(own, other), 0.0: lambda own, other: kl(other, own)}
    for alpha, token_loss in losses.items():
        for micro in (4, 1):
            method = make_method("on-policy-distillation", alpha=alpha, temperature=1.3)
            own = copy.deepcopy(student)
            gradients, context = first_step(method, own, toy_stage(FOUR), tmp_path / f"{alpha}-{micro}", micro)
            assert_close(gradients, expected(student, aligner, list(context.ledger), plain, token_loss, 1.3))


def jsd(own: Tensor, other: Tensor) -> Tensor:
    middle = ((own.exp() + other.exp()) / 2).log()
    return (kl(own, middle) + kl(other, middle)) / 2


def check_opsd(tmp_path: Path) -> None:
    student, start = tiny_model(0), tiny_model(3)
    for micro in (4, 1):
        own = copy.deepcopy(student)
        gradients, context = first_step(
            make_method("opsd"), own, toy_stage(FOUR), tmp_path / f"m{micro}", micro, task_start=start
        )
        assert_close(gradients, expected(student, start, list(context.ledger), conditioned, jsd, 1.1))


def check_isdft(tmp_path: Path) -> None:
    student, first = tiny_model(0), tiny_model(3)

    def towards_target(own: Tensor, other: Tensor) -> Tensor:
        target = tilted_target(own.detach().double(), other.double(), 0.25, "information", 60)
        gained = (target.log_target.exp() * (other - own.detach())).sum(-1)
        assert float((gained - 0.25 * kl(other, own.detach())).min()) > -1e-5, "the constraint holds"
        return kl(target.log_target.float(), own)

    for micro in (4, 1):
        own = copy.deepcopy(student)
        gradients, context = first_step(
            make_method("isdft", anchor_weight=0.3), own, toy_stage(FOUR), tmp_path / f"m{micro}", micro, original=first
        )
        ledger = list(context.ledger)
        hand = expected(
            student, student, ledger, conditioned, towards_target, skip=2, by_sequence=True, anchor=(first, 0.3)
        )
        assert_close(gradients, hand, 1e-3)


CHECKS = {
    "on-policy-distillation": check_on_policy_distillation,
    "opsd": check_opsd,
    "isdft": check_isdft,
}


@pytest.mark.parametrize("name", CHECKS)
def test_step_has_the_gradient_of_the_objective(name: str, tmp_path: Path) -> None:
    CHECKS[name](tmp_path)


def reversed_alpha(alpha: float, *rest: Any, **more: Any) -> Any:
    return jensen_shannon(1 - alpha)


MUTANTS: dict[tuple[str, str], Callable[[pytest.MonkeyPatch], None]] = {
    ("on-policy-distillation", "KL reversed"): lambda m: m.setattr(
        distillation_module, "jensen_shannon", reversed_alpha
    ),
    ("opsd", "temperature left out of the loss"): lambda m: m.setattr(
        "cl_bench.methods.training.on_policy.tempered", lambda divergence, temperature: divergence
    ),
    ("opsd", "the teacher does not see the solution"): lambda m: m.setattr(
        shared_module, "conditioned_messages", lambda example, *rest: example.messages
    ),
    ("isdft", "the teacher's own distribution is the target"): lambda m: m.setattr(
        isdft_module, "ramp", lambda *given: 1.0
    ),
    ("isdft", "no anchor"): lambda m: m.setattr(isdft_module, "_anchor", lambda *given: None),
}


@pytest.mark.parametrize(("name", "mistake"), MUTANTS, ids=lambda part: str(part))
def test_planted_mistakes_are_caught(name: str, mistake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS[name, mistake](monkeypatch)
    with pytest.raises(AssertionError):
        CHECKS[name](tmp_path)


def test_isdft_with_the_whole_budget_and_no_anchor_is_sdft(tmp_path: Path) -> None:
    settings = {"budget_start": 1.0, "budget_end": 1.0, "anchor_weight": 0.0}
    stage = toy_stage(FOUR)
    one, _ = first_step(make_method("isdft", **settings), tiny_model(0), stage, tmp_path / "isdft")
    other, _ = first_step(make_method("sdft"), tiny_model(0), stage, tmp_path / "sdft")
    assert_close(one, other, 1e-4)


@pytest.mark.parametrize("training", ["fp32", "bf16"])
@pytest.mark.parametrize("name", ["sdft", "opsd", "isdft"])
def test_a_teacher_that_is_the_student_and_sees_nothing_more_teaches_nothing(
    name: str, training: Literal["fp32", "bf16"], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_module, "conditioned_messages", lambda example, *rest: example.messages)
    method, student = make_method(name, teacher="task_start"), tiny_model(0)
    gradients, _ = first_step(method, student, toy_stage(FOUR), tmp_path, original=tiny_model(0), training=training)
    assert max(float(gradient.abs().max()) for gradient in gradients.values()) < 1e-6


def test_the_aligner_is_not_changed(tmp_path: Path) -> None:
    aligner = tiny_model(1)
    before = weights(aligner)
    method = make_method("on-policy-distillation")
    method.adapt(tiny_model(0), toy_stage(FOUR), TinyContext(tmp_path, aligner=aligner))
    assert same_weights(before, weights(aligner))


@pytest.mark.parametrize(
    ("step", "total", "wanted"),
    [
        (0, 1000, 0.25),
        (75, 1000, 0.625),
        (150, 1000, 1.0),
        (999, 1000, 1.0),
        (0, 100, 0.25),
        (15, 100, 0.625),
        (30, 100, 1.0),
    ],
)
def test_the_budget_grows_over_150_steps_or_a_third_of_a_short_stage(step: int, total: int, wanted: float) -> None:
    session: Any = TrainingSession.__new__(TrainingSession)
    session.counters = type("Counters", (), {"steps": step})()
    session.total_steps = total
    assert budget(ISDFTSettings(), session) == pytest.approx(wanted)


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.8, 1.0])
def test_a_larger_budget_goes_further_towards_the_teacher(rho: float) -> None:
    generator = torch.Generator().manual_seed(3)
    student, teacher = (torch.randn(50, 17, generator=generator).double().log_softmax(-1) for _ in range(2))
    found = tilted_target(student, teacher, rho, "information", 60)
    assert float((found.reached - found.budget).min()) >= -1e-9
    further = tilted_target(student, teacher, min(1.0, rho + 0.1), "information", 60)
    assert bool((further.strength >= found.strength - 1e-12).all())
    if rho == 0:
        assert 0.35 < float(found.strength.mean()) < 0.65, "no budget is not no teacher: about half of the way"
    if rho == 1:
        torch.testing.assert_close(found.log_target, teacher, atol=1e-8, rtol=0)


def test_the_ablations_bound_what_they_name() -> None:
    generator = torch.Generator().manual_seed(3)
    student, teacher = (torch.randn(50, 17, generator=generator).double().log_softmax(-1) for _ in range(2))
    assert float(tilted_target(student, teacher, 0.3, "fixed", 60).strength.unique()) == 0.3
    found = tilted_target(student, teacher, 0.3, "kl", 60)
    inside = found.strength < 1
    torch.testing.assert_close(kl(found.log_target, student)[inside], found.budget[inside], atol=1e-9, rtol=0)


def log_of(name: str, folder: Path, stop_at: int | None = None, **changes: Any) -> tuple[dict[str, float], TinyContext]:
    context = TinyContext(
        folder, original=tiny_model(2), task_start=tiny_model(0), aligner=tiny_model(1), every_steps=1, stop_at=stop_at
    )
    settings = {"epochs": 4, "batch_size": 4, **changes}
    return make_method(name, **settings).adapt(tiny_model(0), toy_stage(FOUR), context).teacher, context


def test_the_teacher_is_looked_at_when_a_stage_ends(tmp_path: Path) -> None:
    moving, _ = log_of("sdft", tmp_path / "ema")
    frozen, _ = log_of("sdft", tmp_path / "frozen", teacher="task_start")
    assert moving.keys() == frozen.keys() == {"reward", "kl_to_student", "kl_to_start"}
    assert moving["kl_to_start"] > 0 and frozen["kl_to_start"] == 0
    assert moving["kl_to_student"] > 0 and 0 <= moving["reward"] <= 1


def check_distance_of_an_average(folder: Path) -> None:
    """With a rate of 1 the teacher is the student: under one prompt, the same distribution; far from its start."""
    context = TinyContext(folder, task_start=tiny_model(0))
    method = make_method("on-policy-distillation", epochs=4)
    session = TrainingSession(method, tiny_model(0), toy_stage(FOUR), context, method.settings)  # type: ignore[arg-type]
    teacher = EMATeacher(tiny_model(0), 1.0)
    log = TeacherLog(session, teacher, GenerationSettings(8, 1.0, 4))
    moved = tiny_model(3)
    teacher.update(moved)
    session.student = moved
    prompt = moved.prompt_ids(FOUR[0].messages)
    completion = Completion(moved.completion_ids("so it is"), "so it is", "eos", ())
    found = log.measure([TeacherSample(FOUR[0], prompt, completion, prompt)])
    assert found["kl_to_student"] == pytest.approx(0, abs=1e-6)
    now = full_logits(moved.model, prompt, completion.ids).log_softmax(-1)
    start = full_logits(tiny_model(0).model, prompt, completion.ids).log_softmax(-1)
    assert found["kl_to_start"] == pytest.approx(float(kl(now, start).mean().detach()), rel=1e-4)


def test_distances_are_those_computed_by_hand(tmp_path: Path) -> None:
    check_distance_of_an_average(tmp_path)


def test_a_reversed_distance_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def reversed_kl(first: ChatModel, second: ChatModel, rows: Any, **more: Any) -> Any:
        return measure_kl(second, first, rows, **more)

    monkeypatch.setattr(teacher_log_module, "measure_kl", reversed_kl)
    with pytest.raises(AssertionError):
        check_distance_of_an_average(tmp_path)


def test_the_log_is_the_same_after_a_resume(tmp_path: Path) -> None:
    whole, _ = log_of("sdft", tmp_path / "whole")
    with pytest.raises(Stopped):
        log_of("sdft", tmp_path / "killed", stop_at=2)
    assert log_of("sdft", tmp_path / "killed")[0] == whole
