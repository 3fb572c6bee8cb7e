"""Checkpoints within a stage: moved into place whole, hashed, only the newest kept."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from cl_bench.harness.distributed import is_main_process
from cl_bench.harness.errors import StoreError
from cl_bench.harness.files import first_damaged, hash_tree, publish_folder, read_object, write_json
from cl_bench.harness.run_directory import SCHEMA_VERSION
from cl_bench.methods.base import StageCheckpoints

HASHES = "hashes.json"
_UNSAFE_FILE = "training_args.bin"  # a pickle of arbitrary objects; nothing of ours reads it


class StageCheckpointFolder(StageCheckpoints):
    """Checkpoints ``step-000040`` in the stage's ``mid`` folder, with a ``hashes.json`` in each."""

    def __init__(self, folder: Path, every_seconds: float | None, every_steps: int | None) -> None:
        """Build for one stage.

        Args:
            folder: The stage's ``mid`` folder; made by the first ``save``.
            every_seconds: Time between checkpoints in seconds; None: no clock.
            every_steps: Optimizer steps between checkpoints; None: no step count.
        """
        self._folder = folder
        self._every_seconds, self._every_steps = every_seconds, every_steps
        self._last = time.monotonic()

    def due(self, step: int) -> bool:
        """Whether a checkpoint should be written after this optimizer step."""
        if self._every_steps is not None and step > 0 and step % self._every_steps == 0:
            return True
        return self._every_seconds is not None and time.monotonic() - self._last >= self._every_seconds

    def save(self, step: int, source: Path) -> None:
        """Take over a finished checkpoint folder; ``source`` is gone afterwards."""
        if not is_main_process():
            return
        for path in source.rglob(_UNSAFE_FILE):
            path.unlink()
        write_json(source / HASHES, {"schema_version": SCHEMA_VERSION, "step": step, "files": hash_tree(source)})
        target = self._folder / f"step-{step:06d}"
        publish_folder(source, target)
        for older in self._folder.iterdir():
            if older != target:
                shutil.rmtree(older, ignore_errors=True)
        self._last = time.monotonic()

    def latest(self) -> Path | None:
        """The newest checkpoint folder, or None.

        Raises:
            StoreError: A file in it is missing or changed; it is named.
        """
        complete = [path for path in sorted(self._folder.glob("step-*")) if (path / HASHES).is_file()]
        complete = [path for path in complete if path.name.removeprefix("step-").isdigit()]
        if not complete:
            return None
        newest = max(complete, key=lambda path: int(path.name.removeprefix("step-")))
        hashes = read_object(newest / HASHES).get("files")
        damaged = first_damaged(newest, hashes) if isinstance(hashes, dict) else (newest / HASHES, "it lists no files")
        if damaged is not None:
            file, why = damaged
            raise StoreError(f"{file} is damaged", why, f"remove {self._folder} and resume: the stage starts again")
        return newest
