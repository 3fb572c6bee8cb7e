"""lm-eval's task definitions: found by name without indexing all of them, read from its YAML files."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any

from cl_bench.harness.errors import UsageError


def lm_eval_version() -> str:
    """Version of the installed lm-eval."""
    return version("lm_eval")


def read_definition(task: str, *, functions: bool = True) -> dict[str, Any]:
    """A task definition with all that it includes.

    Args:
        task: Name of lm-eval's task, or the file of its definition below ``lm_eval/tasks``.
        functions: Whether the Python functions that it names are imported. Some import what needs the network; then
            they are left as text, for the caller to replace.

    Raises:
        UsageError: The installed lm-eval has no such task, or a package that it needs is absent.
    """
    from lm_eval.tasks._yaml_loader import load_yaml

    try:
        definition: dict[str, Any] = load_yaml(_definition(task), resolve_func=functions)
    except ImportError as error:
        raise UsageError(
            f"lm-eval's task {task!r} cannot be imported", str(error), "pip install 'lm_eval[ifeval,math]'"
        ) from error
    for name in ("tag", "group", "task_list"):
        definition.pop(name, None)
    return definition


def _definition(task: str) -> Path:
    import lm_eval

    root = Path(lm_eval.__path__[0]) / "tasks"
    for path in (root / f"{task}.yaml", root / task, root / task / f"{task}.yaml", root / task / "default.yaml"):
        if path.is_file():
            return path
    for path in sorted(root.rglob("*.yaml")):
        if f"task: {task}\n" in path.read_text(encoding="utf-8"):
            return path
    raise UsageError(f"lm-eval {lm_eval_version()} has no task {task!r}", hint="correct `task` in the suite's file")
