"""Modifiers: gradients of penalties by hand, what is carried between stages, and that strength does what it says."""

from __future__ import annotations

import copy
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import cl_bench.methods.modifiers.ewc as ewc_module
from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.harness.state_file import load_state, save_state
from cl_bench.methods.base import Modifier
from cl_bench.methods.modifiers.ewc import EWC, EWCSettings
from cl_bench.methods.modifiers.l2_sp import L2SP, L2SPSettings
from cl_bench.methods.modifiers.lwf import LwF, LwFSettings
from cl_bench.methods.modifiers.wise_ft import WiSEFT, WiSEFTSettings
from cl_bench.methods.training.fisher import squared_gradients
from cl_bench.methods.training.rows import pad_batch
from tests.methods.probes import full_logits, make_method
from tests.support import TinyContext, same_weights, tiny_model, toy_examples, toy_stage, weights

SIX = toy_examples(6)


def context_of(folder: Path, *modifiers: Modifier, original: int = 5, start: int = 6) -> TinyContext:
    return TinyContext(folder, modifiers=modifiers, original=tiny_model(original), task_start=tiny_model(start))


def gradients(loss: Tensor, student: ChatModel) -> dict[str, Tensor]:
    named = dict(student.model.named_parameters())
    found = torch.autograd.grad(loss, list(named.values()))
    return dict(zip(named, found, strict=True))


@pytest.mark.parametrize(("anchor", "seed"), [("original", 5), ("task_start", 6)])
def test_l2_sp_pulls_in_proportion_to_the_distance(anchor: Any, seed: int, tmp_path: Path) -> None:
    student, modifier = tiny_model(0), L2SP(L2SPSettings(strength=0.3, anchor=anchor))
    modifier.before_stage(student, toy_stage(SIX), context_of(tmp_path))
    penalty = modifier.parameter_penalty(student)
    assert penalty is not None
    other = weights(tiny_model(seed))
    for name, gradient in gradients(penalty, student).items():
        torch.testing.assert_close(gradient, 0.3 * (weights(student)[name] - other[name]), atol=1e-6, rtol=1e-5)


def fisher_by_hand(student: ChatModel) -> dict[str, Tensor]:
    """Mean over the six rows of the squared gradient of each one's mean log-likelihood."""
    total = {name: torch.zeros_like(value) for name, value in weights(student).items()}
    for example in SIX:
        tokens = student.completion_ids(example.demonstration or "")
        logits = full_logits(student.model, student.prompt_ids(example.messages), tokens)
        loss = torch.nn.functional.cross_entropy(logits, torch.tensor(tokens))
        for name, gradient in gradients(loss, student).items():
            total[name] += gradient.square() / len(SIX)
    return total


def check_fisher(folder: Path) -> None:
    student, modifier = tiny_model(0), EWC(EWCSettings())
    modifier.after_stage(student, toy_stage(SIX), context_of(folder))
    (term,) = modifier.state_dict()["terms"]
    assert same_weights(term["anchor"], weights(student))
    for name, value in fisher_by_hand(student).items():
        torch.testing.assert_close(term["importance"][name], value, atol=1e-7, rtol=1e-4)


def test_ewc_squares_the_gradient_of_each_row(tmp_path: Path) -> None:
    check_fisher(tmp_path)


def test_the_squared_gradient_of_a_batch_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def of_the_batch(parameters: Any, examples: Any) -> Any:
        rows = [outcome for (outcome,) in examples]
        return squared_gradients(parameters, [[(1.0, torch.stack([value for _, value in rows]).mean())]])

    monkeypatch.setattr(ewc_module, "squared_gradients", of_the_batch)
    with pytest.raises(AssertionError):
        check_fisher(tmp_path)


def test_ewc_is_flat_at_its_anchor_and_pulls_by_importance_elsewhere(tmp_path: Path) -> None:
    student, modifier = tiny_model(0), EWC(EWCSettings(strength=10.0))
    assert modifier.parameter_penalty(student) is None
    modifier.after_stage(student, toy_stage(SIX), context_of(tmp_path))
    at_anchor = modifier.parameter_penalty(student)
    assert at_anchor is not None and at_anchor.item() == 0.0
    assert all(float(gradient.abs().max()) == 0 for gradient in gradients(at_anchor, student).values())
    moved, importance = tiny_model(1), fisher_by_hand(student)
    penalty = modifier.parameter_penalty(moved)
    assert penalty is not None
    for name, gradient in gradients(penalty, moved).items():
        expected = 10.0 * importance[name] * (weights(moved)[name] - weights(student)[name])
        torch.testing.assert_close(gradient, expected, atol=1e-6, rtol=1e-4)


def test_ewc_keeps_a_term_a_stage_or_one_sum(tmp_path: Path) -> None:
    first, second, context = tiny_model(0), tiny_model(1), context_of(tmp_path)
    separate, online = EWC(EWCSettings()), EWC(EWCSettings(mode="online", decay=0.5))
    for modifier in (separate, online):
        for student in (first, second):
            modifier.after_stage(student, toy_stage(SIX), context)
    both = separate.state_dict()["terms"]
    assert [same_weights(t["anchor"], weights(m)) for t, m in zip(both, (first, second), strict=True)] == [True, True]
    (term,) = online.state_dict()["terms"]
    assert same_weights(term["anchor"], weights(second))
    for name, value in term["importance"].items():
        torch.testing.assert_close(value, 0.5 * both[0]["importance"][name] + both[1]["importance"][name])


def test_ewc_can_sample_its_labels_and_its_state_survives_the_disk(tmp_path: Path) -> None:
    student, modifier = tiny_model(0), EWC(EWCSettings(labels="sample", sequences=3, max_completion_length=8))
    bare = [type(row)(row.task, row.id, row.messages, None, row.answer) for row in SIX]
    modifier.after_stage(student, toy_stage(bare), context_of(tmp_path))
    save_state(tmp_path, "state", modifier.state_dict())
    again = EWC(EWCSettings(labels="sample"))
    again.load_state_dict(load_state(tmp_path, "state"))
    moved = tiny_model(1)
    one, other = modifier.parameter_penalty(moved), again.parameter_penalty(moved)
    assert one is not None and other is not None and torch.equal(one, other) and float(one) > 0


@pytest.mark.parametrize(("anchor", "seed"), [("original", 5), ("task_start", 6)])
def test_lwf_is_the_divergence_from_the_anchor_on_the_loss_tokens(anchor: Any, seed: int, tmp_path: Path) -> None:
    student, other = tiny_model(0), tiny_model(seed)
    modifier = LwF(LwFSettings(strength=0.7, temperature=2.0, anchor=anchor))
    modifier.before_stage(student, toy_stage(SIX), context_of(tmp_path))
    rows = [(student.prompt_ids(e.messages), student.completion_ids(e.demonstration or "")) for e in SIX]
    batch = pad_batch(rows, student.pad_id)
    batch["loss_weights"] = batch.pop("completion_mask").float()
    found = modifier.token_penalty(student, batch)
    assert found is not None
    total, count = torch.zeros(()), 0
    for prompt, tokens in rows:
        own = (full_logits(student.model, prompt, tokens) / 2).log_softmax(-1)
        held = (full_logits(other.model, prompt, tokens) / 2).log_softmax(-1).detach()
        total = total + 0.7 * (held.exp() * (held - own)).sum()
        count += len(tokens)
    assert int(found[1]) == count
    torch.testing.assert_close(found[0], total, atol=1e-4, rtol=1e-4)
    expected = gradients(total, student)
    for name, gradient in gradients(found[0], student).items():
        torch.testing.assert_close(gradient, expected[name], atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_wise_ft_averages_with_its_anchor(share: float, tmp_path: Path) -> None:
    student, start = tiny_model(0), weights(tiny_model(6))
    before = weights(student)
    WiSEFT(WiSEFTSettings(share=share)).after_stage(student, toy_stage(SIX), context_of(tmp_path))
    for name, value in weights(student).items():
        torch.testing.assert_close(value, (1 - share) * start[name] + share * before[name], atol=1e-7, rtol=1e-6)


def drift(modifier: Modifier | None, folder: Path) -> float:
    """Distance that SFT moves a model within one stage that begins at an earlier stage's end."""
    student = tiny_model(6)
    start = weights(student)
    modifiers = [modifier] if modifier else []
    context = context_of(folder, *modifiers)
    stage = toy_stage(SIX)
    for one in modifiers:
        one.before_stage(student, stage, context)
    make_method("sft", epochs=6).adapt(student, stage, context)
    for one in modifiers:
        one.after_stage(student, stage, context)
    moved = weights(student)
    return math.sqrt(sum(float((moved[name] - start[name]).square().sum()) for name in start))


def prepared_ewc(strength: float, folder: Path) -> EWC:
    modifier = EWC(EWCSettings(strength=strength))
    modifier.after_stage(tiny_model(6), toy_stage(SIX), context_of(folder))
    return modifier


@pytest.mark.parametrize("kind", ["ewc", "l2-sp", "lwf", "wise-ft"])
def test_more_strength_is_less_drift(kind: str, tmp_path: Path) -> None:
    def make(level: int) -> Modifier:
        if kind == "ewc":
            return prepared_ewc(10.0 ** (2 * level), tmp_path / f"fisher-{level}")
        if kind == "l2-sp":
            return L2SP(L2SPSettings(strength=10.0 ** (level - 2)))
        if kind == "lwf":
            return LwF(LwFSettings(strength=4.0**level))
        return WiSEFT(WiSEFTSettings(share=0.9 - 0.25 * level))

    found = [drift(None, tmp_path / "free"), *(drift(make(n), tmp_path / f"run-{n}") for n in (0, 1, 2))]
    assert found == sorted(found, reverse=True)
    assert found[-1] < 0.7 * found[0]


def test_a_modifier_leaves_the_anchor_models_alone(tmp_path: Path) -> None:
    context = context_of(tmp_path)
    student = copy.deepcopy(tiny_model(0))
    modifier = LwF()
    modifier.before_stage(student, toy_stage(SIX), context)
    make_method("sft", epochs=1).adapt(student, toy_stage(SIX), context_of(tmp_path / "run", modifier))
    assert same_weights(weights(context.task_start()), weights(tiny_model(6)))
