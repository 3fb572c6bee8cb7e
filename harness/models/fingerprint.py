"""Content hashes of models: the bytes of weights, configuration and tokenizer, never their names or dates."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

_TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "tokenizer.model",
    "chat_template.jinja",
)
_CONFIG_FILES = ("config.json", "generation_config.json", "adapter_config.json", "model.safetensors.index.json")
_CHUNK = 1 << 20


def weights_fingerprint(folder: Path) -> str:
    """SHA-256 over configuration and every safetensors file (adapters included) of a model folder."""
    files = [folder / name for name in _CONFIG_FILES if (folder / name).exists()]
    files += sorted(folder.glob("*.safetensors"))
    return _hash(files)


def tokenizer_fingerprint(folder: Path) -> str:
    """SHA-256 over the tokenizer's files of a model folder, chat template included."""
    return _hash([folder / name for name in _TOKENIZER_FILES if (folder / name).exists()])


def model_fingerprint(folder: Path) -> str:
    """SHA-256 over weights, configuration and tokenizer of a model folder."""
    return hashlib.sha256((weights_fingerprint(folder) + tokenizer_fingerprint(folder)).encode()).hexdigest()


def memory_fingerprint(network: torch.nn.Module) -> str:
    """SHA-256 over names, types, shapes and bytes of a network's parameters and buffers as they are now."""
    import torch

    digest = hashlib.sha256()
    for name, tensor in sorted(network.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\0".encode())
        digest.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy())
    return digest.hexdigest()


def _hash(files: list[Path]) -> str:
    digest = hashlib.sha256()
    for path in files:
        digest.update(path.name.encode() + b"\0")
        with path.open("rb") as stream:
            while chunk := stream.read(_CHUNK):
                digest.update(chunk)
    return digest.hexdigest()
