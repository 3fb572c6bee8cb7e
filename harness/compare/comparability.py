"""Which runs may stand in one table: what their numbers depend on besides method, seed, sequence and model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cl_bench.harness.errors import NotComparableError
from cl_bench.harness.files import canonical_json, content_hash
from cl_bench.harness.run_directory import RunView

NUMERIC_PACKAGES = ("torch", "transformers", "lm_eval")
"""Packages whose version makes another backend."""
_LONGEST = 40


@dataclass(frozen=True, slots=True)
class DifferingField:
    """A field in which runs differ.

    Attributes:
        name: The field.
        values: Each value as text with the directories that have it; what most runs have first (of equally many,
            that of the run given first).
    """

    name: str
    values: Mapping[str, tuple[Path, ...]]


def comparable_fields(view: RunView) -> dict[str, Any]:
    """What has to agree between runs, by name; a run lacks the fields of what it does not use.

    Tasks and aligner have to agree only between runs that both use them; models only where they share a name.
    """
    spec, evaluation = view.spec, view.spec.evaluation
    fields: dict[str, Any] = {
        "results version": spec.results_version,
        "profile": spec.profile,
        "recipe": spec.recipe,
        "lab version": spec.lab_version,
        "limit": spec.limit,
        "data source": spec.data.source,
        "data split": spec.data.split,
        "option order": spec.data.option_order,
        "evaluated split": evaluation.split,
        "evaluated rows": evaluation.rows,
        "evaluated suite rows": evaluation.suite_rows,
        "shots": evaluation.shots,
        "system prompt": evaluation.system_prompt,
        "template (thinking)": spec.model.thinking,
        f"template (model {spec.model.name})": spec.model.fingerprint,
        "dtype of training": spec.precision.training,
        "dtype of evaluation": spec.precision.generation,
        "suite": spec.suite.model_dump(mode="json") if spec.suite is not None else None,
        **{f"task {task.name}": task.identity for task in spec.tasks},
        **_backend(view.manifest),
    }
    if spec.precision.generation != "fp32":  # in fp32 tokens do not depend on what is computed together
        fields["batch plan of evaluation"] = (spec.evaluation_batch_size, spec.precision.generation_batch_size)
    if spec.aligner is not None:
        fields[f"aligner (of {spec.model.name})"] = f"{spec.aligner.name} {spec.aligner.fingerprint[:8]}"
    return fields


def _backend(manifest: Mapping[str, Any]) -> dict[str, Any]:
    sessions = manifest.get("sessions", [])
    versions = [session["environment"]["packages"] for session in sessions]
    found = {
        f"backend ({package})": _joined(version.get(package) for version in versions) for package in NUMERIC_PACKAGES
    }
    devices = (str(session["execution"].get("device", "unknown")).partition(":")[0] for session in sessions)
    machines = (session["environment"].get("machine", "unknown") for session in sessions)
    return {**found, "backend (device)": _joined(devices), "backend (machine)": _joined(machines)}


def _joined(values: Any) -> str:
    """The different values of a run's processes; one of them as a rule."""
    return ", ".join(sorted({str(value) for value in values if value is not None})) or "unknown"


def differing_fields(views: Sequence[RunView]) -> list[DifferingField]:
    """Fields in which the runs differ, in the order of ``comparable_fields``."""
    by_field: dict[str, dict[str, list[Path]]] = {}
    texts: dict[str, str] = {}
    for view in views:
        for name, value in comparable_fields(view).items():
            key = canonical_json(value)
            texts[key] = _text(value)
            by_field.setdefault(name, {}).setdefault(key, []).append(view.directory)
    return [
        DifferingField(name, {texts[key]: tuple(runs) for key, runs in _by_frequency(values)})
        for name, values in by_field.items()
        if len(values) > 1
    ]


def _by_frequency(values: Mapping[str, list[Path]]) -> list[tuple[str, list[Path]]]:
    return [(key, values[key]) for key, _ in Counter({key: len(runs) for key, runs in values.items()}).most_common()]


def check_comparable(views: Sequence[RunView], mark: bool = False) -> dict[Path, tuple[str, ...]]:
    """Refuse runs that differ in a field, or say which differ from most in what.

    Args:
        views: The runs.
        mark: Do not refuse.

    Returns:
        Fields by directory, for the runs that have another value than most.

    Raises:
        NotComparableError: They differ and ``mark`` is false; fields, values and runs are named.
    """
    differing = differing_fields(views)
    if differing and not mark:
        why = "\n       ".join(f"{field.name}: {_values(field)}" for field in differing)
        raise NotComparableError(
            f"these runs are not comparable: they differ in {', '.join(field.name for field in differing)}",
            why,
            "give runs that agree in these fields, or --mark to show all of them with marks",
        )
    marks: dict[Path, list[str]] = {}
    for field in differing:
        for runs in list(field.values.values())[1:]:
            for run in runs:
                marks.setdefault(run, []).append(field.name)
    return {run: tuple(names) for run, names in marks.items()}


def _values(field: DifferingField) -> str:
    parts = [
        f"{text} ({len(runs)} {'run' if len(runs) == 1 else 'runs'}, such as {runs[0]})"
        for text, runs in field.values.items()
    ]
    return "; ".join(parts)


def _text(value: Any) -> str:
    if value is None:
        return "none"
    text = value if isinstance(value, str) else canonical_json(value)
    return text if len(text) <= _LONGEST else f"content {content_hash(value)[:8]}"
