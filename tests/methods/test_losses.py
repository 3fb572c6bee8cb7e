"""Losses, divergences and teachers against vectors made with the reference implementations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cl_bench.harness.measure.cost import forward_flops, petaflops
from cl_bench.methods.training.divergences import chunked, forward_kl, jensen_shannon, reverse_kl
from cl_bench.methods.training.losses import cross_entropy, loss_weights, skip_mask, tokens_to_skip
from cl_bench.methods.training.teachers import EMATeacher, FrozenTeacher
from tests.support import same_weights, tiny_model, weights

GOLDEN = Path(__file__).parent.parent / "golden"


def vector(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((GOLDEN / f"{name}.json").read_text())
    return content


def double(values: Any) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


@pytest.mark.parametrize("name", ["sft_ce_a", "sft_ce_b"])
def test_cross_entropy(name: str) -> None:
    golden = vector(name)
    logits = double(golden["inputs"]["logits"]).requires_grad_()
    labels = torch.tensor(golden["inputs"]["labels"])
    keep = labels[:, 1:] != -100
    losses = cross_entropy(logits[:, :-1][keep], labels[:, 1:][keep])
    loss = losses.sum() / keep.sum()
    loss.backward()
    assert int(keep.sum()) == golden["expected"]["num_tokens"]
    assert float(loss.detach()) == pytest.approx(golden["expected"]["loss"], abs=1e-9)
    torch.testing.assert_close(logits.grad, double(golden["expected"]["grad_logits"]), atol=1e-9, rtol=0)
    torch.testing.assert_close(losses, double(golden["expected"]["per_token_nll"])[keep], atol=1e-9, rtol=0)


@pytest.mark.parametrize("alpha", ["0.0", "0.25", "0.5", "1.0"])
def test_sdft_divergence(alpha: str) -> None:
    golden = vector("sdft_kl_a")
    inputs, expected = golden["inputs"], golden["expected"][f"alpha={alpha}"]
    student = double(inputs["student_logits"]).requires_grad_()
    teacher, mask = double(inputs["teacher_logits"]), torch.tensor(inputs["completion_mask"])
    values = jensen_shannon(float(alpha))(student.flatten(0, 1), teacher.flatten(0, 1)).view_as(mask)
    torch.testing.assert_close(values, double(expected["per_token"]), atol=1e-9, rtol=0)
    plain = loss_weights(mask, "sequence_mean", int(mask.sum()), len(mask)).double()
    loss = (plain * values).sum()
    assert float(loss.detach()) == pytest.approx(expected["loss"], abs=1e-6)
    skipped = skip_mask(mask, inputs["skip"])
    weight = loss_weights(skipped, "sequence_mean", int(skipped.sum()), len(mask)).double()
    assert float((weight * values).sum().detach()) == pytest.approx(expected["loss_skip"], abs=1e-6)
    if "grad_student_logits" in expected:
        loss.backward()
        torch.testing.assert_close(student.grad, double(expected["grad_student_logits"]), atol=1e-7, rtol=0)


def test_forward_is_not_reverse_and_the_teacher_gets_no_gradient() -> None:
    student, teacher = torch.randn(5, 7, requires_grad=True), torch.randn(5, 7, requires_grad=True)
    assert not torch.allclose(forward_kl(student, teacher), reverse_kl(student, teacher))
    forward_kl(student, teacher).sum().backward()
    assert teacher.grad is None
    expected = student.detach().softmax(-1) - teacher.detach().softmax(-1)
    torch.testing.assert_close(student.grad, expected, atol=1e-6, rtol=0)


def test_padded_vocabulary_is_cut_before_the_softmax() -> None:
    student, teacher = torch.randn(4, 9), torch.randn(4, 9)
    padded = torch.cat([teacher, torch.full((4, 3), 50.0)], dim=1)
    torch.testing.assert_close(forward_kl(student, padded), forward_kl(student, teacher))
    torch.testing.assert_close(forward_kl(padded, student), forward_kl(teacher, student))


def test_bf16_logits_are_compared_in_fp32() -> None:
    student, teacher = torch.randn(4, 9).bfloat16(), torch.randn(4, 9).bfloat16()
    assert forward_kl(student, teacher).dtype == torch.float32
    torch.testing.assert_close(forward_kl(student, teacher), forward_kl(student.float(), teacher.float()))


def test_chunks_do_not_change_values_or_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    hidden, other = torch.randn(50, 8), torch.randn(50, 6)
    head, teacher_head = torch.nn.Linear(8, 11), torch.nn.Linear(6, 11)
    outcomes = []
    for whole_below in (1 << 24, 0):
        monkeypatch.setattr("cl_bench.methods.training.divergences._WHOLE_BELOW", whole_below)
        head.zero_grad()
        states = hidden.clone().requires_grad_()
        values = chunked(forward_kl, states, other, head, teacher_head, 11, chunk=16)
        values.sum().backward()
        assert head.weight.grad is not None and teacher_head.weight.grad is None
        outcomes.append((values.detach(), states.grad, head.weight.grad.clone()))
    for whole, in_chunks in zip(*outcomes, strict=True):
        torch.testing.assert_close(whole, in_chunks)


@given(st.integers(0, 10), st.lists(st.integers(1, 200), min_size=1, max_size=9))
def test_skipped_tokens_are_fewer_than_a_fifth_of_the_median(limit: int, lengths: list[int]) -> None:
    skip = tokens_to_skip(limit, lengths)
    median = float(torch.tensor(lengths, dtype=torch.float64).median())
    assert 0 <= skip <= limit
    assert skip == 0 or skip < 0.2 * median
    assert skip == limit or skip + 1 >= 0.2 * median, "no fewer are skipped than the bound allows"


def test_ema_follows_the_closed_form_in_fp32() -> None:
    golden = vector("teacher_ema")
    student = tiny_model(0)
    name, parameter = next(iter(student.model.named_parameters()))
    for key in ("rate=0.05", "rate=0.01", "rate=1.0"):
        with torch.no_grad():
            parameter[:2, :2] = torch.tensor(golden["inputs"]["teacher"])
        teacher = EMATeacher(student, float(key.removeprefix("rate=")))
        for moved, expected in zip(golden["inputs"]["students"], golden["expected"][key], strict=True):
            with torch.no_grad():
                parameter[:2, :2] = torch.tensor(moved)
            teacher.update(student)
            got = dict(teacher.chat.model.named_parameters())[name][:2, :2]
            torch.testing.assert_close(got, torch.tensor(expected), atol=2e-5, rtol=0)


def test_ema_of_a_bf16_student_is_fp32_and_moves() -> None:
    student = tiny_model(0)
    student.model.bfloat16()
    teacher = EMATeacher(student, 0.01)
    start = weights(teacher.chat)
    with torch.no_grad():
        for parameter in student.model.parameters():
            parameter.mul_(1.01)
    for _ in range(300):
        teacher.update(student)
    for (name, value), target in zip(teacher.chat.model.named_parameters(), student.model.parameters(), strict=True):
        assert value.dtype == torch.float32
        if not target.any():
            continue  # biases start at zero and stay there
        gap, moved = (target.float() - start[name]).norm(), (value - start[name]).norm()
        assert float(moved / gap) == pytest.approx(1 - 0.99**300, abs=1e-3)


def test_frozen_teacher_does_not_move_and_carries_no_gradient() -> None:
    teacher = FrozenTeacher(tiny_model(1))
    before = weights(teacher.chat)
    teacher.update(tiny_model(0))
    assert same_weights(before, weights(teacher.chat))
    assert not any(p.requires_grad for p in teacher.chat.model.parameters())


def test_flops() -> None:
    golden = vector("pflops")
    inputs, expected = golden["inputs"], golden["expected"]
    tokens = inputs["prompt_tokens"] + inputs["generated_tokens"]
    parameters = int(inputs["n_params"])
    assert petaflops(forward_flops(parameters, tokens)) == pytest.approx(expected["pflops_2N_prompt_plus_generated"])
