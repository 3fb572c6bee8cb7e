"""The only writer of a run directory."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from cl_bench.harness import files, run_directory
from cl_bench.harness.distributed import is_main_process
from cl_bench.harness.documents import validate_document
from cl_bench.harness.errors import StoreError
from cl_bench.harness.generation.batches import BatchLedger
from cl_bench.harness.liveness import works_elsewhere
from cl_bench.harness.run_directory import (
    ADAPTED,
    BATCHES,
    CHECKPOINT,
    DONE,
    MID,
    SCHEMA_VERSION,
    SPEC,
    STAGES,
    WITHIN,
    RunView,
    load_run,
)
from cl_bench.harness.run_lock import held
from cl_bench.harness.spec import RunSpec
from cl_bench.harness.stage_checkpoints import StageCheckpointFolder

__all__ = ["RunView", "State", "Store", "load_run"]

State = Literal["running", "done", "failed", "diverged", "interrupted"]


class Store:
    """One run directory. Rank 0 writes; on other ranks the writing methods do nothing.

    Every file appears whole: temporary name, flush, fsync, rename (the fsync of a stage's files comes all at once,
    before the stage counts). Only ``events.jsonl`` grows line by line.
    """

    def __init__(self, directory: Path, spec: RunSpec) -> None:
        """Use ``open`` or ``reopen``."""
        self.directory, self.spec = directory, spec

    @classmethod
    def open(cls, output: Path, spec: RunSpec, attempt: int = 1) -> Store:
        """Make the run directory of a spec, or enter the one that is there.

        Args:
            output: Folder of runs.
            spec: The run.
            attempt: Which of several runs of the same spec.

        Raises:
            StoreError: The directory exists and its ``spec.yaml`` is not this spec.
        """
        directory = run_directory.run_path(output, spec, attempt)
        if (directory / SPEC).is_file():
            store = cls.reopen(directory)
            if store.spec.digest() != spec.digest():
                raise StoreError(f"{directory} belongs to another spec", "their hashes begin alike", "use --output")
            # The spec just resolved, not the stored one: equal in content, but it knows where the model files lie now.
            return cls(directory, spec)
        store = cls(directory, spec)
        if is_main_process():
            directory.mkdir(parents=True, exist_ok=True)
            files.remove_temporaries(directory)
            strangers = sorted(path.name for path in directory.iterdir() if path.name != run_directory.LOCK)
            if strangers:
                raise StoreError(
                    f"{directory} is not a run directory",
                    f"it holds {', '.join(strangers[:5])} but no {SPEC}",
                    "move it away or use --output",
                )
            store.write_text(SPEC, spec.to_yaml())
        return store

    @classmethod
    def reopen(cls, directory: Path) -> Store:
        """Enter an existing run directory.

        Raises:
            StoreError: It has no spec, or its spec does not hash to its name.
        """
        return cls(directory, run_directory.read_spec(directory))

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the directory against other processes; the lock goes with the process.

        Raises:
            StoreError: Another process works on this run, here or on another host.
        """
        recorded = self._recorded_status()
        if works_elsewhere(recorded):
            raise StoreError(
                f"another process works on {self.directory}",
                f"process {recorded.get('pid')} on {recorded['host']} gave a sign of life at {recorded['heartbeat']}",
                "wait for it, or stop it; it counts as gone after two minutes of silence",
            )

        run_directory.refuse_links(self.directory)
        with held(self.directory / run_directory.LOCK):
            if is_main_process():
                files.remove_temporaries(self.directory)
                for done in self.directory.glob(f"{STAGES}/*/{DONE}"):
                    _drop_unfinished(done.parent)
                files.cut_tail(self.directory / run_directory.EVENTS)
            yield

    def path(self, relative: str | Path) -> Path:
        """Absolute place of a file of this run.

        Raises:
            StoreError: The place is outside the run directory.
        """
        found = self.directory / relative
        if not found.resolve().is_relative_to(self.directory.resolve()):
            raise StoreError(f"{relative} is outside the run directory {self.directory}")
        return found

    def write_json(self, relative: str | Path, value: Any, schema: str | None = None) -> None:
        """Write a JSON document; with ``schema`` (a name in ``harness/schemas``) it is checked first.

        Raises:
            StoreError: The document does not fit its schema.
        """
        document = files.plain(value)
        if schema is not None:
            validate_document(document, schema)
        if is_main_process():
            files.write_json(self.path(relative), document, self._durable(relative))

    def write_jsonl(self, relative: str | Path, rows: Iterable[Any]) -> None:
        """Write rows of JSON, one a line."""
        if is_main_process():
            files.write_jsonl(self.path(relative), rows, self._durable(relative))

    def write_text(self, relative: str | Path, text: str) -> None:
        """Write a text file."""
        if is_main_process():
            files.write_text(self.path(relative), text, self._durable(relative))

    def write_bytes(self, relative: str | Path, data: bytes) -> None:
        """Write a binary file (figures)."""
        if is_main_process():
            files.write_bytes(self.path(relative), data, self._durable(relative))

    def _durable(self, relative: str | Path) -> bool:
        # A stage's files count only together: finish_stage flushes them before it writes done.json.
        return not self.path(relative).is_relative_to(self.directory / STAGES)

    def read_json(self, relative: str | Path) -> Any:
        """Content of a JSON document. Raises ``StoreError`` where it is absent or damaged."""
        return files.read_json(self.path(relative))

    def read_jsonl(self, relative: str | Path) -> list[Any]:
        """Rows of a JSON-lines file. Raises ``StoreError`` where it is absent or damaged."""
        return list(files.read_jsonl(self.path(relative)))

    def exists(self, relative: str | Path) -> bool:
        """Whether the run has that file or folder."""
        return self.path(relative).exists()

    def event(self, kind: str, **fields: Any) -> None:
        """Append a line to ``events.jsonl``: time, kind, and the fields."""
        if is_main_process():
            files.append_line(self.path(run_directory.EVENTS), {"time": _now(), "kind": kind, **fields})

    def status(self, state: State, **fields: Any) -> None:
        """Write ``status.json``: the state, and for example ``stage``, ``phase``, ``reason``."""
        document = {"schema_version": SCHEMA_VERSION, "state": state, "updated": _now(), **fields}
        self.write_json(run_directory.STATUS, document, schema="status")

    def state(self) -> str | None:
        """The state that ``status.json`` records, or None before the first."""
        return self._recorded_status().get("state")

    def _recorded_status(self) -> dict[str, Any]:
        return files.read_object(self.path(run_directory.STATUS)) if self.exists(run_directory.STATUS) else {}

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Write ``manifest.json``."""
        self.write_json(run_directory.MANIFEST, manifest, schema="manifest")

    def stage_dir(self, index: int, name: str) -> Path:
        """Folder of a stage, made where absent; 0 is the untouched model."""
        folder = self.path(run_directory.stage_folder(index, name))
        if is_main_process():
            folder.mkdir(parents=True, exist_ok=True)
        return folder

    def stage_done(self, index: int, name: str) -> bool:
        """Whether the stage is finished; every file of a finished stage is compared with its hash.

        Raises:
            StoreError: A file of a finished stage is missing or changed; it is named.
        """
        return run_directory.verify_stage(self.directory / run_directory.stage_folder(index, name))

    def finish_stage(self, index: int, name: str) -> None:
        """Make a stage count: hash its files into ``done.json``, then drop its checkpoints within the stage."""
        if not is_main_process():
            return
        folder = self.stage_dir(index, name)
        files.remove_temporaries(folder)
        hashes = files.hash_tree(folder, skip=(MID, BATCHES, ADAPTED, DONE))
        files.flush_tree(folder)
        files.write_json(folder / DONE, _done(hashes))
        _drop_unfinished(folder)

    def stage_adapted(self, index: int, name: str) -> bool:
        """Whether the stage is trained, with all that training left; its measurements may be missing.

        Raises:
            StoreError: A file that training left is missing or changed; it is named.
        """
        folder = self.directory / run_directory.stage_folder(index, name)
        return run_directory.verify_stage(folder, record=ADAPTED)

    def mark_adapted(self, index: int, name: str) -> None:
        """Have what training left on the disk, hash it into ``adapted.json``, and drop the checkpoints on the way."""
        if not is_main_process():
            return
        folder = self.stage_dir(index, name)
        files.remove_temporaries(folder)
        files.flush_tree(folder)
        files.write_json(folder / ADAPTED, _done(files.hash_tree(folder, skip=(MID, WITHIN, BATCHES))))
        shutil.rmtree(folder / MID, ignore_errors=True)

    def reset_measurements(self, index: int, name: str) -> None:
        """Remove from a trained stage all that is not of its training; finished batches stay."""
        folder = self.stage_dir(index, name)
        kept = {*files.read_json(folder / ADAPTED)["files"], ADAPTED, BATCHES}
        for path in folder.rglob("*") if is_main_process() else ():
            relative = path.relative_to(folder)
            if path.is_file() and relative.as_posix() not in kept and relative.parts[0] != WITHIN:
                path.unlink()

    def reset_stage(self, index: int, name: str, keep_mid: bool = True) -> None:
        """Remove what an unfinished stage left; with ``keep_mid`` its checkpoints and evaluations within it stay.

        Raises:
            StoreError: The stage is finished.
        """
        folder = self.stage_dir(index, name)
        if (folder / DONE).is_file():
            raise StoreError(f"{folder} is finished and will not be reset", hint=f"remove {folder} by hand")
        for path in folder.iterdir() if is_main_process() else ():
            if path.is_dir() and not (keep_mid and path.name in (MID, WITHIN)):
                shutil.rmtree(path)
            elif path.is_file() and path.name != BATCHES:
                path.unlink()

    def drop_checkpoint(self, index: int, name: str) -> None:
        """Remove the weights of a finished stage (``keep_checkpoints``); its other files stay verified."""
        folder = self.stage_dir(index, name)
        if not is_main_process() or not (folder / CHECKPOINT).is_dir():
            return
        hashes: dict[str, str] = files.read_json(folder / DONE)["files"]
        kept = {file: digest for file, digest in hashes.items() if not file.startswith(f"{CHECKPOINT}/")}
        files.write_json(folder / DONE, {**_done(kept), "dropped": [CHECKPOINT]})
        # Out of its place at once: half of a checkpoint must not be taken for one.
        removed = (folder / CHECKPOINT).rename(files.temporary_name(folder / CHECKPOINT))
        shutil.rmtree(removed)

    def batches(self, index: int, name: str) -> BatchLedger:
        """Finished batches of a stage's generation and evaluation; ``finish_stage`` removes them."""
        return BatchLedger(self.directory / run_directory.stage_folder(index, name) / BATCHES)

    def mid_checkpoints(
        self, index: int, name: str, every_seconds: float | None, every_steps: int | None
    ) -> StageCheckpointFolder:
        """Checkpoints within a stage; ``finish_stage`` removes them."""
        folder = self.directory / run_directory.stage_folder(index, name) / MID
        return StageCheckpointFolder(folder, every_seconds, every_steps)


def _drop_unfinished(folder: Path) -> None:
    """Remove what a finished stage needs no more."""
    shutil.rmtree(folder / MID, ignore_errors=True)
    for name in (BATCHES, ADAPTED):
        (folder / name).unlink(missing_ok=True)


def _done(hashes: Mapping[str, str]) -> dict[str, Any]:
    return {"schema_version": SCHEMA_VERSION, "files": dict(hashes)}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
