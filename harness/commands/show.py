"""``cl-bench show``: the settings of a method, the file behind a name, the table of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cl_bench.harness.commands.execution import print_json
from cl_bench.harness.commands.list import bound_row, summary
from cl_bench.harness.commands.show_runs import show_runs
from cl_bench.harness.errors import UnknownNameError
from cl_bench.harness.registry import Registry
from cl_bench.harness.request import BOUNDS
from cl_bench.harness.run_directory import no_run_at, runs_below
from cl_bench.harness.yaml_files import parse_yaml, read_mapping

KINDS = ("method", "modifier", "task", "sequence", "suite", "model", "profile", "recipe", "run")


def show_command(kind: str, name: str, include_paths: Sequence[Path], json: bool) -> int:
    """Print one thing.

    Raises:
        UnknownNameError: No such kind or name.
        StoreError: A directory that is not a run.
    """
    kind = kind.removesuffix("s")
    if kind not in KINDS:
        raise UnknownNameError("kind", kind, KINDS)
    if kind == "run":
        return _show_run(Path(name), json)
    if kind == "model":
        return _show_model(name, json)
    if kind in ("profile", "recipe"):
        return _show_file(_settings_file(kind, name), json)
    registry = Registry(include_paths)
    if kind == "method" and name in BOUNDS:
        row = bound_row(name)
        print_json(row) if json else print(f"{name}: {row['summary']}")
        return 0
    if kind in ("method", "modifier"):
        return _show_component(kind, name, registry, json)
    source = registry.source(f"{kind}s", name)
    if source.path is None:
        print_json({"name": name, "from": source.origin}) if json else print(f"{name}: from {source.origin}")
        return 0
    return _show_file(source.path, json)


def settings_table(settings: Any) -> list[dict[str, Any]]:
    """Every field of a settings class: name, default, unit, allowed values, source, whether inferred, description.

    ``choices`` lists a choice's values; ``minimum``, ``above``, ``maximum`` and ``below`` are a number's bounds; what
    there is none of is None.
    """
    rows, schema = [], settings.model_json_schema(by_alias=False)
    for name, field in settings.model_fields.items():
        extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
        rows.append(
            {
                "name": name,
                "default": field.default,
                "unit": extra.get("unit"),
                **_allowed(schema["properties"][name], schema.get("$defs", {})),
                "source": extra.get("source"),
                "inferred": extra.get("inferred"),
                "description": field.description,
            }
        )
    return rows


def _allowed(schema: Mapping[str, Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """What a setting may be, from its JSON schema; of an optional one, what it may be where it is not null."""
    kinds = [named.get(str(kind.get("$ref")).rpartition("/")[2], kind) for kind in schema.get("anyOf", [schema])]
    choices = [value for kind in kinds for value in kind.get("enum", [kind["const"]] if "const" in kind else [])]
    bounds = {"minimum": "minimum", "above": "exclusiveMinimum", "maximum": "maximum", "below": "exclusiveMaximum"}
    found = {ours: next((kind[key] for kind in kinds if key in kind), None) for ours, key in bounds.items()}
    return {"choices": choices or None, **found}


def _allowed_text(row: Mapping[str, Any]) -> str:
    if row["choices"]:
        return ": " + " | ".join(map(str, row["choices"]))
    signs = {"minimum": ">=", "above": ">", "maximum": "<=", "below": "<"}
    return "".join(f", {sign} {row[key]:g}" for key, sign in signs.items() if row[key] is not None)


def _show_component(kind: str, name: str, registry: Registry, json: bool) -> int:
    found: Any = registry.method_class(name) if kind == "method" else registry.modifier_class(name)
    rows = settings_table(found.Settings)
    head = {
        "name": name,
        "summary": summary(found),
        "paper": found.paper,
        "fidelity": str(found.fidelity),
        "checked": found.checked,
        "needs": sorted(str(need) for need in getattr(found, "needs", ())),
        "identity": registry.identity(f"{kind}s", name),
    }
    if json:
        print_json({**head, "settings": rows})
        return 0
    for key, value in head.items():
        if value in ("", []):
            continue
        print(f"{key + ':':<10}{', '.join(value) if isinstance(value, list) else value}")
    print("\nsettings (--set " + kind + (f".{name}" if kind == "modifier" else "") + ".NAME=VALUE):")
    for row in rows:
        inferred = ", inferred" if row["inferred"] else ""
        print(f"  {row['name']} = {row['default']!r}  [{row['unit']}{_allowed_text(row)}]")
        print(f"      {row['description']} ({row['source']}{inferred})")
    if kind == "method":
        print("\nA profile's recipe goes over these defaults (cl-bench show recipe lab); --set goes over both.")
    return 0


def _show_file(path: Path, json: bool) -> int:
    text = path.read_text(encoding="utf-8")
    if json:
        print_json(parse_yaml(text, str(path)))
    else:
        print(text, end="" if text.endswith("\n") else "\n")
    return 0


def _settings_file(kind: str, name: str) -> Path:
    from cl_bench.harness.profile_files import profile_path, recipe_path

    return profile_path(name) if kind == "profile" else recipe_path(name)


def _show_model(name: str, json: bool) -> int:
    from cl_bench.harness.models.by_name import find_model
    from cl_bench.harness.models.safetensors_header import stored_parameters

    model = find_model(name, offline=True)
    folder = Path(model.source)
    config = read_mapping(folder / "config.json")
    content = {
        "name": model.name,
        "path": model.source,
        "fingerprint": model.fingerprint,
        "parameters": stored_parameters(folder),
        "architecture": (config.get("architectures") or ["unknown"])[0],
        "context": config.get("max_position_embeddings"),
    }
    if json:
        print_json(content)
    else:
        for key, value in content.items():
            print(f"{key + ':':<14}{value}")
    return 0


def _show_run(directory: Path, json: bool) -> int:
    found = runs_below(directory)
    if not found and directory.is_dir():
        raise no_run_at(directory)
    if found not in ([], [directory]):
        return show_runs(found, json)
    if json:
        from cl_bench.harness.compare.whole import load_whole

        view = load_whole(directory)
        print_json(
            {
                "directory": str(directory),
                "status": dict(view.status),
                "matrix": view.matrix.to_json(),
                "metrics": dict(view.metrics),
                "spec": view.spec.model_dump(mode="json"),
            }
        )
        return 0
    from cl_bench.reports.tables import render_run

    print(render_run(directory))
    return 0
