"""The short run of a check: the first stages of a sequence on few rows, with several optimizer steps each."""

from __future__ import annotations

from collections.abc import Sequence

from cl_bench.harness.progress import SilentProgress
from cl_bench.harness.registry import Registry
from cl_bench.harness.request import Request
from cl_bench.harness.resolve import resolve
from cl_bench.harness.spec import Execution, RunSpec

_ROWS, _EVALUATED, _BATCH, _EPOCHS = 8, 4, 4, 3


def short_run(
    method: str,
    modifiers: Sequence[str],
    registry: Registry,
    execution: Execution,
    stages: int = 2,
    model: str = "lab-s",
) -> RunSpec:
    """A run on the lab of a few seconds.

    Args:
        method: Method.
        modifiers: Modifiers around it.
        registry: Where they are found.
        execution: Where and how.
        stages: Stages of ``science``.
        model: Student.

    Raises:
        UsageError: An unknown name, or a setting that does not fit.
    """
    fields = registry.method_class(method).Settings.model_fields
    wanted = {"batch_size": _BATCH, "epochs": _EPOCHS}
    request = Request(
        method=method,
        modifiers=tuple(modifiers) or None,
        sequence="science",
        profile="lab",
        model=model,
        limit=_ROWS,
        settings={
            "method": {name: value for name, value in wanted.items() if name in fields},
            "evaluation": {"rows": _EVALUATED, "suite_rows": _EVALUATED},
        },
    )
    (spec,) = resolve(request, execution, registry, SilentProgress(quiet=True).note)
    short = spec.sequence.model_copy(update={"stages": spec.sequence.stages[:stages]})
    return spec.model_copy(update={"sequence": short, "tasks": spec.tasks[:stages]})
