"""Importing what plug-ins consist of: Python files that define one class each, and entry points."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any

from cl_bench.harness.errors import ClBenchError, UsageError, words_of


@dataclass(frozen=True, slots=True)
class Source:
    """Where a registered thing comes from.

    Attributes:
        origin: Words for people: "built in", a folder, or a distribution's name.
        path: Its file, or None for an entry point.
        module: Import name of a built-in Python file, else None.
        entry_point: The entry point, or None for a file.
    """

    origin: str
    path: Path | None = None
    module: str | None = None
    entry_point: EntryPoint | None = None


def load_module(source: Source) -> ModuleType:
    """Import the Python file of a source.

    Raises:
        UsageError: The file raises while it is imported.
    """
    with foreign_code(f"cannot import {source.path or source.module}"):
        if source.module is not None:
            return import_module(source.module)
        assert source.path is not None
        return import_file(source.path)


@contextmanager
def foreign_code(what: str) -> Iterator[None]:
    """Make a usage error of whatever somebody else's code raises, leaving the program included: it is its own fault.

    Args:
        what: What does not work then, as one sentence that names the file or the plug-in.

    Raises:
        UsageError: The code raised; with ``words_of`` it. Errors of this project and Ctrl-C stay what they are.
    """
    try:
        yield
    except (ClBenchError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise UsageError(what, why=words_of(error)) from error


def import_file(path: Path) -> ModuleType:
    """Import a Python file by its path, once per content."""
    path = path.resolve()
    digest = hashlib.sha256(str(path).encode() + b"\0" + path.read_bytes()).hexdigest()[:12]
    name = f"_cl_bench_included_{digest}_{path.stem}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"cannot import {path}", why="not a Python file")
    module = importlib.util.module_from_spec(spec)
    # Pydantic looks annotations up in sys.modules, so the module must be there before it is executed.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def single_class(module: ModuleType, base: type, name: str) -> Any:
    """The one concrete subclass of ``base`` that a module defines.

    Raises:
        UsageError: There is none or more than one, it is abstract, or its ``name`` is not the file's.
    """
    defined = [
        item
        for item in vars(module).values()
        if isinstance(item, type) and issubclass(item, base) and item.__module__ == module.__name__
    ]
    found = [item for item in defined if not inspect.isabstract(item)]
    kind = base.__name__
    if len(found) != 1:
        abstract = sorted({method for item in defined for method in getattr(item, "__abstractmethods__", ())})
        why = f"found {len(found)}: {', '.join(item.__name__ for item in found) or 'none'}"
        if not found and abstract:
            why = f"{defined[0].__name__} does not define {', '.join(abstract)}"
        raise UsageError(f"{module.__file__} must define exactly one {kind}", why=why)
    declared = getattr(found[0], "name", None)
    if declared != name:
        raise UsageError(
            f"{module.__file__}: the {kind.lower()} is called {declared!r}",
            why="a file and what it defines carry the same name, hyphens for underscores",
            hint=f"set name = {name!r} or rename the file",
        )
    return found[0]


def load_entry_point(source: Source, name: str) -> Any:
    """Load what an entry point stands for; raises ``UsageError`` where its package cannot be imported."""
    assert source.entry_point is not None
    loader: Callable[[], Any] = source.entry_point.load
    with foreign_code(f"cannot load {name!r} of {source.origin}"):
        return loader()


def entry_point_file(source: Source) -> Path | None:
    """The Python file of an entry point's module, or None; imports no more than the packages around it."""
    if source.entry_point is None:
        return None
    try:
        spec = importlib.util.find_spec(source.entry_point.module)
    except Exception:  # whatever a package raises while it is imported is told when it is asked for
        return None
    return Path(spec.origin) if spec is not None and spec.origin is not None else None


def kind_by_content(path: Path) -> str | None:
    """Which kind a loose Python file holds, read from its class statements; None where it holds neither."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (SyntaxError, ValueError, RecursionError, MemoryError, OSError):  # MemoryError: brackets in brackets
        # Counted as a method, so that naming it gives the import error instead of "unknown".
        return "methods"
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and _declared_name(node) == name_of(path):
            bases = " ".join(ast.unparse(base) for base in node.bases)
            return "modifiers" if "Modifier" in bases else "methods"
    return None


def _declared_name(node: ast.ClassDef) -> str | None:
    for item in node.body:
        targets: list[ast.expr] = []
        if isinstance(item, ast.Assign):
            targets = item.targets
        elif isinstance(item, ast.AnnAssign):
            targets = [item.target]
        for target in targets:
            value = getattr(item, "value", None)
            if isinstance(target, ast.Name) and target.id == "name" and isinstance(value, ast.Constant):
                return str(value.value)
    return None


def name_of(path: Path) -> str:
    """Name that a file stands for: hyphens for underscores."""
    return path.stem.replace("_", "-")
