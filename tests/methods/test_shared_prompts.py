"""Rows that share a prompt's pass give what rows in full give: hidden states, weights' gradients, losses, teachers."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from peft import LoraConfig, get_peft_model
from torch import Tensor
from transformers import (
    AutoModelForCausalLM,
    Gemma2Config,
    GPT2Config,
    LlamaConfig,
    MistralConfig,
    PretrainedConfig,
    Qwen2Config,
)

from cl_bench.methods.training import forward
from cl_bench.methods.training.forward import computed_tokens, head_of, hidden_at, shifted
from cl_bench.methods.training.losses import skip_mask
from cl_bench.methods.training.rows import pad_batch
from cl_bench.methods.training.shared_prompts import SharedPrompts, shared_prompts

VOCABULARY, PAD = 90, 0
SIZES: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
}
ARCHITECTURES: dict[str, Callable[[], PretrainedConfig]] = {
    "qwen2": lambda: Qwen2Config(**SIZES),
    "llama": lambda: LlamaConfig(**SIZES),
    "mistral, sliding window": lambda: MistralConfig(**SIZES, sliding_window=8),
    "gemma2, every other layer sliding": lambda: Gemma2Config(**SIZES, sliding_window=8, query_pre_attn_scalar=8),
    "gpt2": lambda: GPT2Config(vocab_size=VOCABULARY, n_embd=32, n_layer=2, n_head=4, n_positions=64),
}


def model_of(architecture: str) -> Any:
    torch.manual_seed(0)
    return AutoModelForCausalLM.from_config(ARCHITECTURES[architecture](), dtype=torch.float32).eval()


def batch(side: Any = "right") -> dict[str, Tensor]:
    """Three prompts with three, one and three completions of unequal lengths, mixed."""
    generator = torch.Generator().manual_seed(1)

    def tokens(count: int) -> list[int]:
        return torch.randint(1, VOCABULARY, (count,), generator=generator).tolist()

    prompts = [tokens(20), tokens(31), tokens(25)]
    plan = [(0, 5), (1, 9), (0, 7), (2, 1), (2, 12), (0, 3), (2, 4)]
    return pad_batch([(prompts[owner], tokens(length)) for owner, length in plan], PAD, side)


def in_full(rows: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: value for name, value in rows.items() if name != "prompt_lengths"}


def states_and_gradients(model: Any, rows: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    own = copy.deepcopy(model)
    under_loss = rows["completion_mask"].bool()
    hidden = hidden_at(own, rows, shifted(under_loss))
    tokens = rows["input_ids"][under_loss]
    head_of(own)(hidden).log_softmax(-1).gather(-1, tokens[:, None]).square().sum().backward()
    return hidden.detach(), torch.cat([p.grad.flatten() for p in own.parameters() if p.grad is not None])


def differences(model: Any, rows: dict[str, Tensor]) -> tuple[float, float]:
    """Of hidden states and of gradients, relative."""
    shared, full = states_and_gradients(model, rows), states_and_gradients(model, in_full(rows))
    assert all(one.shape == other.shape for one, other in zip(shared, full, strict=True))
    states, gradients = (float((one - other).norm() / other.norm()) for one, other in zip(shared, full, strict=True))
    return states, gradients


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_states_and_gradients_are_those_of_rows_in_full(architecture: str, side: str) -> None:
    model, rows = model_of(architecture), batch(side)
    assert shared_prompts(model, rows) is not None
    states, gradients = differences(model, rows)
    assert states < 2e-6 and gradients < 2e-6


Fault = Callable[[SharedPrompts], SharedPrompts]
FAULTS: dict[str, Fault] = {
    "another row's prompt": lambda s: replace(s, owner=s.owner.roll(1)),
    "padding of prompts seen": lambda s: replace(s, prompt_mask=torch.ones_like(s.prompt_mask)),
    "last prompt token twice": lambda s: replace(s, completions=torch.roll(s.completions, 1, dims=1)),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_comparison_fails_on_a_planted_fault(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def faulty(model: Any, rows: dict[str, Tensor]) -> SharedPrompts | None:
        shared = shared_prompts(model, rows)
        return None if shared is None else FAULTS[fault](shared)

    monkeypatch.setattr(forward, "shared_prompts", faulty)
    with pytest.raises(AssertionError):
        states, gradients = differences(model_of("qwen2"), batch())
        assert states < 1e-3 and gradients < 1e-3


def test_prompts_that_are_cut_off_from_the_gradient_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of detached keys gives the same states; only the gradient tells."""
    from transformers.cache_utils import DynamicLayer

    update = DynamicLayer.update

    def detached(layer: Any, keys: Tensor, values: Tensor, *args: Any, **more: Any) -> Any:
        if layer.get_seq_length():
            layer.keys, layer.values = layer.keys.detach(), layer.values.detach()
        return update(layer, keys, values, *args, **more)

    monkeypatch.setattr(DynamicLayer, "update", detached)
    states, gradients = differences(model_of("qwen2"), batch())
    assert states < 2e-6 and gradients > 1e-3


def test_computed_tokens_count_a_prompt_once() -> None:
    model, rows = model_of("qwen2"), batch()
    last_of_the_longest = 1
    assert computed_tokens(model, rows) == 20 + 31 + 25 + (5 + 9 + 7 + 1 + 12 + 3 + 4) - last_of_the_longest
    assert computed_tokens(model, in_full(rows)) == int(rows["attention_mask"].sum())


@pytest.mark.parametrize("alone", ["distinct prompts", "one row", "empty prompt", "one token each", "long completions"])
def test_rows_that_would_save_little_go_in_one_pass(alone: str) -> None:
    same, other = [1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 7]
    rows: list[tuple[list[int], list[int]]] = {
        "distinct prompts": [(same, [8, 9]), (other, [8, 9])],
        "one row": [(same, [8, 9])],
        "empty prompt": [(same, [8, 9]), (same, [8]), ([], [8, 9])],
        "one token each": [(same, [8]), (same, [9])],
        "long completions": [(same, [8] * 40), (same, [9] * 40)],
    }[alone]
    assert shared_prompts(model_of("qwen2"), pad_batch(rows, PAD)) is None


def test_a_batch_without_prompt_lengths_goes_in_one_pass() -> None:
    assert shared_prompts(model_of("qwen2"), in_full(batch())) is None


@pytest.mark.parametrize("kind", ["stateful", "shared keys", "other layers"])
def test_a_model_with_more_than_attention_gets_its_rows_in_one_pass(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of("qwen2")
    if kind == "stateful":
        monkeypatch.setattr(type(model), "_is_stateful", True)
    elif kind == "shared keys":
        model.config.num_kv_shared_layers = 1
    else:
        model.config.layer_types = ["full_attention", "conv"]
    assert shared_prompts(model, batch()) is None


@pytest.mark.parametrize("rope", ["dynamic", "longrope"])
def test_rotary_embeddings_that_depend_on_the_longest_row_get_rows_in_one_pass(rope: str) -> None:
    model = model_of("llama")
    model.config.rope_parameters = {"rope_type": rope, "rope_theta": 10000.0}
    assert shared_prompts(model, batch()) is None


def test_kept_positions_within_prompts_are_not_lost() -> None:
    model, rows = model_of("qwen2"), batch()
    keep = rows["attention_mask"].bool()
    assert torch.equal(hidden_at(model, rows, keep), hidden_at(model, in_full(rows), keep))


@pytest.mark.parametrize("case", ["an empty completion", "skipped tokens", "an adapter"])
def test_special_batches_and_models_give_what_rows_in_full_give(case: str) -> None:
    model, rows = model_of("qwen2"), batch()
    if case == "an empty completion":
        same = [5] * 30
        rows = pad_batch([(same, [7, 8, 9]), (same, []), (same, [9, 9, 9, 2])], PAD)
    elif case == "skipped tokens":
        rows["completion_mask"] = skip_mask(rows["completion_mask"], 2)
    else:
        model = get_peft_model(model, LoraConfig(r=4, target_modules=["q_proj", "v_proj"], init_lora_weights=False))
    assert shared_prompts(model, rows) is not None
    states, gradients = differences(model, rows)
    assert states < 2e-6 and gradients < 5e-6


def test_under_bf16_autocast_states_and_gradients_are_near_those_of_rows_in_full() -> None:
    with torch.autocast("cpu", torch.bfloat16):
        states, gradients = differences(model_of("qwen2"), batch())
    assert states < 2e-2 and gradients < 2e-2


def test_gradients_are_the_same_every_time_with_several_threads() -> None:
    """Picking rows by index would sum the gradients of a prompt's rows in an order that the threads decide."""
    config = Qwen2Config(**{**SIZES, "hidden_size": 128, "num_key_value_heads": 4, "head_dim": 32})
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    generator = torch.Generator().manual_seed(1)
    prompts = [torch.randint(1, VOCABULARY, (80,), generator=generator).tolist() for _ in range(2)]
    rows = pad_batch([(prompts[row % 2], [1 + row, 2, 3]) for row in range(16)], PAD)
    assert shared_prompts(model, rows) is not None
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        first, *others = (states_and_gradients(model, rows)[1] for _ in range(8))
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(first, other) for other in others)


def test_a_teacher_that_is_the_student_under_bf16_autocast_sees_the_same_states() -> None:
    model, rows = model_of("qwen2"), batch()
    keep = shifted(rows["completion_mask"].bool())
    with torch.autocast("cpu", torch.bfloat16):
        student = hidden_at(model, rows, keep)
        with torch.no_grad():
            teacher = hidden_at(model, rows, keep)
    assert torch.equal(student.detach(), teacher)
