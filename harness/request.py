"""What the user asks for: the command line's options, or a file with the same names, before profiles fill the rest."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from cl_bench.harness.errors import UsageError
from cl_bench.harness.models.by_name import model_request
from cl_bench.harness.spec import RunSpec
from cl_bench.harness.validation import build, refuse_unknown
from cl_bench.harness.yaml_files import parse_yaml, read_mapping

SETTING_GROUPS = ("method", "modifier", "sequence", "data", "evaluation", "precision")
BOUNDS: tuple[Literal["base", "joint"], ...] = ("base", "joint")
"""Run modes that stand where a method's name stands."""
MOST_SEEDS = 10_000
"""Seeds of one call at most: what is above is a slip of the keyboard."""


class Request(BaseModel):
    """Options of ``run``; None means that the profile decides.

    Attributes:
        method: Method, or one of the bounds ``base`` and ``joint``.
        joint_with: Method that trains the bound ``joint``.
        modifiers: Modifiers, written ``with`` in files.
        sequence: Sequence.
        order: Order of its stages.
        profile: Profile.
        recipe: Recipe.
        model: Student.
        thinking: Whether the student's answers begin with a reasoning block, for models that can switch it.
        aligner: Larger model: a name, "next-size-up", "self" or "none".
        suite: Retention suite, or "none".
        tier: Tier of the suite.
        seeds: Run seeds.
        limit: Rows a stage and a task are cut to.
        eval_every: Optimizer steps between evaluations within a stage.
        settings: Values by group (``SETTING_GROUPS``) and name.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)
    method: str | None = None
    joint_with: str | None = None
    modifiers: tuple[str, ...] | None = Field(default=None, alias="with")
    sequence: str | None = None
    order: str | None = None
    profile: str | None = None
    recipe: str | None = None
    model: str | None = None
    thinking: bool | None = None
    aligner: str | None = None
    suite: str | None = None
    tier: str | None = None
    seeds: tuple[int, ...] | None = None
    limit: int | None = Field(default=None, ge=1)
    eval_every: int | None = Field(default=None, ge=1)
    settings: dict[str, dict[str, Any]] = Field(default_factory=dict)

    def group(self, name: str) -> dict[str, Any]:
        """Settings of one group."""
        return dict(self.settings.get(name, {}))

    def over(self, lower: Request) -> Request:
        """This request with another one's values where it has none; settings are merged name by name.

        Method settings of the other one are dropped where this one names another method, and likewise for sequences and
        modifiers. What this one sets for every stage replaces what the other one sets for single stages.
        """
        base = lower.model_dump()
        own = {key: value for key, value in self.model_dump().items() if value is not None and key != "settings"}
        settings = dict(base["settings"])
        for group in ("method", "sequence"):
            if own.get(group) not in (None, base[group]):
                settings.pop(group, None)
                if group == "sequence":
                    base["order"] = None
        if self.modifiers is not None and "modifier" in settings:
            settings["modifier"] = {
                name: found for name, found in settings["modifier"].items() if name in self.modifiers
            }
        if "sequence" in settings:
            settings["sequence"] = _without_stage_values(settings["sequence"], self.group("sequence"))
        return Request.model_validate({**base, **own, "settings": merge(settings, self.settings)})


def _without_stage_values(sequence: Mapping[str, Any], names: Container[str]) -> dict[str, Any]:
    return {
        key: {name: item for name, item in value.items() if name not in names} if isinstance(value, Mapping) else value
        for key, value in sequence.items()
    }


def merge(lower: Mapping[str, Any], upper: Mapping[str, Any]) -> dict[str, Any]:
    """Nested mappings merged; the upper one's values win."""
    merged = dict(lower)
    for key, value in upper.items():
        below = merged.get(key)
        both = isinstance(value, Mapping) and isinstance(below, Mapping)
        merged[key] = merge(below, value) if both and isinstance(below, Mapping) else value
    return merged


def parse_settings(assignments: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Read ``--set`` options.

    Args:
        assignments: ``group.name=value``; values are YAML scalars or lists.

    Raises:
        UsageError: Not of that form, or an unknown group.
    """
    settings: dict[str, Any] = {}
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        parts = key.strip().split(".")
        if not equals or len(parts) < 2 or not all(parts):
            example = "--set method.learning_rate=5e-5"
            raise UsageError(f"--set {assignment}: expected group.name=value", hint=f"for example {example}")
        refuse_unknown(parts[:1], SETTING_GROUPS, f"--set {assignment}")
        nested: Any = parse_yaml(text, f"--set {key}")
        for part in reversed(parts):
            nested = {part: nested}
        settings = merge(settings, nested)
    return settings


def parse_seeds(text: str) -> tuple[int, ...]:
    """Read ``0,1,2`` or ``0-4`` (both ends included), or a mixture of both.

    Raises:
        UsageError: Not of that form, or a seed given twice.
    """
    seeds: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"([0-9]{1,18})(?:-([0-9]{1,18}))?", part.strip())
        if match is None or int(match[2] or match[1]) < int(match[1]):
            raise UsageError(f"--seeds {text}: cannot read {part!r}", hint="for example --seeds 0,1,2 or --seeds 0-4")
        wanted = range(int(match[1]), int(match[2] or match[1]) + 1)
        if len(seeds) + len(wanted) > MOST_SEEDS:
            raise UsageError(f"--seeds {text}: more than {MOST_SEEDS} seeds in one call")
        seeds += wanted
    if len(set(seeds)) < len(seeds):
        raise UsageError(f"--seeds {text}: a seed is given twice")
    return tuple(seeds)


def read_request(path: Path) -> Request:
    """Read a request file, or a saved run specification as a request that asks for the same run.

    Raises:
        UsageError: Neither of the two.
    """
    content = read_mapping(path)
    if content.get("branch") is not None:
        raise UsageError(
            f"{path} goes on from a stage of another run",
            hint="give its options with --from RUN --from-stage N, or cl-bench resume its run directory",
        )
    if "results_version" in content:
        return request_of(build(RunSpec, content, str(path)))
    if isinstance(content.get("seeds"), str | int):
        content["seeds"] = parse_seeds(str(content["seeds"]))
    request = build(Request, content, str(path))
    refuse_unknown(request.settings, SETTING_GROUPS, f"{path}: settings")
    return request


def request_of(spec: RunSpec) -> Request:
    """A request that resolves to an equal specification where models, data and sources are unchanged."""
    stages = {stage.name: {"rows": stage.rows, "epochs": stage.epochs} for stage in spec.sequence.stages}
    evaluation = spec.evaluation.model_dump() | {"batch_size": spec.evaluation_batch_size}
    precision = {name: getattr(spec.precision, name) for name in spec.precision.__dataclass_fields__}
    method = spec.method
    return Request(
        method=spec.bound or (method.name if method else None),
        joint_with=method.name if method and spec.bound == "joint" else None,
        modifiers=tuple(modifier.name for modifier in spec.modifiers),
        sequence=spec.sequence.name,
        order=spec.sequence.order,
        profile=spec.profile,
        recipe=spec.recipe,
        model=model_request(spec.model),
        thinking=spec.model.thinking,
        # Where the method uses none, the profile's stays in reserve for another method given beside the file.
        aligner=model_request(spec.aligner) if spec.aligner else None,
        suite=spec.suite.name if spec.suite else "none",
        tier=spec.suite.tier if spec.suite else None,
        seeds=(spec.seed,),
        limit=spec.limit,
        eval_every=spec.eval_every,
        settings={
            "method": dict(method.settings) if method else {},
            "modifier": {modifier.name: dict(modifier.settings) for modifier in spec.modifiers},
            "sequence": {name: values for name, values in stages.items() if values},
            "data": spec.data.model_dump(),
            "evaluation": evaluation,
            "precision": precision,
        },
    )
