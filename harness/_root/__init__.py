"""cl-bench: what a language model learns and what it forgets, stage after stage.

The names below are the public API that plug-ins import and that semantic versioning covers. They load lazily, so that
``import cl_bench`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cl_bench.harness.runner import run_one as run
    from cl_bench.harness.store import load_run
    from cl_bench.methods.base import Adaptation, Method, MethodSettings, Modifier
    from cl_bench.tasks.base import Example, Score, Task

try:
    __version__ = version("cl-bench")
except PackageNotFoundError:  # the tree is on the path without having been installed
    __version__ = "0+unknown"

_EXPORTS = {
    "Adaptation": ("cl_bench.methods.base", "Adaptation"),
    "Example": ("cl_bench.tasks.base", "Example"),
    "Method": ("cl_bench.methods.base", "Method"),
    "MethodSettings": ("cl_bench.methods.base", "MethodSettings"),
    "Modifier": ("cl_bench.methods.base", "Modifier"),
    "Score": ("cl_bench.tasks.base", "Score"),
    "Task": ("cl_bench.tasks.base", "Task"),
    "load_run": ("cl_bench.harness.store", "load_run"),
    "run": ("cl_bench.harness.runner", "run_one"),
}

__all__ = ["Adaptation", "Example", "Method", "MethodSettings", "Modifier", "Score", "Task", "load_run", "run"]


def __getattr__(name: str) -> Any:
    """Load a public name on first use."""
    if name not in _EXPORTS:
        raise AttributeError(f"module 'cl_bench' has no attribute {name!r}")
    module, attribute = _EXPORTS[name]
    return getattr(import_module(module), attribute)
