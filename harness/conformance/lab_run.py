"""A short run in the lab, made twice: the last check of ``validate method`` and ``validate modifier``."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cl_bench.harness.conformance.check import Check, raised
from cl_bench.harness.errors import ClBenchError

if TYPE_CHECKING:
    from cl_bench.harness.progress import ClosingProgress
    from cl_bench.harness.registry import Registry
    from cl_bench.harness.request import Request
    from cl_bench.harness.spec import Execution

_ROWS = 8
"""Rows of each stage and of each evaluation in the short run."""


def lab_checks(
    method: str,
    registry: Registry,
    execution: Execution,
    progress: ClosingProgress,
    modifier: str | None = None,
    model: str = "lab-s",
) -> list[Check]:
    """Run on a few rows of two lab tasks, twice.

    Args:
        method: Registered name.
        registry: Where it is found.
        execution: Where and how; the output folder is replaced by a temporary one.
        progress: Told about phases.
        modifier: Registered name of a modifier beside the method, or None.
        model: Student.
    """
    from cl_bench.harness.request import Request

    request = Request(
        method=method, modifiers=(modifier,) if modifier else None, sequence="science", profile="lab", model=model,
        limit=_ROWS, suite="none",
    )  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="cl-bench-validate-") as folder:
        try:
            found = []
            for part in ("first", "second"):
                progress.phase(f"{part} of two short runs in the lab")
                found.append(_short_run(request, registry, replace(execution, output=Path(folder, part))))
        except ClBenchError as error:
            return [Check("a short run in the lab ends", str(error).replace("\n", "; "))]
        except (Exception, SystemExit) as error:  # the extension's own fault, to be reported and not to end the checks
            tried = registry.modifier_class(modifier) if modifier else registry.method_class(method)
            return [Check("a short run in the lab ends", raised(error, tried))]
        return [Check("a short run in the lab ends"), *_result_checks(*found)]


@dataclass(frozen=True, slots=True)
class _Short:
    """What is compared of a short run."""

    state: str
    weights: list[dict[str, str]]
    adaptations: list[dict[str, Any]]
    matrix: dict[str, Any]


def _short_run(request: Request, registry: Registry, execution: Execution) -> _Short:
    from cl_bench.harness.files import hash_tree
    from cl_bench.harness.progress import SilentProgress
    from cl_bench.harness.resolve import resolve
    from cl_bench.harness.run_directory import CHECKPOINT
    from cl_bench.harness.runner import run_one
    from cl_bench.harness.store import load_run

    # What eight rows teach is no news: a run's warnings about it would only alarm.
    silent = SilentProgress(quiet=True)
    (spec,) = resolve(request, execution, registry, silent.note)
    short = spec.sequence.model_copy(update={"stages": spec.sequence.stages[:2]})
    spec = spec.model_copy(update={"sequence": short, "tasks": spec.tasks[:2]})
    result = run_one(spec, execution, registry, silent)
    view = load_run(result.directory)
    stages = [folder for row, folder in view.stages.items() if row != "base"]
    weights = [
        {file: digest for file, digest in hash_tree(folder / CHECKPOINT).items() if file.endswith(".safetensors")}
        for folder in stages
    ]
    return _Short(result.status, weights, list(view.adaptations().values()), view.matrix.to_json())


def _result_checks(first: _Short, second: _Short) -> Iterator[Check]:
    yield Check("it does not diverge", "" if first.state == "done" else f"the run ended {first.state}")
    steps = [adaptation.get("steps", 0) for adaptation in first.adaptations]
    yield Check("every stage reports its steps", "" if steps and all(steps) else f"steps by stage: {steps}")
    changed = len({json.dumps(weights) for weights in first.weights}) == len(first.weights)
    yield Check("every stage changes the weights", "" if changed else "two stages end with the same weights")
    losses = [entry.get("loss", 0.0) for adaptation in first.adaptations for entry in adaptation.get("logs", [])]
    yield Check("losses are finite", "" if all(math.isfinite(loss) for loss in losses) else "a loss is not finite")
    same = first.weights == second.weights and first.matrix == second.matrix
    yield Check("the same run twice is equal bit for bit", "" if same else "weights or matrix differ")
