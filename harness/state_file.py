"""Nested state (dicts, lists, JSON values, tensors) in safetensors and JSON: no pickle."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

_TENSOR = "__tensor__"


def save_state(folder: Path, name: str, state: Mapping[str, Any]) -> None:
    """Write ``name.json`` (structure) and ``name.safetensors`` (tensors) into a folder.

    Raises:
        TypeError: The state holds something that is neither a JSON value nor a tensor.
    """
    from safetensors.torch import save_file

    tensors: dict[str, Tensor] = {}
    structure = _split(dict(state), tensors, "")
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, str(folder / f"{name}.safetensors"))
    (folder / f"{name}.json").write_text(json.dumps(structure), encoding="utf-8")


def load_state(folder: Path, name: str) -> dict[str, Any]:
    """Inverse of ``save_state``."""
    from safetensors.torch import load_file

    tensors = load_file(str(folder / f"{name}.safetensors"))
    state = _join(json.loads((folder / f"{name}.json").read_text(encoding="utf-8")), tensors)
    assert isinstance(state, dict)
    return state


def _split(value: Any, tensors: dict[str, Tensor], path: str) -> Any:
    if isinstance(value, torch.Tensor):
        # A clone, because safetensors refuses tensors that share memory (tied weights).
        tensors[path] = value.detach().cpu().contiguous().clone()
        return {_TENSOR: path}
    if isinstance(value, Mapping):
        return {str(key): _split(item, tensors, f"{path}/{key}") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_split(item, tensors, f"{path}/{i}") for i, item in enumerate(value)]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"state at {path or '/'} is a {type(value).__name__}; only JSON values and tensors can be kept")


def _join(value: Any, tensors: Mapping[str, Tensor]) -> Any:
    if isinstance(value, dict):
        if set(value) == {_TENSOR}:
            return tensors[value[_TENSOR]]
        return {key: _join(item, tensors) for key, item in value.items()}
    if isinstance(value, list):
        return [_join(item, tensors) for item in value]
    return value
