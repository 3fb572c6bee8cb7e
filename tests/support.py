"""What several tests need, kept where ``cl-bench validate`` uses it too."""

from __future__ import annotations

from cl_bench.harness.conformance.tiny import (
    Stopped,
    TinyContext,
    same_weights,
    tiny_model,
    tiny_tokenizer,
    toy_examples,
    toy_score,
    toy_stage,
    weights,
)

__all__ = [
    "Stopped",
    "TinyContext",
    "same_weights",
    "tiny_model",
    "tiny_tokenizer",
    "toy_examples",
    "toy_score",
    "toy_stage",
    "weights",
]
