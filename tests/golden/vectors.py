"""What comparisons share: the shape of a vector and of what is found, and how a key is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

Place = tuple[str, ...]
Found = Iterator[tuple[Place, Any] | tuple[Place, Any, float]]
Vector = Mapping[str, Any]

FP32 = 2e-5
"""Tolerance where the reference computes in fp32."""


def parse_key(key: str) -> tuple[list[str], dict[str, Any]]:
    """Words and parameters of a key: ``jsd|beta=0.5|top_k=None`` to (["jsd"], {"beta": 0.5, "top_k": None})."""
    words: list[str] = []
    parameters: dict[str, Any] = {}
    for part in key.split("|"):
        name, equals, value = part.partition("=")
        if equals:
            parameters[name] = _literal(value)
        else:
            words.append(part)
    return words, parameters


def _literal(text: str) -> Any:
    constants = {"None": None, "True": True, "False": False}
    if text in constants:
        return constants[text]
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text


def double(values: Any) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)
