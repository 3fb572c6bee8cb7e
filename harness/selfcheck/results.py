"""What two runs of the same specification must share bit for bit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cl_bench.harness.files import content_hash, file_hash, read_json
from cl_bench.harness.run_directory import (
    ADAPTATION,
    CHECKPOINT,
    COLLAPSE,
    CONTAMINATION,
    COST,
    MATRIX,
    METRICS,
    SHIFT,
    STAGES,
    weights_dropped,
)

_FILES = (f"{CHECKPOINT}/*", "eval/**/*.jsonl", "within/**/*.jsonl", "data/*", SHIFT, "state.*")
"""Files of a stage that are compared by their bytes: weights, answers, training data, measurements, states."""
_DOCUMENTS = (ADAPTATION, COLLAPSE, CONTAMINATION, "eval/*.json", "eval/**/results.json", "within/**/*.json")
"""Documents of a stage that are compared by their content without what a clock decides."""
_RUN_DOCUMENTS = (MATRIX, METRICS, CONTAMINATION, COST)
_OF_THIS_ONCE = frozenset({"seconds", "peak_memory_bytes"})


def results_of(directory: Path) -> dict[str, str]:
    """Hashes of all that a run came to, by path relative to the run directory.

    Bytes of every stage's weights, answers (within it too), training data, shift and states; content of the documents,
    without seconds and memory.
    """
    stages = sorted(directory.glob(f"{STAGES}/*"))
    documents = {directory / name for name in _RUN_DOCUMENTS}
    documents |= {path for stage in stages for pattern in _DOCUMENTS for path in stage.glob(pattern)}
    files = {path for stage in stages for pattern in _FILES for path in stage.glob(pattern)} - documents
    found = {_name(path, directory): file_hash(path) for path in sorted(files) if path.is_file()}
    for path in sorted(documents):
        if path.is_file():
            found[_name(path, directory)] = content_hash(_lasting(read_json(path)))
    return found


def first_difference(one: Path, other: Path) -> str:
    """The first thing that two run directories do not share, in words; nothing where they share all.

    Weights that one of them did not keep (``--keep-checkpoints``) are not compared.
    """
    return compared(one, other)[0]


def compared(one: Path, other: Path) -> tuple[str, int]:
    """``first_difference``, and the number of files that the second run has."""
    found, expected = results_of(one), results_of(other)
    return _first(found, expected, tuple({*_dropped(one), *_dropped(other)})), len(expected)


def _first(found: Mapping[str, str], expected: Mapping[str, str], dropped: tuple[str, ...]) -> str:
    for name in sorted(found.keys() | expected.keys()):
        if dropped and name.startswith(dropped):
            continue
        if name not in found:
            return f"{name} is missing"
        if name not in expected:
            return f"{name} is too much"
        if found[name] != expected[name]:
            return f"{name} differs"
    return ""


def _dropped(directory: Path) -> Iterator[str]:
    for stage in directory.glob(f"{STAGES}/*"):
        if weights_dropped(stage):
            yield f"{_name(stage, directory)}/{CHECKPOINT}/"


def _name(path: Path, directory: Path) -> str:
    return path.relative_to(directory).as_posix()


def _lasting(document: Any) -> Any:
    if isinstance(document, dict):
        return {name: _lasting(value) for name, value in document.items() if name not in _OF_THIS_ONCE}
    return [_lasting(value) for value in document] if isinstance(document, list) else document
