"""What two runs of the same specification must share bit for bit."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any


def results_of(directory: Path) -> dict[str, Any]:
    """Hashes of every stage's weights, samples (within it too) and generated data; content of matrix and metrics."""
    patterns = ("checkpoint/*.safetensors", "eval/**/*.jsonl", "within/**/*.jsonl", "data/*", "shift.json", "state.*")
    files = sorted({path for stage in directory.glob("stages/*") for p in patterns for path in stage.glob(p)})
    found: dict[str, Any] = {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files
    }
    for name in ("matrix.json", "metrics.json"):
        found[name] = json.loads((directory / name).read_text())
    for path in sorted(directory.glob("stages/*/adaptation.json")):
        content = json.loads(path.read_text())
        del content["seconds"]
        found[str(path.relative_to(directory))] = content
    return found


def only_run(output: Path) -> Path:
    """The one run directory below an output folder."""
    (spec,) = output.glob("*/*/*/spec.yaml")
    return spec.parent
