"""What a method's class must be like, and a short real run of it; used by ``validate method``."""

from __future__ import annotations

import inspect
import json
import math
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cl_bench.harness.errors import ClBenchError
from cl_bench.methods.base import Fidelity, Method, MethodSettings, Need

if TYPE_CHECKING:
    from cl_bench.harness.progress import ClosingProgress
    from cl_bench.harness.registry import Registry
    from cl_bench.harness.spec import Execution

_ROWS = 8
"""Rows of each stage and of each evaluation in the short run."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at.

    Attributes:
        name: What was looked at.
        problem: What is wrong, or empty.
    """

    name: str
    problem: str = ""

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problem


def class_checks(method: type[Method]) -> list[Check]:
    """Checks of the class alone; nothing is trained."""
    return [
        Check("fidelity is declared", _no_fidelity(method)),
        Check("needs are known", _unknown_needs(method)),
        Check("the class has a docstring", "" if (method.__doc__ or "").strip() else "it has none"),
        Check("adapt takes (student, stage, context)", _adapt_signature(method)),
        *_settings_checks(getattr(method, "Settings", None)),
    ]


def run_checks(
    name: str, registry: Registry, execution: Execution, progress: ClosingProgress, model: str = "lab-s"
) -> list[Check]:
    """Run a method on a few rows of two lab tasks, twice.

    Args:
        name: Registered name.
        registry: Where it is found.
        execution: Where and how; the output folder is replaced by a temporary one.
        progress: Told about phases.
        model: Student.
    """
    with tempfile.TemporaryDirectory(prefix="cl-bench-validate-") as folder:
        try:
            first, second = (
                _short_run(name, registry, replace(execution, output=Path(folder, part)), progress, model)
                for part in ("first", "second")
            )
        except ClBenchError as error:
            return [Check("a short run in the lab ends", str(error).replace("\n", "; "))]
        except Exception as error:  # the extension's own fault, to be reported and not to end the checks
            return [Check("a short run in the lab ends", f"{type(error).__name__}: {error}")]
        return [Check("a short run in the lab ends"), *_result_checks(first, second)]


@dataclass(frozen=True, slots=True)
class _Short:
    """What is compared of a short run."""

    state: str
    weights: list[dict[str, str]]
    adaptations: list[dict[str, Any]]
    matrix: dict[str, Any]


def _short_run(name: str, registry: Registry, execution: Execution, progress: ClosingProgress, model: str) -> _Short:
    from cl_bench.harness.files import hash_tree
    from cl_bench.harness.request import Request
    from cl_bench.harness.resolve import resolve
    from cl_bench.harness.run_directory import CHECKPOINT
    from cl_bench.harness.runner import run_one
    from cl_bench.harness.store import load_run

    request = Request(
        method=name, sequence="science", profile="lab", model=model, limit=_ROWS, suite="none", order=None
    )
    (spec,) = resolve(request, execution, registry, progress.note)
    short = spec.sequence.model_copy(update={"stages": spec.sequence.stages[:2]})
    spec = spec.model_copy(update={"sequence": short, "tasks": spec.tasks[:2]})
    result = run_one(spec, execution, registry, progress)
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


def _no_fidelity(method: type[Method]) -> str:
    value = getattr(method, "fidelity", None)
    return "" if isinstance(value, Fidelity) else f"fidelity is {value!r}, not a Fidelity"


def _unknown_needs(method: type[Method]) -> str:
    unknown = [need for need in method.needs if not isinstance(need, Need)]
    return f"not a Need: {', '.join(map(repr, unknown))}" if unknown else ""


def _adapt_signature(method: type[Method]) -> str:
    names = [name for name in inspect.signature(method.adapt).parameters if name != "self"]
    return "" if names == ["student", "stage", "context"] else f"it takes ({', '.join(names)})"


def _settings_checks(settings: Any) -> Iterator[Check]:
    if not (isinstance(settings, type) and issubclass(settings, MethodSettings)):
        yield Check("Settings is a MethodSettings class", f"it is {settings!r}")
        return
    yield Check("Settings is a MethodSettings class")
    unexplained = [name for name, field in settings.model_fields.items() if not _explained(field)]
    problem = f"without description, unit or source: {', '.join(unexplained)}" if unexplained else ""
    yield Check("every setting has a description, a unit and a source", problem)
    required = [name for name, field in settings.model_fields.items() if field.is_required()]
    if required:
        yield Check("every setting has a default", f"without default: {', '.join(required)}")
        return
    built = settings()
    again = settings.model_validate(json.loads(built.model_dump_json()))
    yield Check("settings survive a round trip through JSON", "" if built == again else "they come back changed")


def _explained(field: Any) -> bool:
    extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
    return bool(field.description and extra.get("unit") and extra.get("source"))
