"""What can be named on the command line: found by listing files, by entry points and below ``--include-path``."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cl_bench.harness.errors import UnknownNameError, UsageError
from cl_bench.harness.plugins import (
    Source,
    entry_point_file,
    foreign_code,
    kind_by_content,
    load_entry_point,
    load_module,
    name_of,
    single_class,
)

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
_OPTIONS = {"method": "--method", "modifier": "--with", "sequence": "--sequence", "suite": "--suite"}
_NOT_PLUGINS = {"__init__", "base", "conftest"}


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
        installed = entry_points()
        for kind in KINDS:
            for name, source in self._find(kind, installed.select(group=f"cl_bench.{kind}")):
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
            raise self.unknown(kind, name)
        return found

    def unknown(self, kind: str, name: str, also: Sequence[str] = ()) -> UnknownNameError:
        """The error for a name that nothing of its kind has.

        Args:
            kind: One of ``KINDS``.
            name: What was asked for.
            also: Further names that would have done in its place.
        """
        others = [other.removesuffix("s") for other in KINDS if name in self._sources[other]]
        remark = "" if self.include_paths else "one of your own needs --include-path FOLDER"
        error = UnknownNameError(kind.removesuffix("s"), name, [*also, *self._sources[kind]], remark)
        if others:
            option = _OPTIONS.get(others[0])
            error.hint = f"{name} is a {others[0]}" + (f": {option} {name}" if option else "")
        return error

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
        from cl_bench.tasks.base import Task
        from cl_bench.tasks.loader import load_task

        source = self.source("tasks", name)
        target = load_entry_point(source, name) if source.entry_point is not None else source.path
        if isinstance(target, str | Path):
            return load_task(Path(target), options)
        if not callable(target):
            raise UsageError(f"entry point {name!r} of {source.origin} is neither a file nor a function")
        with foreign_code(f"the task {name} of {source.origin} cannot be made"):
            task = target(options)
        if not isinstance(task, Task):
            raise UsageError(f"entry point {name!r} of {source.origin} makes no Task", f"it is {type(task).__name__}")
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
        return f"{_release(source)}+{digest}"

    def _find(self, kind: str, points: Iterable[EntryPoint]) -> Iterator[tuple[str, Source]]:
        folder, ending = _BUILT_IN[kind]
        for path in _files(_PACKAGE_ROOT / folder, ending):
            if ending == ".py" and kind_by_content(path) != kind:
                continue
            module = f"cl_bench.{folder.replace('/', '.')}.{path.stem}" if ending == ".py" else None
            yield name_of(path), Source("built in", path, module)
        for point in points:
            yield point.name, Source(point.dist.name if point.dist else point.value, entry_point=point)
        for included in self.include_paths:
            for path in _included_files(included, kind, ending):
                yield name_of(path), Source(str(included), path)

    def _add(self, kind: str, name: str, source: Source) -> None:
        other = self._sources[kind].get(name)
        if other is not None and _same(other, source):
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
        return source.path if source.path is not None else Path(load_entry_point(source, name))

    def _class(self, kind: str, name: str, base: type) -> Any:
        if (kind, name) not in self._classes:
            source = self.source(kind, name)
            if source.entry_point is not None:
                found = load_entry_point(source, name)
                if not (isinstance(found, type) and issubclass(found, base)):
                    raise UsageError(f"entry point {name!r} of {source.origin} is not a {base.__name__} class")
            else:
                module = load_module(source)
                with foreign_code(f"{kind.removesuffix('s')} {name} of {source.origin} cannot be read"):
                    found = single_class(module, base, name)
            self._classes[kind, name] = found
        return self._classes[kind, name]


def _same(one: Source, other: Source) -> bool:
    """Whether two sources are one file: of a folder given twice, or of a package that was installed from the folder."""
    if one.path is not None and other.path is not None:
        return one.path.resolve() == other.path.resolve()
    files = [source.path if source.entry_point is None else entry_point_file(source) for source in (one, other)]
    if (one.entry_point is None) == (other.entry_point is None) or files[0] is None or files[1] is None:
        return False
    return files[0].read_bytes() == files[1].read_bytes()


def _files(folder: Path, ending: str) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.glob(f"*{ending}") if path.stem not in _NOT_PLUGINS and path.is_file())


def _included_files(folder: Path, kind: str, ending: str) -> list[Path]:
    files = _files(folder / kind, ending)
    if ending == ".py":
        files += [path for path in _files(folder, ending) if kind_by_content(path) == kind]
    return files


def _release(source: Source) -> str:
    """Version of the distribution something comes from; "file" for one that lies in a folder of the user's."""
    if source.module is not None:
        from cl_bench import __version__

        return __version__
    point = source.entry_point
    return "file" if point is None or point.dist is None else str(point.dist.version)
