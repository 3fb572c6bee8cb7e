"""Floating-point operations of training, teacher forwards and generation, from token counts."""

from __future__ import annotations


def forward_flops(parameters: int, tokens: int) -> float:
    """2 N per token: one forward pass, which is also what generating a token costs."""
    return 2.0 * parameters * tokens


def training_flops(parameters: int, tokens: int) -> float:
    """6 N per token: forward and backward."""
    return 6.0 * parameters * tokens


def petaflops(flops: float) -> float:
    """In units of 1e15 operations."""
    return flops / 1e15
