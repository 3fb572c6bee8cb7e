"""LoRA and O-LoRA: what is attached, merged and continued; averages of the product; the overlap; exact resume."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import cl_bench.methods.training.teachers as teachers_module
from cl_bench.harness.errors import UsageError
from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.harness.seeds import global_seed
from cl_bench.harness.state_file import load_state, save_state
from cl_bench.methods.base import Modifier
from cl_bench.methods.modifiers.ewc import EWC, EWCSettings
from cl_bench.methods.modifiers.lora import LoRA, LoRASettings
from cl_bench.methods.modifiers.o_lora import OLoRA, OLoRASettings
from cl_bench.methods.training.adapters import (
    AdapterSettings,
    attach,
    effective_weights,
    merge,
    plain_copy,
    subspaces,
)
from cl_bench.methods.training.teachers import EMATeacher
from tests.methods.probes import make_method
from tests.support import Stopped, TinyContext, same_weights, tiny_model, toy_examples, toy_stage, weights

SMALL = {"rank": 2, "alpha": 4.0}
SHAPE = AdapterSettings(**SMALL)
SIX = toy_examples(6)


def moved(chat: ChatModel, seed: int = 0) -> None:
    """Give every adapter weights as training would."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in chat.model.named_parameters():
            if ".lora_" in name:
                weight.copy_(0.1 * torch.randn(weight.shape, generator=generator))


def logits(chat: ChatModel) -> Tensor:
    ids = torch.tensor([chat.prompt_ids(SIX[0].messages)])
    with torch.no_grad():
        found: Tensor = chat.model(input_ids=ids).logits
    return found


def test_a_new_adapter_changes_nothing_and_is_all_that_is_trained() -> None:
    chat = tiny_model(0)
    before = logits(chat)
    attach(chat.model, SHAPE)
    assert torch.equal(logits(chat), before)
    trained = {name for name, weight in chat.model.named_parameters() if weight.requires_grad}
    assert trained and all(".lora_" in name for name in trained)
    assert {name.split(".lora_")[0].rpartition(".")[2] for name in trained} == {
        "q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj",
    }  # fmt: skip


def test_merging_keeps_what_the_model_computes_and_leaves_a_plain_model() -> None:
    chat, names = tiny_model(0), list(weights(tiny_model(0)))
    attach(chat.model, SHAPE)
    moved(chat)
    before, effective = logits(chat), {n: w.detach().clone() for n, w in effective_weights(chat.model).items()}
    merge(chat.model)
    torch.testing.assert_close(logits(chat), before, atol=1e-5, rtol=1e-5)
    assert list(weights(chat)) == names
    assert all(weight.requires_grad for weight in chat.model.parameters())
    for name, weight in weights(chat).items():
        torch.testing.assert_close(weight, effective[name], atol=1e-7, rtol=1e-6)
    assert not same_weights(weights(chat), weights(tiny_model(0)))


def test_names_of_no_layer_are_refused() -> None:
    with pytest.raises(UsageError, match="no adapter can be attached"):
        attach(tiny_model(0).model, AdapterSettings(targets="nothing_proj"))


def test_ranks_and_targets_are_those_of_the_settings() -> None:
    chat = tiny_model(0)
    attach(chat.model, AdapterSettings(rank=3, targets="q_proj"))
    shapes = {name: tuple(rows.shape) for name, rows in subspaces(chat.model).items()}
    assert shapes == {f"model.layers.{i}.self_attn.q_proj": (3, 16) for i in range(2)}


def check_average_of_the_product() -> None:
    """The student's adapter jumps once and stays: after t steps the teacher has gone 1 - (1 - a)^t of the way."""
    chat, rate, steps = tiny_model(0), 0.05, 20
    attach(chat.model, SHAPE)
    teacher = EMATeacher(chat, rate)
    start = weights(teacher.chat)
    moved(chat)
    for _ in range(steps):
        teacher.update(chat)
    share = 1 - (1 - rate) ** steps
    for name, end in weights(ChatModel(plain_copy(chat.model), chat.tokenizer, "")).items():
        torch.testing.assert_close(
            weights(teacher.chat)[name], start[name] + share * (end - start[name]), atol=1e-6, rtol=1e-5
        )


def test_the_average_of_an_adapted_student_averages_the_product() -> None:
    check_average_of_the_product()


def test_averages_of_a_and_b_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def of_the_factors(self: EMATeacher, student: ChatModel) -> None:
        """A and B averaged apart, each from zero, as in a library's callback."""
        held: Any = self.__dict__.setdefault("held", copy.deepcopy(student))
        if "begun" not in self.__dict__:
            self.__dict__["begun"] = True
            for name, weight in held.model.named_parameters():
                if ".lora_" in name:
                    weight.data.zero_()
        theirs = dict(student.model.named_parameters())
        for name, weight in held.model.named_parameters():
            weight.data.lerp_(theirs[name].data, self.rate)
        self.chat.model.load_state_dict(plain_copy(held.model).state_dict())

    monkeypatch.setattr(teachers_module.EMATeacher, "update", of_the_factors)
    with pytest.raises(AssertionError):
        check_average_of_the_product()


def stages(modifiers: list[Modifier], folder: Path, count: int = 2, method: str = "sft", **changes: Any) -> ChatModel:
    """Several stages of a method with modifiers, each from the state that the one before left on disk."""
    student = tiny_model(0)
    for index in range(1, count + 1):
        start = copy.deepcopy(student)
        context = TinyContext(folder / str(index), modifiers=modifiers, original=tiny_model(0), task_start=start)
        run_stage(student, modifiers, context, index, method, **changes)
        for number, modifier in enumerate(modifiers):
            save_state(folder, f"state-{number}", modifier.state_dict())
            modifier.load_state_dict(load_state(folder, f"state-{number}"))
    return student


def run_stage(
    student: ChatModel, modifiers: list[Modifier], context: TinyContext, index: int, method: str = "sft", **changes: Any
) -> None:
    stage = toy_stage(SIX, index)
    plain = [modifier for modifier in modifiers if not modifier.reparametrises]
    adapters = [modifier for modifier in modifiers if modifier.reparametrises]
    with global_seed(index):
        for modifier in (*plain, *adapters):
            modifier.before_stage(student, stage, context)
        make_method(method, **{"epochs": 2, **changes}).adapt(student, stage, context)
        for modifier in (*adapters, *plain):
            modifier.after_stage(student, stage, context)


def rank_of_change(chat: ChatModel) -> int:
    name = "model.layers.0.mlp.up_proj.weight"
    change = weights(chat)[name] - weights(tiny_model(0))[name]
    return int((torch.linalg.svdvals(change) > 1e-5).sum())


@pytest.mark.parametrize(("between", "ranks"), [("merge", 4), ("continue", 2), ("fresh", 2)])
def test_two_stages_change_the_weights_by_as_many_ranks_as_there_are_adapters(
    between: Any, ranks: int, tmp_path: Path
) -> None:
    result = stages([LoRA(LoRASettings(**SMALL, between_stages=between))], tmp_path)
    assert rank_of_change(result) == ranks


def test_a_fresh_adapter_forgets_the_stage_before(tmp_path: Path) -> None:
    fresh = LoRA(LoRASettings(**SMALL, between_stages="fresh"))
    second_alone = tiny_model(0)
    context = TinyContext(tmp_path / "alone", modifiers=[fresh], original=tiny_model(0), task_start=tiny_model(0))
    run_stage(second_alone, [fresh], context, 2)
    assert same_weights(weights(stages([fresh], tmp_path / "both")), weights(second_alone))


def test_an_adapter_is_not_continued_on_weights_that_something_else_changed(tmp_path: Path) -> None:
    modifier = LoRA(LoRASettings(**SMALL, between_stages="continue"))
    student = stages([modifier], tmp_path, count=1)
    with torch.no_grad():
        next(iter(student.model.parameters())).add_(0.1)
    context = TinyContext(tmp_path / "2", modifiers=[modifier], original=tiny_model(0), task_start=student)
    with pytest.raises(UsageError, match="cannot be continued"):
        modifier.before_stage(student, toy_stage(SIX, 2), context)


@pytest.mark.parametrize("method", ["sft", "sdft"])
@pytest.mark.parametrize("between", ["merge", "continue"])
def test_a_stage_with_an_adapter_resumes_exactly(method: str, between: Any, tmp_path: Path) -> None:
    def second(folder: Path, stop_at: int | None = None) -> dict[str, Tensor]:
        modifier = LoRA(LoRASettings(**SMALL, between_stages=between))
        modifier.load_state_dict(load_state(tmp_path / "first", "state-0"))
        student = copy.deepcopy(first)
        context = TinyContext(
            folder, every_steps=2, stop_at=stop_at, modifiers=[modifier], original=tiny_model(0), task_start=first
        )
        run_stage(student, [modifier], context, 2, method, epochs=3)
        return weights(student)

    first = stages([LoRA(LoRASettings(**SMALL, between_stages=between))], tmp_path / "first", count=1)
    whole = second(tmp_path / "whole")
    with pytest.raises(Stopped):
        second(tmp_path / "killed", stop_at=3)
    assert same_weights(second(tmp_path / "killed"), whole)


def test_an_adapter_composes_with_a_penalty_on_weights(tmp_path: Path) -> None:
    def run(strength: float) -> ChatModel:
        ewc = EWC(EWCSettings(strength=strength))
        return stages([LoRA(LoRASettings(**SMALL)), ewc], tmp_path / str(strength), learning_rate=1e-1)

    one = stages([LoRA(LoRASettings(**SMALL)), EWC()], tmp_path / "start", count=1, learning_rate=1e-1)

    def change(chat: ChatModel) -> float:
        return float(sum((w - weights(one)[name]).square().sum() for name, w in weights(chat).items()))

    found = [change(run(strength)) for strength in (0.0, 1e3, 1e5)]
    assert found == sorted(found, reverse=True) and found[-1] < 0.8 * found[0]


def overlap_by_hand(earlier: dict[str, Tensor], chat: ChatModel) -> float:
    total = 0.0
    for name, rows in subspaces(chat.model).items():
        for before in earlier[name]:
            for row in rows:
                total += abs(float((before @ row).detach()))
    return total


def test_the_penalty_is_the_overlap_of_what_adapters_read(tmp_path: Path) -> None:
    modifier = OLoRA(OLoRASettings(**SMALL, strength=0.5))
    student = stages([modifier], tmp_path)
    assert {rows.shape[0] for rows in modifier.state_dict()["earlier"].values()} == {4}
    context = TinyContext(tmp_path / "3", modifiers=[modifier], original=tiny_model(0), task_start=student)
    modifier.before_stage(student, toy_stage(SIX, 3), context)
    penalty = modifier.parameter_penalty(student)
    assert penalty is not None
    expected = 0.5 * overlap_by_hand(modifier.state_dict()["earlier"], student)
    assert float(penalty.detach()) == pytest.approx(expected, rel=1e-4)
    penalty.backward()
    for name, rows in subspaces(student.model).items():
        earlier = modifier.state_dict()["earlier"][name]
        assert rows.grad is not None
        torch.testing.assert_close(rows.grad, 0.5 * (earlier @ rows.detach().T).sign().T @ earlier)


def test_more_strength_is_less_overlap(tmp_path: Path) -> None:
    def overlap(strength: float) -> float:
        modifier = OLoRA(OLoRASettings(**SMALL, strength=strength))
        stages([modifier], tmp_path / str(strength), epochs=8)
        return sum(float((rows[:2] @ rows[2:].T).abs().sum()) for rows in modifier.state_dict()["earlier"].values())

    found = [overlap(strength) for strength in (0.0, 0.01, 1.0)]
    assert found == sorted(found, reverse=True) and found[-1] < 0.9 * found[0]


def test_the_first_stage_has_nothing_to_be_orthogonal_to(tmp_path: Path) -> None:
    assert OLoRA().parameter_penalty(tiny_model(0)) is None
