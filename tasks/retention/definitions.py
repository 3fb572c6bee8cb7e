"""lm-eval's task definitions: found by name without indexing all of them, read from its YAML files."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from cl_bench.harness.errors import UnknownNameError, UsageError

REPLACEABLE = (
    "description", "doc_to_choice", "doc_to_target", "doc_to_text", "fewshot_config", "fewshot_delimiter",
    "fewshot_split", "gen_prefix", "generation_kwargs", "target_delimiter", "test_split", "training_split",
    "validation_split",
)  # fmt: skip
"""Keys of a definition that a suite's ``config`` may replace."""


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


def check_replaced(config: Mapping[str, Any], name: str) -> None:
    """Refuse keys of a definition that a suite may not replace: those that name code or data sets.

    Raises:
        UnknownNameError: There is such a key.
    """
    for key in config:
        if key not in REPLACEABLE:
            raise UnknownNameError(f"key of `config` of the benchmark {name}", str(key), REPLACEABLE)


def sandbox_templates() -> None:
    """Have lm-eval render the templates of definitions in jinja's sandbox, where they reach no code."""
    from jinja2.sandbox import SandboxedEnvironment
    from lm_eval import utils

    if not isinstance(utils.env, SandboxedEnvironment):
        # Its own options and filters: a template that is none of code renders to the same text.
        sandboxed = SandboxedEnvironment(
            loader=utils.env.loader,
            undefined=utils.env.undefined,
            keep_trailing_newline=utils.env.keep_trailing_newline,
        )
        sandboxed.filters.update(utils.env.filters)
        utils.env = sandboxed


def _definition(task: str) -> Path:
    import lm_eval

    root = Path(lm_eval.__path__[0]) / "tasks"
    for path in (root / f"{task}.yaml", root / task, root / task / f"{task}.yaml", root / task / "default.yaml"):
        if path.is_file():
            # A definition can name functions, which are imported: only those of lm-eval itself are taken.
            if not path.resolve().is_relative_to(root.resolve()):
                raise UsageError(f"lm-eval's task {task!r} is a file outside lm-eval", hint="name a task of lm-eval")
            return path
    for path in sorted(root.rglob("*.yaml")):
        if f"task: {task}\n" in path.read_text(encoding="utf-8"):
            return path
    raise UsageError(f"lm-eval {lm_eval_version()} has no task {task!r}", hint="correct `task` in the suite's file")
