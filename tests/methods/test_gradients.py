"""Losses end to end: gradients of a real optimizer step against gradients by hand, and planted mistakes are caught."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import cl_bench.methods.sdft as sdft_module
import cl_bench.methods.training.distillation as distillation_module
import cl_bench.methods.training.mixin as mixin_module
import cl_bench.methods.training.on_policy as on_policy_module
import cl_bench.methods.training.supervised as supervised_module
from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.harness.models.load import load_folder
from cl_bench.methods.training.conditioning import conditioned_messages
from cl_bench.methods.training.divergences import jensen_shannon
from cl_bench.methods.training.rows import pad_batch
from cl_bench.methods.training.teachers import EMATeacher
from tests.methods.probes import (
    ON_DEMONSTRATIONS,
    ON_OWN_SAMPLES,
    SHORT,
    Gradients,
    assert_close,
    by_hand,
    first_step,
    full_logits,
    make_method,
)
from tests.support import tiny_model, toy_examples, toy_stage

METHODS = (*ON_DEMONSTRATIONS, "synthself", *ON_OWN_SAMPLES)
FOUR = toy_examples(4)


def shifted_student(folder: Path) -> ChatModel:
    """A student that has moved away from the files it was loaded from."""
    fresh: Any = tiny_model(0)
    fresh.model.save_pretrained(folder)
    fresh.tokenizer.save_pretrained(folder)
    student = load_folder(folder, "tiny")
    with torch.no_grad():
        generator = torch.Generator().manual_seed(5)
        for parameter in student.model.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))
    return student


def sft_by_hand(student: ChatModel) -> Gradients:
    """Token mean of -log p over all completion tokens of the four rows, the end token included."""

    def loss(model: Any) -> torch.Tensor:
        total, count = torch.zeros(()), 0
        for example in FOUR:
            completion = student.completion_ids(example.demonstration or "")
            logits = full_logits(model, student.prompt_ids(example.messages), completion)
            total = total + torch.nn.functional.cross_entropy(logits, torch.tensor(completion), reduction="sum")
            count += len(completion)
        return total / count

    return by_hand(student, loss)


def weighted_by_hand(student: ChatModel, anchor: Any, weight: float, reverse: bool) -> Gradients:
    """Token mean of sg[p] x -log p, plus the anchor's weight x KL, over all completion tokens of the four rows."""

    def loss(model: Any) -> torch.Tensor:
        total, count = torch.zeros(()), 0
        for example in FOUR:
            completion = student.completion_ids(example.demonstration or "")
            own = full_logits(model, student.prompt_ids(example.messages), completion).log_softmax(-1)
            label = own[torch.arange(len(completion)), torch.tensor(completion)]
            total = total - (label.detach().exp() * label).sum()
            if weight:
                with torch.no_grad():
                    held = full_logits(anchor, student.prompt_ids(example.messages), completion).log_softmax(-1)
                first, second = (own, held) if reverse else (held, own)
                total = total + weight * (first.exp() * (first - second)).sum()
            count += len(completion)
        return total / count

    return by_hand(student, loss)


def sdft_by_hand(student: ChatModel, ledger: list[dict[str, Any]]) -> Gradients:
    """Mean over sequences of the mean KL(teacher || student) of the sampled tokens; the student is the teacher."""
    teacher: Any = copy.deepcopy(student.model)
    by_id = {example.id: example for example in FOUR}

    def loss(model: Any) -> torch.Tensor:
        total = torch.zeros(())
        for row in ledger:
            example = by_id[row["id"]]
            messages = conditioned_messages(example, SHORT, example.demonstration or "")
            with torch.no_grad():
                target = full_logits(teacher, student.prompt_ids(messages), row["tokens"]).log_softmax(-1)
            own = full_logits(model, student.prompt_ids(example.messages), row["tokens"]).log_softmax(-1)
            # Two of twelve sampled tokens are skipped: the bound is fewer than a fifth of the median completion.
            total = total + (target.exp() * (target - own)).sum(-1)[2:].mean()
        return total / len(ledger)

    return by_hand(student, loss)


def check_sft(tmp_path: Path) -> None:
    student = shifted_student(tmp_path / "files")
    expected = sft_by_hand(student)
    for micro in (4, 1):
        gradients, _ = first_step(
            make_method("sft"), copy.deepcopy(student), toy_stage(FOUR), tmp_path / f"m{micro}", micro
        )
        assert_close(gradients, expected)


def check_sdft(tmp_path: Path) -> None:
    student = shifted_student(tmp_path / "files")
    for micro in (4, 1):
        own = copy.deepcopy(student)
        gradients, context = first_step(make_method("sdft"), own, toy_stage(FOUR), tmp_path / f"m{micro}", micro)
        ledger = list(context.ledger)
        assert sorted(len(row["tokens"]) for row in ledger)[1] == 12, "the skip in the reference assumes this median"
        assert_close(gradients, sdft_by_hand(student, ledger))


def test_sft_step_has_the_gradient_of_the_token_mean(tmp_path: Path) -> None:
    check_sft(tmp_path)


def test_dft_step_has_the_gradient_of_the_weighted_likelihood(tmp_path: Path) -> None:
    student = shifted_student(tmp_path / "files")
    expected = weighted_by_hand(student, None, 0.0, False)
    for name, settings in (("dft", {}), ("asft", {"anchor_weight": 0.0})):
        own = copy.deepcopy(student)
        gradients, _ = first_step(make_method(name, **settings), own, toy_stage(FOUR), tmp_path / name, 2)
        assert_close(gradients, expected)


@pytest.mark.parametrize("direction", ["forward", "reverse"])
@pytest.mark.parametrize("anchor", ["original", "task_start"])
def test_asft_is_held_near_the_anchor_that_it_names(direction: str, anchor: str, tmp_path: Path) -> None:
    student = shifted_student(tmp_path / "files")
    models: dict[str, Any] = {"original": tiny_model(7), "task_start": tiny_model(8)}
    expected = weighted_by_hand(student, models[anchor].model, 0.3, direction == "reverse")
    method = make_method("asft", anchor_weight=0.3, anchor_direction=direction, anchor=anchor)
    gradients, _ = first_step(method, copy.deepcopy(student), toy_stage(FOUR), tmp_path / "run", 2, **models)
    assert_close(gradients, expected)


def test_sdft_step_has_the_gradient_of_the_forward_kl_to_the_conditioned_self(tmp_path: Path) -> None:
    check_sdft(tmp_path)


@pytest.mark.parametrize("name", METHODS)
def test_step_does_not_depend_on_how_it_is_split(name: str, tmp_path: Path) -> None:
    stage = toy_stage(FOUR)
    whole, _ = first_step(make_method(name), tiny_model(0), stage, tmp_path / "a", micro=4)
    split, _ = first_step(make_method(name), tiny_model(0), stage, tmp_path / "b", micro=1)
    assert_close(whole, split)


@pytest.mark.parametrize("reduction", ["token_mean", "sequence_mean"])
def test_sdft_reductions_do_not_depend_on_the_split(reduction: str, tmp_path: Path) -> None:
    stage = toy_stage(FOUR)
    grads = [
        first_step(make_method("sdft", reduction=reduction), tiny_model(0), stage, tmp_path / str(micro), micro)[0]
        for micro in (4, 2, 1)
    ]
    assert_close(grads[0], grads[1])
    assert_close(grads[0], grads[2])


def left_padded(rows: Any, pad_id: int, side: str = "right") -> dict[str, torch.Tensor]:
    return pad_batch(rows, pad_id, "left")


@pytest.mark.parametrize("name", METHODS)
def test_padding_side_and_row_order_do_not_matter(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, _ = first_step(make_method(name), tiny_model(0), toy_stage(FOUR), tmp_path / "a")
    backwards, _ = first_step(make_method(name), tiny_model(0), toy_stage(FOUR[::-1]), tmp_path / "b")
    assert_close(plain, backwards)
    monkeypatch.setattr(supervised_module, "pad_batch", left_padded)
    monkeypatch.setattr(on_policy_module, "pad_batch", left_padded)
    padded, _ = first_step(make_method(name), tiny_model(0), toy_stage(FOUR), tmp_path / "c")
    assert_close(plain, padded)


def doubled(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    return lambda *args, **kwargs: 2 * function(*args, **kwargs)


def prompt_included(rows: Any, pad_id: int, side: Any = "right") -> dict[str, torch.Tensor]:
    batch = pad_batch(rows, pad_id, side)
    mask = batch["attention_mask"].clone()
    # The first token of a sequence is predicted by nothing.
    mask.scatter_(1, mask.argmax(1, keepdim=True), 0)
    return {**batch, "completion_mask": mask}


class ReloadedTeacher(EMATeacher):
    """The mistake of trainers that rebuild their teacher from the path the student came from."""

    def __init__(self, student: ChatModel, rate: float) -> None:
        super().__init__(load_folder(Path(student.model.config._name_or_path), "teacher"), rate)


def scale_for_accumulation(monkeypatch: pytest.MonkeyPatch) -> None:
    original = mixin_module.TrainingMixin.training_step

    def mistaken(self: Any, model: Any, inputs: Any, num_items_in_batch: Any = None) -> torch.Tensor:
        self.loss_is_scaled_for_ga = False
        return original(self, model, inputs, num_items_in_batch)

    monkeypatch.setattr(mixin_module.TrainingMixin, "training_step", mistaken)


SFT_MUTANTS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "loss doubled": lambda m: m.setattr(
        supervised_module, "supervised_loss", doubled(supervised_module.supervised_loss)
    ),
    "loss divided by the accumulation": scale_for_accumulation,
    "prompt tokens included": lambda m: m.setattr(supervised_module, "pad_batch", prompt_included),
    "sequence mean for token mean": lambda m: m.setattr(
        supervised_module,
        "loss_weights",
        lambda mask, reduction, tokens, sequences: mask / mask.sum(1, keepdim=True) / sequences,
    ),
}
SDFT_MUTANTS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "loss doubled": lambda m: m.setattr(on_policy_module, "on_policy_loss", doubled(on_policy_module.on_policy_loss)),
    "loss divided by the accumulation": scale_for_accumulation,
    "KL reversed": lambda m: m.setattr(sdft_module, "jensen_shannon", lambda alpha: jensen_shannon(1 - alpha)),
    "prompt tokens included": lambda m: m.setattr(on_policy_module, "pad_batch", prompt_included),
    "teacher reloaded from disk": lambda m: m.setattr(distillation_module, "EMATeacher", ReloadedTeacher),
    "first tokens not skipped": lambda m: m.setattr(on_policy_module, "tokens_to_skip", lambda limit, lengths: 0),
}


@pytest.mark.parametrize("mutant", SFT_MUTANTS)
def test_sft_check_catches(mutant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    SFT_MUTANTS[mutant](monkeypatch)
    with pytest.raises((AssertionError, RuntimeError)):
        check_sft(tmp_path)


@pytest.mark.parametrize("mutant", SDFT_MUTANTS)
def test_sdft_check_catches(mutant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    SDFT_MUTANTS[mutant](monkeypatch)
    with pytest.raises((AssertionError, RuntimeError)):
        check_sdft(tmp_path)
