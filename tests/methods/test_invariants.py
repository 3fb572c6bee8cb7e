"""What must hold whatever the data: nothing to learn is no loss, splits change nothing, anchors are those declared.

Elsewhere: equal methods at equal settings (``test_distillation``, ``test_gradients``), equal rewards
(``test_grpo``), the anchor of EWC (``test_modifiers``), a model measured against itself (``test_shift``,
``test_run_shift``, ``test_collapse``), teachers' prompts that do not fit (``test_traps``), labels that are not read
(``test_u_opsd``).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Literal

import pytest
import torch
from torch import Tensor

import cl_bench.methods.sdpo as sdpo_module
import cl_bench.methods.training.distillation as shared_module
import cl_bench.methods.training.on_policy as on_policy_module
import cl_bench.methods.training.policy_trainer as policy_module
from cl_bench.methods.base import Precision, Stage
from cl_bench.methods.training.divergences import forward_kl
from cl_bench.methods.training.forward import hidden_at
from cl_bench.methods.training.mixin import TrainingSession
from cl_bench.methods.training.on_policy import on_policy_loss
from cl_bench.methods.training.rows import pad_batch
from cl_bench.methods.training.teachers import EMATeacher
from cl_bench.tasks.base import Example, Score
from tests.methods.probes import Gradients, assert_close, first_step, make_method
from tests.methods.trl_peers import assert_equivalent, flat, our_step
from tests.support import TinyContext, tiny_model, toy_examples, toy_stage, weights

FOUR = toy_examples(4)
State = dict[str, Tensor]


def by_length(example: Example, text: str) -> Score:
    """A verdict that random text passes about every third time."""
    return Score(len(text) % 3 == 0, text, True)


def stage_of(examples: list[Example] | None = None, score: Any = by_length) -> Stage:
    return Stage(1, "toy", examples or FOUR, (), {"toy": score})


def losses_seeing_nothing_more(
    name: str, training: Literal["fp32", "bf16"], folder: Path, patch: pytest.MonkeyPatch
) -> list[float]:
    """Losses of the first step of a method whose teacher is shown the plain question, by micro-batch."""
    found: list[float] = []

    def watched(*given: Any) -> Tensor:
        loss = on_policy_loss(*given)
        found.append(float(loss.detach()))
        return loss

    patch.setattr(on_policy_module, "on_policy_loss", watched)
    for module in (shared_module, sdpo_module):
        patch.setattr(module, "conditioned_messages", lambda example, *rest: example.messages)
    own = {"updates": 1, "batch_size": 4} if name == "sdpo" else {}
    stage = stage_of(score=lambda example, text: Score(True, text, True))
    first_step(
        make_method(name, teacher="ema", **own),
        tiny_model(0),
        stage,
        folder,
        original=tiny_model(0),
        task_start=tiny_model(0),
        training=training,
    )
    assert found
    return found


@pytest.mark.parametrize("training", ["fp32", "bf16"])
@pytest.mark.parametrize("name", ["sdft", "opsd", "isdft", "sdpo"])
def test_a_teacher_that_is_the_student_and_sees_nothing_more_gives_no_loss(
    name: str, training: Literal["fp32", "bf16"], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = losses_seeing_nothing_more(name, training, tmp_path, monkeypatch)
    assert max(map(abs, found)) < 1e-7, found


def test_a_teacher_computed_in_another_format_would_give_a_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the test above would say nothing about bf16."""

    def teacher_in_fp32(model: Any, *given: Any) -> Tensor:
        outside = nullcontext() if torch.is_grad_enabled() else torch.autocast("cpu", enabled=False)
        with outside:
            return hidden_at(model, *given)

    monkeypatch.setattr(on_policy_module, "hidden_at", teacher_in_fp32)
    (loss,) = losses_seeing_nothing_more("sdft", "bf16", tmp_path, monkeypatch)
    assert loss > 1e-6


def check_average(folder: Path, training: Literal["fp32", "bf16"]) -> None:
    """After every step the teacher is (1 - a)^n x start + sum of a (1 - a)^(n - k) x student after step k, in fp32."""
    rate, states, found = 0.2, list[State](), list[State]()
    method, student, sessions = (
        make_method("sdft", epochs=3, ema_rate=rate, warmup_ratio=0.0),
        tiny_model(0),
        list[TrainingSession](),
    )

    class Watching(TinyContext):
        def after_step(self, step: int) -> None:
            states.append(weights(student))
            found.append(weights(sessions[0].teachers["teacher"].chat))

    with pytest.MonkeyPatch.context() as patch:
        released = TrainingSession.__post_init__

        def noted(self: TrainingSession) -> None:
            released(self)
            sessions.append(self)

        patch.setattr(TrainingSession, "__post_init__", noted)
        context = Watching(folder, precision=Precision(training, micro_batch_size=4))
        method.adapt(student, toy_stage(FOUR), context)
    assert len(states) == 3
    expected = {name: value.double() for name, value in weights(tiny_model(0)).items()}
    for state, teacher in zip(states, found, strict=True):
        expected = {name: (1 - rate) * expected[name] + rate * state[name].double() for name in expected}
        assert {value.dtype for value in teacher.values()} == {torch.float32}
        distance = (flat(teacher) - flat(expected)).norm() / (flat(expected) - flat(weights(tiny_model(0)))).norm()
        assert float(distance) < 1e-4


@pytest.mark.parametrize("training", ["fp32", "bf16"])
def test_the_teacher_is_the_closed_form_average_of_the_students(
    training: Literal["fp32", "bf16"], tmp_path: Path
) -> None:
    check_average(tmp_path, training)


def test_an_average_that_is_updated_twice_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    update = EMATeacher.update

    def twice(self: EMATeacher, student: Any) -> None:
        update(self, student)
        update(self, student)

    monkeypatch.setattr(EMATeacher, "update", twice)
    with pytest.raises(AssertionError):
        check_average(tmp_path, "fp32")


DECLARED: list[tuple[str, str, dict[str, Any]]] = [
    ("sdft", "teacher", {}),
    ("opsd", "teacher", {}),
    ("isdft", "teacher", {"anchor_weight": 0.0}),
    ("isdft", "anchor", {"anchor_weight": 0.5, "teacher": "ema"}),
    ("asft", "anchor", {"anchor_weight": 0.5}),
    ("sdpo", "teacher", {"updates": 1, "batch_size": 4}),
    ("grpo", "reference", {"beta": 0.5, "updates": 1, "batch_size": 4}),
]


@pytest.mark.parametrize(("name", "setting", "own"), DECLARED, ids=lambda part: part if isinstance(part, str) else "")
def test_the_anchor_is_the_model_that_the_setting_names(
    name: str, setting: str, own: dict[str, Any], tmp_path: Path
) -> None:
    """Exchanging the two models is exchanging the two settings, and one of the two alone is not nothing."""

    def step(value: str, original: int, start: int) -> Gradients:
        method = make_method(name, **{**own, setting: value})
        folder = tmp_path / f"{value}-{original}"
        models: dict[str, Any] = {"original": tiny_model(original), "task_start": tiny_model(start)}
        gradients, _ = first_step(method, tiny_model(0), stage_of(), folder, **models)
        return gradients

    named = step("original", 5, 6)
    assert_close(named, step("task_start", 6, 5))
    with pytest.raises(AssertionError):
        assert_close(named, step("task_start", 5, 6))


def test_a_batch_without_a_loss_token_has_a_loss_of_zero_with_a_graph() -> None:
    student, teacher = tiny_model(0), tiny_model(1)
    rows = [(student.prompt_ids(e.messages), student.completion_ids(e.demonstration or "")) for e in FOUR]
    padded = pad_batch(rows, student.pad_id)
    mask = torch.zeros_like(padded.pop("completion_mask"))
    batch = {**padded, "loss_weights": mask.float(), "teacher_keep": mask}
    batch |= {f"teacher_{key}": value for key, value in padded.items()}
    loss = on_policy_loss(student.model, teacher.model, batch, forward_kl, 1.0)
    assert float(loss.detach()) == 0.0
    loss.backward()
    gradients = [p.grad for p in student.model.parameters() if p.grad is not None]
    assert gradients and all(not bool(gradient.any()) for gradient in gradients)


def test_sdpo_on_as_many_tokens_as_there_are_is_sdpo_on_the_vocabulary(tmp_path: Path) -> None:
    size = tiny_model(0).model.config.vocab_size
    found = []
    for top_k in (size, None, size // 10):
        method = make_method("sdpo", top_k=top_k, updates=1, batch_size=4)
        gradients, _ = first_step(method, tiny_model(0), stage_of(), tmp_path / f"{top_k}")
        found.append(gradients)
    assert_close(found[0], found[1])
    with pytest.raises(AssertionError):
        assert_close(found[2], found[1], 1e-3)


@pytest.mark.parametrize("name", ["sdpo", "grpo"])
def test_padding_side_order_and_split_do_not_matter_to_groups(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def step(examples: list[Example], folder: str, micro: int = 12) -> Gradients:
        method = make_method(name, updates=1, batch_size=4)
        gradients, _ = first_step(method, tiny_model(0), stage_of(examples), tmp_path / folder, micro)
        return gradients

    plain = step(FOUR, "plain")
    assert_close(step(FOUR[::-1], "backwards"), plain, 1e-3)
    assert_close(step(FOUR, "split", micro=3), plain, 1e-3)
    for module in (on_policy_module, policy_module):
        monkeypatch.setattr(module, "pad_batch", lambda rows, pad_id: pad_batch(rows, pad_id, "left"))
    assert_close(step(FOUR, "left"), plain, 1e-3)


TOKEN_MEANS: dict[str, Callable[[], dict[str, Any]]] = {
    "sft": lambda: {"learning_rate": 0.05},
    "dft": lambda: {"learning_rate": 5.0},
    "asft": lambda: {"learning_rate": 5.0, "anchor_weight": 0.3},
    "on-policy-distillation": lambda: {"learning_rate": 0.5},
    "opsd": lambda: {"learning_rate": 5.0},
    "sdpo": lambda: {"learning_rate": 20.0, "updates": 1},
}


@pytest.mark.parametrize("name", TOKEN_MEANS)
def test_the_weights_after_a_step_do_not_depend_on_how_it_is_split(name: str) -> None:
    """Four rows at once or one by one, of unequal lengths."""
    one, other = (
        our_step(
            make_method(name, epochs=1, warmup_ratio=0.0, batch_size=4, **TOKEN_MEANS[name]()),
            tiny_model(0),
            stage_of(),
            micro,
            aligner=tiny_model(1),
            original=tiny_model(2),
        )
        for micro in (12, 1)
    )
    assert_equivalent(one, other)
