"""Loaded weights are the file's, whole, and in memory of their own."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from cl_bench.harness.errors import ModelError
from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.harness.models.load import load_folder
from tests.support import tiny_model


@pytest.fixture()
def folder(tmp_path: Path) -> Path:
    chat = tiny_model(0)
    chat.model.save_pretrained(tmp_path)
    chat.tokenizer.save_pretrained(tmp_path)
    return tmp_path


def rewritten(folder: Path, words: int = 0, without: str = "") -> ChatModel:
    """The folder's model, loaded after its file was written with longer metadata or without a tensor."""
    file = folder / "model.safetensors"
    tensors = {name: tensor.clone() for name, tensor in load_file(file).items() if name != without}
    save_file(tensors, file, metadata={"format": "pt", "padding": "x" * words})
    return load_folder(folder, "tiny")


def test_weights_are_aligned_wherever_they_lie_in_the_file(folder: Path) -> None:
    for words in range(0, 64, 8):
        model = rewritten(folder, words).model
        assert {tensor.data_ptr() % 64 for tensor in model.parameters()} == {0}


def test_a_loaded_model_computes_what_the_same_model_in_memory_does_bit_for_bit(folder: Path) -> None:
    generator = torch.Generator().manual_seed(0)
    for words in (0, 8, 24):
        loaded = rewritten(folder, words).model
        same = copy.deepcopy(loaded)
        for _ in range(40):
            ids = torch.randint(3, 250, (1, 1), generator=generator)
            with torch.no_grad():
                assert torch.equal(loaded(input_ids=ids).logits, same(input_ids=ids).logits)


def test_a_model_does_not_change_with_its_file(folder: Path) -> None:
    chat = load_folder(folder, "tiny")
    before = {name: value.clone() for name, value in chat.model.state_dict().items()}
    file = folder / "model.safetensors"
    with file.open("r+b") as handle:
        size = file.stat().st_size
        handle.seek(size // 2)
        handle.write(b"\xff" * (size - size // 2))
    assert all(torch.equal(before[name], value) for name, value in chat.model.state_dict().items())


def test_tied_weights_stay_tied(folder: Path) -> None:
    model = load_folder(folder, "tiny").model
    tied = tiny_model(0).model
    assert (model.get_input_embeddings().weight is model.get_output_embeddings().weight) == (
        tied.get_input_embeddings().weight is tied.get_output_embeddings().weight
    )


def test_a_file_that_lacks_a_tensor_is_refused(folder: Path) -> None:
    name = "model.layers.0.self_attn.q_proj.weight"
    with pytest.raises(ModelError, match="not whole") as caught:
        rewritten(folder, without=name)
    assert name in caught.value.why
