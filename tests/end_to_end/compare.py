"""Finding the run that a test made."""

from __future__ import annotations

from pathlib import Path

from cl_bench.harness.selfcheck.results import results_of

__all__ = ["only_run", "results_of"]


def only_run(output: Path) -> Path:
    """The one run directory below an output folder."""
    (spec,) = output.glob("*/*/*/spec.yaml")
    return spec.parent
