"""Whether the disk has room for a run's weights, looked at before anything is spent."""

from __future__ import annotations

import shutil
from pathlib import Path

from cl_bench.harness.errors import StoreError
from cl_bench.harness.planned_stages import planned_stages
from cl_bench.harness.run_directory import ADAPTED, CHECKPOINT, DONE, MID, stage_folder
from cl_bench.harness.sizes import size_text
from cl_bench.harness.spec import Execution
from cl_bench.harness.store import Store

_WEIGHT = 4
"""Bytes of a weight in a checkpoint: fp32."""
_TRAINING = 16
"""Bytes a weight in a checkpoint within a stage: weights, Adam's two moments, and a teacher."""


def checkpoint_bytes(parameters: int, untrained: int, execution: Execution, trained: int = 0) -> int:
    """Bytes that checkpoints still take at most until the remaining stages are trained; an estimate.

    Args:
        parameters: Weights of the model.
        untrained: Stages that are still to be trained.
        execution: Which checkpoints are written and kept.
        trained: Stages whose weights are there.
    """
    if not untrained:
        return 0
    # Until the next stage is trained the one before it stays.
    kept = untrained if execution.keep_checkpoints == "all" else min(trained + untrained, 2) - min(trained, 1)
    # The older checkpoint within a stage stays until the newer one is in its place.
    within = execution.checkpoint_every_seconds is not None or execution.checkpoint_every_steps is not None
    return parameters * (_WEIGHT * kept + (2 * _TRAINING if within else 0))


def bytes_to_come(store: Store, execution: Execution, parameters: int) -> int:
    """Bytes that a run's checkpoints still take at most, beside what lies on the disk already.

    Args:
        store: The run.
        execution: Which checkpoints are written and kept.
        parameters: Weights of the model.
    """
    folders = [store.path(stage_folder(index, name)) for index, (name, _) in enumerate(planned_stages(store.spec), 1)]
    trained = sum((folder / DONE).is_file() or (folder / ADAPTED).is_file() for folder in folders)
    needed = checkpoint_bytes(parameters, len(folders) - trained, execution, trained)
    # What an unfinished stage left gives way to what takes its place.
    left = [folder / name for folder in folders if not (folder / DONE).is_file() for name in (MID, CHECKPOINT)]
    there = sum(_size(place) for place in left if not (place.parent / ADAPTED).is_file())
    return max(0, needed - there)


def check_room(directory: Path, needed: int) -> None:
    """Refuse to begin what will not fit.

    Raises:
        StoreError: The disk of the run directory has less room than is needed.
    """
    free = shutil.disk_usage(directory).free
    if needed > free:
        raise StoreError(
            f"the run's checkpoints need about {size_text(needed)}, {directory} has {size_text(free)} left",
            "weights in fp32, and within a stage the optimizer's state and a teacher besides",
            "free some space, choose another --output, or --keep-checkpoints last or none, or --checkpoint-every never",
        )


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
