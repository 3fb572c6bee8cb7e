"""Makes tasks of task files: one YAML a task, with a section for each source of rows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from cl_bench.harness.errors import DataError, UnknownNameError, UsageError
from cl_bench.harness.plugins import foreign_code, import_file
from cl_bench.harness.yaml_files import parse_yaml
from cl_bench.tasks.base import Task
from cl_bench.tasks.sources.base import DataOptions
from cl_bench.tasks.sources.editions import Edition
from cl_bench.tasks.sources.hub import HubTask
from cl_bench.tasks.sources.inside import is_inside
from cl_bench.tasks.sources.locate import DatasetSpec
from cl_bench.tasks.sources.mixture import MixtureTask
from cl_bench.tasks.sources.readers import READERS
from cl_bench.tasks.sources.task_rows import HubSource

_TOP_KEYS = {"name", "title", "sources"}
_EDITION_KEYS = ("name", "expected_rows", "mismatch", "remark", "stand_in")
_WRONG_KEYS = (TypeError, KeyError, ValueError, AttributeError)
"""What values of other types than the keys have lead to."""


def load_task(path: Path, options: DataOptions) -> Task:
    """Make the task that a file describes, on the source that the options name.

    The file has ``name``, ``title`` and ``sources``; a source is one of

    - ``{kind: lab, domain: D, rows, nature}``: the generated world;
    - ``{kind: K, data: {path, config, revision, files, fields, splits}, expected_rows, mismatch, system, chance,
      max_new_tokens, columns, gold_filter}`` with a reader K of ``tasks.sources.readers``: a public data set. Instead
      of ``data`` there may be ``editions``, of which the first that is there is read: each has the keys of ``data``, or
      ``parts``, a list of such, and beside them ``name``, ``expected_rows``, ``mismatch``, ``remark`` and ``stand_in``
      (``tasks.sources.editions``); ``configs`` names several configurations of one data set;
    - ``{kind: mixture, parts: [task, …]}``: parts of the tasks whose files lie beside this one, or below;
    - ``{kind: python, file: F, class: C}``: a Task class in a file beside this one, or below, called with the options;
    - ``{absent: reason}``: the source has no rows for this task.

    Args:
        path: The task's YAML file.
        options: Which source, and where its data is.

    Raises:
        UsageError: The file is not a task file, names files elsewhere, or its Task class cannot be made.
        DataError: The task has no rows on this source. Absent or broken files are found when rows are first asked for.
    """
    content = read_task_file(path)
    sources: Mapping[str, Any] = content["sources"]
    source = sources.get(options.source)
    if source is None or "absent" in source:
        why = "its file has no such source" if source is None else str(source["absent"])
        raise DataError(
            f"the task {content['name']} has no rows on the source {options.source!r}",
            why,
            f"sources it has: {', '.join(name for name, value in sources.items() if 'absent' not in value) or 'none'}",
        )
    try:
        return _make(content["name"], dict(source), path, options)
    except _WRONG_KEYS as error:
        raise UsageError(
            f"{path}, source {options.source!r}: wrong or missing keys", f"{type(error).__name__}: {error}"
        ) from error


def read_task_file(path: Path) -> dict[str, Any]:
    """What a task file says; every one of its ``sources`` is a mapping.

    Raises:
        UsageError: The file is not a task file.
    """
    try:
        content = parse_yaml(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read as a task file", str(error)) from error
    except UsageError as error:
        raise UsageError(f"{path} cannot be read as a task file", f"{error.what}: {error.why}") from error
    if not isinstance(content, dict) or not isinstance(content.get("sources"), dict) or "name" not in content:
        raise UsageError(f"{path} is not a task file", "it needs the keys `name` and `sources`")
    if unknown := sorted(map(str, set(content) - _TOP_KEYS)):
        raise UnknownNameError(f"key of a task file ({path})", unknown[0], _TOP_KEYS)
    sources = {str(name): source for name, source in content["sources"].items() if source is not None}
    if wrong := [name for name, source in sources.items() if not isinstance(source, dict)]:
        raise UsageError(f"{path} is not a task file", f"its source {wrong[0]!r} is no mapping of names to values")
    return {**content, "sources": sources}


def _make(name: str, source: dict[str, Any], path: Path, options: DataOptions) -> Task:
    kind = source.pop("kind")
    if kind == "lab":
        return _lab_task(name, source, options)
    if kind == "mixture":
        return _mixture(name, source["parts"], path, options)
    if kind == "python":
        return _python_task(_beside(path, source["file"]), source["class"], options)
    if kind not in READERS:
        raise UnknownNameError("kind of source", str(kind), [*READERS, "lab", "mixture", "python"])
    editions = _editions(source)
    return HubTask(name, HubSource(kind=kind, editions=editions, **source), options)


def task_editions(path: Path) -> tuple[Edition, ...]:
    """The forms in which a task file says that its public data may be there; none where it reads no public data.

    Raises:
        UsageError: The file is not a task file.
    """
    source = read_task_file(path)["sources"].get("hub") or {}
    try:
        return _editions(dict(source)) if source.get("kind") in READERS else ()
    except _WRONG_KEYS as error:
        raise UsageError(f"{path}, source 'hub': wrong or missing keys", f"{type(error).__name__}: {error}") from error


def _editions(source: dict[str, Any]) -> tuple[Edition, ...]:
    """Take what describes the data out of a source."""
    if "editions" in source:
        return tuple(_edition(dict(declared)) for declared in source.pop("editions"))
    own = {key: source.pop(key) for key in _EDITION_KEYS if key in source}
    return (_edition({**own, **source.pop("data")}),)


def _edition(declared: dict[str, Any]) -> Edition:
    own = {key: declared.pop(key) for key in _EDITION_KEYS if key in declared}
    parts = declared.pop("parts", None)
    if parts is not None and declared:
        raise ValueError(f"beside `parts`: {', '.join(declared)}")
    specs = tuple(spec for part in ([declared] if parts is None else parts) for spec in _specs(dict(part)))
    edition = Edition(parts=specs, **own)
    if not {"test"} <= set(edition.splits) <= {"train", "test"}:
        raise ValueError(f"the splits are {', '.join(edition.splits) or 'none'}; test, or train and test, are needed")
    return edition


def _specs(part: dict[str, Any]) -> list[DatasetSpec]:
    """A data set, or one for each of its configurations."""
    if "configs" in part:
        return [DatasetSpec(config=config, **part) for config in part.pop("configs")]
    return [DatasetSpec(**part)]


def _lab_task(name: str, source: dict[str, Any], options: DataOptions) -> Task:
    from cl_bench.tasks.lab.styles import DISTANCES, ORDERS
    from cl_bench.tasks.lab.task import LabTask

    for what, given, known in (("distance", options.distance, DISTANCES), ("order", options.order, ORDERS)):
        if given not in known:
            raise UnknownNameError(f"{what} of the lab's demonstrations", given, known)
    distance, order = cast(Any, options.distance), cast(Any, options.order)
    return LabTask(name, distance=distance, order=order, **source)


def mixture_parts(path: Path, parts: object, source: str) -> list[Path]:
    """Files of the tasks that a mixture is made of.

    Args:
        path: The mixture's file.
        parts: What it gives as ``parts``.
        source: The source whose parts these are.

    Raises:
        UsageError: These are no names of tasks beside the mixture, or one is a mixture: it might be this one.
    """
    if not isinstance(parts, list):
        raise UsageError(f"{path}: the `parts` of a mixture are no list of tasks")
    found = [_beside(path, f"{part}.yaml") for part in parts]
    kinds = {part.stem: read_task_file(part)["sources"].get(source, {}).get("kind") for part in found}
    if nested := [name for name, kind in kinds.items() if kind == "mixture"]:
        raise UsageError(f"{path}: a mixture takes parts on public data only", f"not so: {', '.join(nested)}")
    return found


def _beside(path: Path, name: object) -> Path:
    """A file that a task file names, below the same folder."""
    if not is_inside(name):
        raise UsageError(f"{path}: {name!r} is no file beside it", "what a task file names lies in its folder or below")
    return path.parent / str(name)


def _mixture(name: str, parts: object, path: Path, options: DataOptions) -> MixtureTask:
    tasks = [load_task(part, options) for part in mixture_parts(path, parts, options.source)]
    wrong = [task.name for task in tasks if not isinstance(task, HubTask)]
    if wrong:
        raise UsageError(f"{path}: a mixture takes parts on public data only", f"not so: {', '.join(wrong)}")
    return MixtureTask(name, [task for task in tasks if isinstance(task, HubTask)])


def _python_task(path: Path, class_name: str, options: DataOptions) -> Task:
    if path.suffix != ".py" or not path.is_file():
        raise UsageError(f"{path} is not a Python file")
    with foreign_code(f"the task {class_name} cannot be made of {path}"):
        task = getattr(import_file(path), class_name)(options)
        if isinstance(task, Task):
            return task
    raise UsageError(f"{class_name} in {path} is not a Task", hint="derive it from cl_bench.tasks.base.Task")
