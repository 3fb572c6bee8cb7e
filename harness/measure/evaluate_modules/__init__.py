"""The measures as modules of Hugging Face's ``evaluate``, loaded from this package: no network, no hub."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cl_bench.harness.errors import UnknownNameError

if TYPE_CHECKING:
    import evaluate

EVALUATE_MODULES = ("continual_learning", "sample_wise_forgetting")


def evaluate_module(name: str) -> evaluate.EvaluationModule:
    """Load a module: ``evaluate_module("continual_learning").compute(predictions=scores, tasks=names)``.

    The same as ``evaluate.load`` with the module's folder; inputs are kept in memory.

    Args:
        name: One of ``EVALUATE_MODULES``.

    Raises:
        UnknownNameError: There is no such module.
    """
    if name not in EVALUATE_MODULES:
        raise UnknownNameError("evaluate module", name, EVALUATE_MODULES)
    import evaluate

    return evaluate.load(str(Path(__file__).parent / name), keep_in_memory=True)
