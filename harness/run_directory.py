"""Where things are in a run directory, and reading one back: checked against its name and its hashes."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cl_bench.harness.errors import ClBenchError, NotARunError, StoreError
from cl_bench.harness.files import first_damaged, read_json, read_jsonl, read_object
from cl_bench.harness.liveness import as_it_is
from cl_bench.harness.measure.matrix import Matrix
from cl_bench.harness.planned_stages import planned_rows
from cl_bench.harness.spec import RunSpec

SPEC = "spec.yaml"
MANIFEST = "manifest.json"
STATUS = "status.json"
LOCK = ".lock"
"""Held by the process that works on the run."""
EVENTS = "events.jsonl"
MATRIX = "matrix.json"
METRICS = "metrics.json"
REPORT = "report.md"
DONE = "done.json"
ADAPTATION = "adaptation.json"
SHIFT = "shift.json"
COLLAPSE = "collapse.json"
COST = "cost.json"
EVALUATION_COST = "eval/tokens.json"
CONTAMINATION = "contamination.json"
MID = "mid"
ADAPTED = "adapted.json"
"""Hashes of what training left, of a stage that is not measured yet."""
BATCHES = "batches.jsonl"
"""Finished batches of a stage that goes on."""
STAGES = "stages"
WITHIN = "within"
CHECKPOINT = "checkpoint"
_AGAIN = "again"
_NAME_END = re.compile(r"-[0-9a-f]{8}$")
"""How the names of run directories end."""
ENDED = ("done", "diverged")
"""States of a run that came to its end."""
SCHEMA_VERSION = 1
"""``schema_version`` of the JSON documents that this version writes."""


def run_path(output: Path, spec: RunSpec, attempt: int = 1) -> Path:
    """``<output>/<sequence>/<method>/<model>-<order>-s<seed>-<hash8>`` of a spec; ``-again2`` stands before the hash.

    Args:
        output: Folder of runs.
        spec: The run.
        attempt: Which of several runs of the same spec, from 1.
    """
    again = f"-{_AGAIN}{attempt}" if attempt > 1 else ""
    leaf = f"{slug(spec.model.name)}-{slug(spec.sequence.order)}-s{spec.seed}{again}-{spec.digest()[:8]}"
    return output / slug(spec.sequence.name) / slug(method_label(spec)) / leaf


def runs_below(path: Path) -> list[Path]:
    """The run that a path is or lies in; else the runs below it, sorted.

    A folder around them that holds a saved specification, as ``--save-spec`` leaves it, is no run.
    """
    around = [folder for folder in (path, *path.absolute().parents) if (folder / SPEC).is_file()]
    named = [folder for folder in around if _NAME_END.search(folder.resolve().name)]
    if named or not path.is_dir():
        return named[:1]
    below = [spec.parent for spec in sorted(path.rglob(SPEC)) if spec.is_file()]
    return [run for run in below if run != path] or below


def no_run_at(place: object) -> NotARunError:
    """The error for a place where ``runs_below`` finds nothing."""
    return NotARunError(f"no run at {place}", f"neither it nor a folder below it has a {SPEC}", "see cl-bench run")


def read_or_reason(directory: Path, read: Callable[[Path], RunView]) -> RunView | str:
    """A run, or why it cannot be read: one of many hides no other."""
    try:
        return read(directory)
    except ClBenchError as error:
        return ": ".join(part for part in (error.what, error.why) if part)
    except OSError as error:
        return f"{error.filename or directory}: {error.strerror or error}"


def attempt_of(directory: Path) -> int:
    """Which of several runs of the same spec a directory holds, by its name."""
    found = re.search(rf"-{_AGAIN}(\d+)-[0-9a-f]{{8}}$", directory.name)
    return int(found[1]) if found else 1


def next_attempt(output: Path, spec: RunSpec) -> int:
    """The first attempt that has no directory yet."""
    return next(number for number in itertools.count(1) if not run_path(output, spec, number).exists())


def method_label(spec: RunSpec) -> str:
    """Name of what is run: ``sft``, ``sft+replay``, ``joint-sft``, ``base``."""
    if spec.method is None:
        return "base"
    label = "+".join((spec.method.name, *(modifier.name for modifier in spec.modifiers)))
    if spec.branch is not None:
        label = f"{label}-after-{spec.branch.method}-{spec.branch.row}"
    return f"joint-{label}" if spec.bound == "joint" else label


def stage_folder(index: int, name: str) -> str:
    """``stages/01-chemistry``; index 0 is the untouched model. Names are unique, so folders are."""
    return f"{STAGES}/{index:02d}-{slug(name)}"


def slug(name: str) -> str:
    """A name as part of a path: letters, digits and ``. _ + = -`` kept, everything else a hyphen."""
    return re.sub(r"[^A-Za-z0-9._+=-]+", "-", name).strip("-.") or "unnamed"


def read_spec(directory: Path) -> RunSpec:
    """The spec of a run directory, after its hash was compared with the directory's name.

    Raises:
        NotARunError: There is no spec.
        StoreError: A spec that cannot be read, or one that does not belong to this directory.
    """
    path = directory / SPEC
    try:
        spec = RunSpec.from_yaml(path.read_text(encoding="utf-8"), str(path))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotARunError(f"{directory} is not a run directory", f"it has no {SPEC}", "see cl-bench run") from error
    except (ClBenchError, UnicodeDecodeError) as error:
        raise StoreError(
            f"{path} cannot be read", getattr(error, "what", str(error)), "run the spec again into another --output"
        ) from error
    suffix = directory.resolve().name.rpartition("-")[2]
    if spec.digest()[:8] != suffix:
        raise StoreError(
            f"{directory} does not belong to the spec in it",
            f"{SPEC} hashes to {spec.digest()[:8]}, the directory's name ends in {suffix}",
            "keep the directory's name and its spec.yaml as they were; run a changed spec with cl-bench run SPEC.yaml",
        )
    return spec


def verify_stage(folder: Path, weights: bool = True, record: str = DONE) -> bool:
    """Whether a stage is finished and intact.

    Args:
        folder: The stage's folder.
        weights: Verify the checkpoint too.
        record: The file with the hashes: ``done.json``, or ``adapted.json`` of a stage that was trained.

    Returns:
        False where the stage has no such file; True where it has one and every file has its recorded hash.

    Raises:
        StoreError: A file of a finished stage is missing or changed; it is named.
    """
    path = folder / record
    if not path.is_file():
        return False
    hashes = read_object(path).get("files")
    if not isinstance(hashes, dict):
        raise StoreError(f"{path} is damaged", "it lists no files", f"remove {folder} and resume the run")
    wanted = {file: digest for file, digest in hashes.items() if weights or not file.startswith(f"{CHECKPOINT}/")}
    damaged = first_damaged(folder, wanted)
    if damaged is not None:
        file, why = damaged
        raise StoreError(f"{file} is damaged", why, f"remove {folder} and the stages after it, then resume the run")
    return True


def refuse_links(directory: Path) -> None:
    """Refuse a run directory with symbolic links: what a run removes and writes would be somewhere else.

    Raises:
        StoreError: There is one; it is named.
    """
    for folder, folders, files in os.walk(directory):
        for path in (Path(folder, name) for name in (*folders, *files)):
            if path.is_symlink():
                why, hint = "a run works within its own directory alone", "put what it points at in its place"
                raise StoreError(f"{path} is a symbolic link", why, hint)


def stage_weights(folder: Path, row: str) -> Path:
    """A finished stage's checkpoint.

    Args:
        folder: The stage's folder.
        row: Its row.

    Raises:
        StoreError: The run did not keep it.
    """
    if weights_dropped(folder) or not (folder / CHECKPOINT).is_dir():
        raise StoreError(
            f"the weights after stage {row} are gone",
            f"{folder / CHECKPOINT} was removed, as --keep-checkpoints last and none do",
            "run the same specification with --fresh --keep-checkpoints all",
        )
    return folder / CHECKPOINT


def weights_dropped(folder: Path) -> bool:
    """Whether a finished stage's weights were removed on purpose; what may be left of them is not to be read."""
    return (folder / DONE).is_file() and CHECKPOINT in read_object(folder / DONE).get("dropped", ())


@dataclass(frozen=True, slots=True)
class RunView:
    """A run directory for reading.

    Attributes:
        directory: Where it is.
        spec: What was run.
        status: Content of ``status.json``; "interrupted" where it says "running" and nobody works on the run.
        matrix: Accuracies by row and column; without rows where nothing was evaluated yet.
        metrics: Content of ``metrics.json``; empty before the run's end.
        manifest: Content of ``manifest.json``.
        stages: Folders of the finished stages by row name, in order; ``base`` first.
    """

    directory: Path
    spec: RunSpec
    status: Mapping[str, Any]
    matrix: Matrix
    metrics: Mapping[str, Any]
    manifest: Mapping[str, Any]
    stages: Mapping[str, Path]

    def adaptations(self) -> dict[str, dict[str, Any]]:
        """Content of ``adaptation.json`` by stage, for the stages that trained."""
        return self._by_stage(ADAPTATION)

    def signs_of_collapse(self) -> dict[str, list[str]]:
        """Signs of collapse by stage; empty lists where there are none."""
        return {row: found["signs"] for row, found in self._by_stage(COLLAPSE).items()}

    def shifts(self) -> dict[str, dict[str, Any]]:
        """Content of ``shift.json`` by stage, where it was measured."""
        return self._by_stage(SHIFT)

    def evaluation_costs(self) -> dict[str, dict[str, Any]]:
        """What evaluating each finished row took: ``generated_tokens, computed_tokens, flops``."""
        return self._by_stage(EVALUATION_COST)

    def samples(self, row: str, column: str) -> Iterator[dict[str, Any]]:
        """Rows of one cell's ``samples.jsonl``.

        Raises:
            StoreError: The stage is not finished, or the cell has no samples.
        """
        if row not in self.stages:
            raise StoreError(f"no finished stage {row!r} in {self.directory}", f"finished: {', '.join(self.stages)}")
        return read_jsonl(self.stages[row] / "eval" / column / "samples.jsonl")

    def _by_stage(self, name: str) -> dict[str, dict[str, Any]]:
        return {row: read_json(folder / name) for row, folder in self.stages.items() if (folder / name).is_file()}


def load_run(directory: Path, verify: bool = True, weights: bool = False) -> RunView:
    """Read a run directory.

    Args:
        directory: The run directory.
        verify: Compare the files of finished stages with their recorded hashes.
        weights: The checkpoints too, which a view does not read and which can be gigabytes.

    Raises:
        NotARunError: The directory is not a run.
        StoreError: It is damaged, or does not belong to its spec.
    """
    spec = read_spec(directory)
    stages: dict[str, Path] = {}
    for index, name in enumerate(planned_rows(spec)):
        folder = directory / stage_folder(index, name)
        if verify_stage(folder, weights) if verify else (folder / DONE).is_file():
            stages[name] = folder
    matrix_path = directory / MATRIX
    return RunView(
        directory=directory,
        spec=spec,
        status=as_it_is(_optional(directory / STATUS), directory / LOCK),
        matrix=read_matrix(matrix_path) if matrix_path.is_file() else Matrix(()),
        metrics=_optional(directory / METRICS),
        manifest=_optional(directory / MANIFEST),
        stages=stages,
    )


def read_matrix(path: Path) -> Matrix:
    """A run's ``matrix.json``. Raises ``StoreError`` where it is absent or damaged."""
    return Matrix.from_json(read_object(path))


def _optional(path: Path) -> dict[str, Any]:
    return read_object(path) if path.is_file() else {}
