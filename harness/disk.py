"""Whether the disk has room for a run's weights, looked at before anything is spent."""

from __future__ import annotations

import shutil
from pathlib import Path

from cl_bench.harness.errors import StoreError
from cl_bench.harness.spec import Execution

_WEIGHT = 4
"""Bytes of a weight in a checkpoint: fp32."""
_TRAINING = 16
"""Bytes a weight in a checkpoint within a stage: weights, Adam's two moments, and a teacher."""


def checkpoint_bytes(parameters: int, stages: int, execution: Execution) -> int:
    """Bytes that checkpoints take at most while the remaining stages are trained; an estimate.

    Args:
        parameters: Weights of the model.
        stages: Stages that are still to be trained.
        execution: Which checkpoints are written and kept.
    """
    if not stages:
        return 0
    kept = stages if execution.keep_checkpoints == "all" else min(stages, 2)
    # The older checkpoint within a stage stays until the newer one is in its place.
    within = execution.checkpoint_every_seconds is not None or execution.checkpoint_every_steps is not None
    return parameters * (_WEIGHT * kept + (2 * _TRAINING if within else 0))


def check_room(directory: Path, needed: int) -> None:
    """Refuse to begin what will not fit.

    Raises:
        StoreError: The disk of the run directory has less room than is needed.
    """
    free = shutil.disk_usage(directory).free
    if needed > free:
        raise StoreError(
            f"the run's checkpoints need about {needed / 1e9:.1f} GB, {directory} has {free / 1e9:.1f} GB left",
            "weights in fp32, and within a stage the optimizer's state and a teacher besides",
            "free some space, choose another --output, or --keep-checkpoints last or none, or --checkpoint-every never",
        )
