"""What can be named on the command line: found by listing files, by entry points and below ``--include-path``."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points, packages_distributions, version
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from cl_bench.harness.errors import ClBenchError, UnknownNameError, UsageError

if TYPE_CHECKING:
    from cl_bench.methods.base import Method, Modifier
    from cl_bench.sequences.loader import SequenceFile
    from cl_bench.tasks.base import Task
    from cl_bench.tasks.sources.base import DataOptions

KINDS = ("methods", "modifiers", "tasks", "sequences", "suites")
_PACKAGE_ROOT = Path(__file__).resolve().parent.parent
# Folder of each kind's files, in the installed package and in the tree alike, and the files' ending.
_BUILT_IN = {
    "methods": ("methods", ".py"),
    "modifiers": ("methods/modifiers", ".py"),
    "tasks": ("tasks", ".yaml"),
    "sequences": ("sequences", ".yaml"),
    "suites": ("tasks/retention", ".yaml"),
}
_NOT_PLUGINS = {"__init__", "base", "conftest"}


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


class Registry:
    """Names of methods, modifiers, tasks, sequences and suites, and what they stand for.

    Names are found without importing anything; a class is imported when it is asked for.
    """

    def __init__(self, include_paths: Sequence[Path] = ()) -> None:
        """Build a registry.

        Args:
            include_paths: Folders with ``methods/*.py``, ``modifiers/*.py``, ``tasks/*.yaml``, ``sequences/*.yaml``,
                ``suites/*.yaml``, or method and modifier files lying directly in them.

        Raises:
            UsageError: A folder is absent, or two sources define the same name.
        """
        self.include_paths = tuple(Path(path) for path in include_paths)
        for path in self.include_paths:
            if not path.is_dir():
                raise UsageError(f"--include-path {path} is not a folder")
        self._sources: dict[str, dict[str, Source]] = {kind: {} for kind in KINDS}
        self._classes: dict[tuple[str, str], Any] = {}
        for kind in KINDS:
            for name, source in self._find(kind):
                self._add(kind, name, source)

    def names(self, kind: str) -> list[str]:
        """Sorted names of one of ``KINDS``."""
        return sorted(self._sources[kind])

    def methods(self) -> list[str]:
        """Names of methods."""
        return self.names("methods")

    def modifiers(self) -> list[str]:
        """Names of modifiers."""
        return self.names("modifiers")

    def tasks(self) -> list[str]:
        """Names of tasks."""
        return self.names("tasks")

    def sequences(self) -> list[str]:
        """Names of sequences."""
        return self.names("sequences")

    def suites(self) -> list[str]:
        """Names of retention suites."""
        return self.names("suites")

    def source(self, kind: str, name: str) -> Source:
        """Where something comes from.

        Raises:
            UnknownNameError: Nothing has that name.
        """
        found = self._sources[kind].get(name)
        if found is None:
            raise UnknownNameError(kind.removesuffix("s"), name, self._sources[kind])
        return found

    def method_class(self, name: str) -> type[Method]:
        """The method of that name.

        Raises:
            UnknownNameError: No such method.
            UsageError: Its file cannot be imported or does not hold exactly one method of that name.
        """
        from cl_bench.methods.base import Method

        found: type[Method] = self._class("methods", name, Method)
        return found

    def modifier_class(self, name: str) -> type[Modifier]:
        """The modifier of that name; raises as ``method_class`` does."""
        from cl_bench.methods.base import Modifier

        found: type[Modifier] = self._class("modifiers", name, Modifier)
        return found

    def task(self, name: str, options: DataOptions) -> Task:
        """Load a task.

        Raises:
            UnknownNameError: No such task.
            DataError: Its data are absent or broken.
        """
        from cl_bench.tasks.loader import load_task

        source = self.source("tasks", name)
        target = _loaded(source, name) if source.entry_point is not None else source.path
        if isinstance(target, str | Path):
            return load_task(Path(target), options)
        task: Task = target(options)
        return task

    def sequence(self, name: str) -> SequenceFile:
        """Load a sequence file.

        Raises:
            UnknownNameError: No such sequence.
            UsageError: The file is broken.
        """
        from cl_bench.sequences.loader import load_sequence

        return load_sequence(self._file("sequences", name))

    def suite_path(self, name: str) -> Path:
        """File of the retention suite of that name; raises ``UnknownNameError``."""
        return self._file("suites", name)

    def identity(self, kind: str, name: str) -> str:
        """Version of the distribution and hash of the source of a method or modifier: enters the run's hash."""
        source = self.source(kind, name)
        found = self.method_class(name) if kind == "methods" else self.modifier_class(name)
        path = Path(inspect.getfile(found))
        digest = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        return f"{_release(source, found)}+{digest}"

    def _find(self, kind: str) -> Iterator[tuple[str, Source]]:
        folder, ending = _BUILT_IN[kind]
        for path in _files(_PACKAGE_ROOT / folder, ending):
            module = f"cl_bench.{folder.replace('/', '.')}.{path.stem}" if ending == ".py" else None
            yield _name_of(path), Source("built in", path, module)
        for point in entry_points(group=f"cl_bench.{kind}"):
            yield point.name, Source(point.dist.name if point.dist else point.value, entry_point=point)
        for included in self.include_paths:
            for path in _included_files(included, kind, ending):
                yield _name_of(path), Source(str(included), path)

    def _add(self, kind: str, name: str, source: Source) -> None:
        other = self._sources[kind].get(name)
        if other is not None and other.path is not None and other.path == source.path:
            return
        if other is not None:
            raise UsageError(
                f"two {kind} are called {name!r}",
                why=f"one is {other.path or other.origin}, the other {source.path or source.origin}",
                hint="rename one of them",
            )
        self._sources[kind][name] = source

    def _file(self, kind: str, name: str) -> Path:
        source = self.source(kind, name)
        return source.path if source.path is not None else Path(_loaded(source, name))

    def _class(self, kind: str, name: str, base: type) -> Any:
        if (kind, name) not in self._classes:
            source = self.source(kind, name)
            if source.entry_point is not None:
                found = _loaded(source, name)
                if not (isinstance(found, type) and issubclass(found, base)):
                    raise UsageError(f"entry point {name!r} of {source.origin} is not a {base.__name__} class")
            else:
                found = single_class(load_module(source), base, name)
            self._classes[kind, name] = found
        return self._classes[kind, name]


def load_module(source: Source) -> ModuleType:
    """Import the Python file of a source.

    Raises:
        UsageError: The file raises while it is imported.
    """
    try:
        if source.module is not None:
            return import_module(source.module)
        assert source.path is not None
        return import_file(source.path)
    except ClBenchError:
        raise
    except Exception as error:
        where = source.path or source.module
        raise UsageError(f"cannot import {where}", why=f"{type(error).__name__}: {error}") from error


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


def _files(folder: Path, ending: str) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.glob(f"*{ending}") if path.stem not in _NOT_PLUGINS and path.is_file())


def _included_files(folder: Path, kind: str, ending: str) -> list[Path]:
    files = _files(folder / kind, ending)
    if ending == ".py":
        files += [path for path in _files(folder, ending) if _kind_by_content(path) == kind]
    return files


def _kind_by_content(path: Path) -> str | None:
    """Which kind a loose Python file holds, read from its class statements; None where it holds neither."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (SyntaxError, UnicodeDecodeError):
        # Counted as a method, so that naming it gives the import error instead of "unknown".
        return "methods"
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and _declared_name(node) == _name_of(path):
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


def _name_of(path: Path) -> str:
    return path.stem.replace("_", "-")


def _loaded(source: Source, name: str) -> Any:
    assert source.entry_point is not None
    loader: Callable[[], Any] = source.entry_point.load
    try:
        return loader()
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        raise UsageError(f"cannot load {name!r} of {source.origin}", why=why) from error


def _release(source: Source, found: type) -> str:
    if source.module is not None:
        from cl_bench import __version__

        return __version__
    if source.entry_point is None:
        return "file"
    if source.entry_point.dist is not None:
        return str(source.entry_point.dist.version)
    package = found.__module__.partition(".")[0]
    distributions = packages_distributions().get(package, [])
    return version(distributions[0]) if distributions else "unknown"
