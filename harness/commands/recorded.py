"""How an earlier session carried a run out, as its manifest records it, for options that are left out."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from cl_bench.harness.commands.execution import execution_of
from cl_bench.harness.errors import StoreError, UsageError
from cl_bench.harness.registry import Registry
from cl_bench.harness.run_directory import MANIFEST, read_spec
from cl_bench.harness.spec import ComponentSpec, Execution, SuiteSpec, TaskSpec


def as_before(
    directory: Path,
    options: Mapping[str, Any],
    needed: Collection[str] = ("methods", "modifiers", "tasks", "suites"),
) -> Execution:
    """The execution that the options give, with what they leave out from the run's manifest.

    Places, device and threads decide whether the rest of the run equals what one session would have given. Folders with
    code and leave to run programs come from the command line alone: a run directory may be somebody else's.

    Args:
        directory: Run directory.
        options: Options of ``execution_of`` that were given.
        needed: Kinds of what a run names that are looked up by name.

    Raises:
        UsageError: The run had plug-ins or leave to run programs, and the options do not say whether it has them now.
        StoreError: The manifest holds values of another form.
    """
    given = {field for option in options for field in _FIELDS_OF.get(option, (option,))}
    recorded = _last_execution(directory)
    if recorded.get("allow_code") and "allow_code" not in given:
        hint = "give --allow-code-execution again, or --no-code-execution"
        raise UsageError(f"{directory} was made with leave to run programs that a model wrote", hint=hint)
    if recorded.get("include_paths") and "include_paths" not in given:
        _refuse_plug_ins(directory, recorded["include_paths"], needed)
    before = {name: value for name, value in recorded.items() if name in _RESTORED - given}
    return replace(execution_of(**options), **_checked(before, directory))


_FIELDS_OF = {"checkpoint_every": ("checkpoint_every_seconds", "checkpoint_every_steps")}
"""Options that fill fields of other names."""
_CODE = frozenset({"include_paths", "allow_code"})
_RESTORED = (
    frozenset(field.name for field in fields(Execution)) - {"output", "progress", "offline", "attempt", "cache"} - _CODE
)


def data_places(directory: Path) -> dict[str, Any]:
    """Where a run took its data from, by field of ``Execution``; what its manifest does not say is left out.

    Raises:
        StoreError: The manifest holds values of another form.
    """
    recorded = _last_execution(directory)
    return _checked({name: recorded[name] for name in ("data_root", "gold_ids") if recorded.get(name)}, directory)


def _refuse_plug_ins(directory: Path, recorded: Any, needed: Collection[str]) -> None:
    """Refuse a run that needs plug-ins where no option names their folders."""
    spec, registry = read_spec(directory), Registry()
    parts: dict[str, Sequence[ComponentSpec | TaskSpec | SuiteSpec]] = {
        "methods": [spec.method] if spec.method is not None else [],
        "modifiers": spec.modifiers,
        "tasks": spec.tasks,
        "suites": [spec.suite] if spec.suite is not None else [],
    }
    named = [(kind, part.name) for kind, found in parts.items() for part in found]
    absent = [(kind, name) for kind, name in named if kind in needed and name not in registry.names(kind)]
    lacking = [f"{kind.removesuffix('s')} {name}" for kind, name in absent]
    if lacking:
        raise UsageError(
            f"{directory} was made with plug-ins: {', '.join(lacking)}",
            "code is taken only from where the command line says, never from a run directory",
            f"give --include-path again: its manifest names {', '.join(map(str, recorded))}",
        )


def _checked(before: Mapping[str, Any], directory: Path) -> dict[str, Any]:
    from pydantic import TypeAdapter, ValidationError

    try:
        found = TypeAdapter(Execution).validate_python(before)
    except ValidationError as error:
        place = ".".join(str(part) for part in error.errors()[0]["loc"])
        what = f"{directory / MANIFEST} is damaged"
        raise StoreError(what, f"execution.{place}: {error.errors()[0]['msg']}", "mend it or remove it") from error
    return {name: getattr(found, name) for name in before}


def _last_execution(directory: Path) -> dict[str, Any]:
    try:
        manifest = json.loads((directory / MANIFEST).read_text(encoding="utf-8"))
        execution: dict[str, Any] = manifest["sessions"][-1]["execution"]
    except (OSError, ValueError, KeyError, IndexError, TypeError):
        return {}  # killed before its manifest was written: the options alone decide
    return execution if isinstance(execution, dict) else {}
