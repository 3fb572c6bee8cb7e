"""``cl-bench list``: what can be named, one line each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from cl_bench.harness.commands.execution import print_json
from cl_bench.harness.errors import ClBenchError
from cl_bench.harness.plugins import foreign_code
from cl_bench.harness.registry import Registry
from cl_bench.harness.yaml_files import read_mapping

Row = dict[str, Any]
_BOUNDS = {
    "base": "The untouched model, row 0 alone.",
    "joint": "One stage over the union of all training sets (--joint-with METHOD).",
}


def list_command(kind: str, include_paths: Sequence[Path], json: bool) -> int:
    """Print the names of one kind; with ``json`` a list of objects. Methods come with modifiers and bounds."""
    rows = _LISTERS[kind](Registry(include_paths))
    if json:
        print_json(rows)
        return 0
    width = max((len(row["name"]) for row in rows), default=0)
    for row in rows:
        print(f"{row['name']:<{width}}  {_details(row)}".rstrip())
    return 0


def _details(row: Row) -> str:
    parts = []
    for key, value in row.items():
        if key == "name" or value in (None, "", []):
            continue
        text = _text(value)
        parts.append(text if key in ("description", "summary", "path") else f"{key}: {text}")
    return "  ".join(parts)


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {number:,}" for name, number in value.items()) or "-"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _methods(registry: Registry) -> list[Row]:
    """Everything that can be compared as a way of learning: bounds, methods and what composes with them."""
    methods = [_component(registry, "methods", name) for name in registry.methods()]
    return [bound_row(name) for name in _BOUNDS] + methods + _modifiers(registry)


def bound_row(name: str) -> Row:
    """A run mode that methods are compared with: ``base`` or ``joint``."""
    return _row(name, "bound", {"summary": _BOUNDS[name], "family": "bound"})


def _modifiers(registry: Registry) -> list[Row]:
    return [_component(registry, "modifiers", name) for name in registry.modifiers()]


def _component(registry: Registry, kind: str, name: str) -> Row:
    known: Row
    try:
        with foreign_code("what it says of itself cannot be read"):
            found: Any = registry.method_class(name) if kind == "methods" else registry.modifier_class(name)
            known = {
                "summary": summary(found),
                "needs": sorted(str(need.value) for need in getattr(found, "needs", ())),
            }
            known |= {key: str(getattr(found, key, "")) for key in ("family", "paper", "fidelity", "checked")}
    except ClBenchError as error:
        known = {"summary": f"cannot be loaded: {_in_a_line(error)}"}
    return _row(name, kind.removesuffix("s"), known | {"from": _origin(registry, kind, name)})


def _in_a_line(error: ClBenchError) -> str:
    return " ".join(": ".join(filter(None, (error.what, error.why))).split())


def _row(name: str, kind: str, known: Row) -> Row:
    """All keys, so that a reader of the JSON finds each one whatever it is."""
    empty: Row = {"summary": "", "family": "", "needs": [], "paper": "", "fidelity": "", "checked": "", "from": ""}
    return {"name": name, "kind": kind, **empty, **known}


def summary(found: type) -> str:
    """First line of a class's docstring."""
    return (found.__doc__ or "").strip().partition("\n")[0]


def _origin(registry: Registry, kind: str, name: str) -> str:
    origin = registry.source(kind, name).origin
    return "" if origin == "built in" else origin


def _files(kind: str) -> Callable[[Registry], list[Row]]:
    def rows(registry: Registry) -> list[Row]:
        found = []
        for name in registry.names(kind):
            path = registry.source(kind, name).path
            row: Row = {"name": name, "description": ""}
            try:
                with foreign_code("what it says of itself cannot be read"):
                    content = read_mapping(path) if path is not None else {}
                    row["description"] = str(content.get("description") or content.get("title") or "")
                    row |= _FACTS[kind](registry, name, content)
            except ClBenchError as error:
                row["description"] = f"cannot be read: {_in_a_line(error)}"
            found.append(row | {"from": _origin(registry, kind, name)})
        return found

    return rows


def _sequence_facts(registry: Registry, name: str, content: Row) -> Row:
    sequence = registry.sequence(name)
    return {"stages": [stage.task for stage in sequence.stages], "orders": list(content.get("orders") or {})}


def _task_facts(registry: Registry, name: str, content: Row) -> Row:
    from cl_bench.harness.commands.list_tasks import task_facts
    from cl_bench.tasks.loader import task_editions

    if (path := registry.source("tasks", name).path) is not None:
        task_editions(path)  # says what is wrong with a file that is none of a task
    sources = [key for key, source in (content.get("sources") or {}).items() if "absent" not in (source or {})]
    return {"sources": sources, **task_facts(registry, name)}


def _suite_facts(registry: Registry, name: str, content: Row) -> Row:
    from cl_bench.tasks.retention.suites import suite_tiers

    return {"tiers": list(suite_tiers(registry.suite_path(name)))}


_FACTS: dict[str, Callable[[Registry, str, Row], Row]] = {
    "sequences": _sequence_facts,
    "tasks": _task_facts,
    "suites": _suite_facts,
}


def _models(registry: Registry) -> list[Row]:
    from cl_bench.harness.models.fetch import FETCHABLE, fetched_path
    from cl_bench.harness.models.lab import LAB_MODELS, lab_path

    rows: list[Row] = [{"name": name, "kind": "lab", "path": str(lab_path(name))} for name in LAB_MODELS]
    for name in FETCHABLE:
        path = fetched_path(name)
        hint = str(path) if path else f"not here; cl-bench models fetch {name}"
        rows.append({"name": name, "kind": "fetched", "path": hint})
    return rows


def _profiles(registry: Registry) -> list[Row]:
    from cl_bench.harness.profile_files import load_profile, profile_names

    return [{"name": name, "description": load_profile(name).description} for name in profile_names()]


def _recipes(registry: Registry) -> list[Row]:
    from cl_bench.harness.profile_files import load_recipe, recipe_names

    return [{"name": name, "description": load_recipe(name).description} for name in recipe_names()]


_LISTERS: dict[str, Callable[[Registry], list[Row]]] = {
    "methods": _methods,
    "modifiers": _modifiers,
    "tasks": _files("tasks"),
    "sequences": _files("sequences"),
    "suites": _files("suites"),
    "models": _models,
    "profiles": _profiles,
    "recipes": _recipes,
}
