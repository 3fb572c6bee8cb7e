"""What two runs of the same specification must share bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cl_bench.harness.files import content_hash, file_hash, read_json
from cl_bench.harness.run_directory import ADAPTATION, MATRIX, METRICS, SHIFT, STAGES

_FILES = ("checkpoint/*.safetensors", "eval/**/*.jsonl", "within/**/*.jsonl", "data/*", SHIFT, "state.*")
"""Files of a stage that are compared by their bytes: weights, answers, training data, measurements, states."""


def results_of(directory: Path) -> dict[str, str]:
    """Hashes of all that a run came to, by path relative to the run directory.

    Bytes of every stage's weights, answers (within it too), training data, shift and states; content of matrix, metrics
    and adaptations, without the seconds they took.
    """
    stages = sorted(directory.glob(f"{STAGES}/*"))
    files = {path for stage in stages for pattern in _FILES for path in stage.glob(pattern) if path.is_file()}
    found = {path.relative_to(directory).as_posix(): file_hash(path) for path in sorted(files)}
    documents = [directory / MATRIX, directory / METRICS, *(stage / ADAPTATION for stage in stages)]
    for path in documents:
        if path.is_file():
            found[path.relative_to(directory).as_posix()] = content_hash(_without_seconds(read_json(path)))
    return found


def first_difference(one: Path, other: Path) -> str:
    """The first thing that two run directories do not share, in words; nothing where they share all."""
    found, expected = results_of(one), results_of(other)
    for name in sorted(found.keys() | expected.keys()):
        if name not in found:
            return f"{name} is missing"
        if name not in expected:
            return f"{name} is too much"
        if found[name] != expected[name]:
            return f"{name} differs"
    return ""


def _without_seconds(document: Any) -> Any:
    return {name: value for name, value in document.items() if name != "seconds"}
