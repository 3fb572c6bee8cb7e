"""Finding the run that a test made, and stopping one at a stage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cl_bench.harness.selfcheck.results import results_of
from cl_bench.methods.base import Adaptation, Method

__all__ = ["interrupted", "only_run", "results_of"]


def only_run(output: Path) -> Path:
    """The one run directory below an output folder."""
    (spec,) = output.glob("*/*/*/spec.yaml")
    return spec.parent


def interrupted(monkeypatch: pytest.MonkeyPatch, method: type[Method], number: int) -> list[str]:
    """Let a method be interrupted when it is asked to adapt for the ``number``-th time.

    Returns:
        Names of the stages that it was asked for, as they come.
    """
    real, stages = method.adapt, list[str]()

    def adapt(self: Method, student: Any, stage: Any, context: Any) -> Adaptation:
        stages.append(stage.name)
        if len(stages) == number:
            raise KeyboardInterrupt
        return real(self, student, stage, context)

    monkeypatch.setattr(method, "adapt", adapt)
    return stages
