"""Choice of a method's settings on dev rows: every point of the recipe's grid, one rule fixed beforehand."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from cl_bench.harness.errors import ClBenchError, DivergedError, InterruptedRunError, UsageError
from cl_bench.harness.files import write_json, write_text
from cl_bench.harness.profile_files import Recipe, load_profile, load_recipe, profile_for_model, recipe_names
from cl_bench.harness.request import Request
from cl_bench.harness.spec import RunSpec
from cl_bench.harness.validation import nearest_hint
from cl_bench.harness.yaml_files import dump_yaml

if TYPE_CHECKING:
    from cl_bench.harness.progress import ClosingProgress
    from cl_bench.harness.registry import Registry
    from cl_bench.harness.spec import Execution

RULE = "highest mean of acquisition (mean over stages) and retention (after the last stage), both on dev rows"
"""How the winner is chosen; of equal trials the earlier in the grid's order wins."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One point of the grid.

    Attributes:
        settings: The settings tried.
        acquisition: Mean dev acquisition over stages and seeds, or None.
        retention: Mean dev retention after the last stage over seeds, or None.
        score: Their mean, or None.
        reason: Why there is no score, else empty.
        directories: Run directories, one a seed.
    """

    settings: dict[str, Any]
    acquisition: float | None
    retention: float | None
    score: float | None
    reason: str
    directories: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TuneResult:
    """All trials and the choice.

    Attributes:
        method: The method.
        recipe: Recipe that the grid and all other settings came from: its name, or its file.
        rule: How the choice was made.
        seeds: Seeds of every trial.
        trials: In the grid's order.
        chosen: Settings of the winner.
        file: Where all of this was written.
    """

    method: str
    recipe: str
    rule: str
    seeds: tuple[int, ...]
    trials: tuple[Trial, ...]
    chosen: Mapping[str, Any]
    file: Path

    def to_json(self) -> dict[str, Any]:
        """Everything, as JSON values."""
        return {"schema_version": 1, **asdict(self), "file": str(self.file)}


def tune(request: Request, execution: Execution, registry: Registry, progress: ClosingProgress) -> TuneResult:
    """Run every point of the grid on dev rows and choose.

    Trials are ordinary runs below ``<output>/tune``; a second call finds them finished.

    Args:
        request: The run whose settings are to be chosen.
        execution: Where and how; trials keep the weights of their last stage alone.
        registry: What can be named.
        progress: Told about every trial.

    Raises:
        UsageError: The method, the grid or the request does not allow a choice.
        ClBenchError: No trial has a score.
    """
    recipe_name = request.recipe or load_profile(request.profile or profile_for_model(request.model)).recipe
    recipe = load_recipe(recipe_name)
    grid = recipe.grid
    _check(request, grid, recipe, registry)
    folder = execution.output / "tune"
    trial_execution = replace(execution, output=folder, keep_checkpoints="last")
    points = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    planned = [(point, _specs(point, request, trial_execution, registry, progress)) for point in points]
    trials = []
    for number, (point, specs) in enumerate(planned, start=1):
        progress.note(f"trial {number} of {len(planned)}: {described(point)}")
        trials.append(_trial(point, specs, trial_execution, registry, progress))
    best = _best(trials)
    first = planned[0][1][0]
    digest = hashlib.sha256("".join(spec.digest() for _, specs in planned for spec in specs).encode()).hexdigest()
    name = f"tune-{first.model.name}-{first.sequence.order}-{digest[:8]}.json"
    file = folder / first.sequence.name / (request.method or "") / name
    seeds = request.seeds or (0,)
    result = TuneResult(request.method or "", recipe_name, RULE, seeds, tuple(trials), best.settings, file)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_json(file, result.to_json())
    return result


def write_recipe(result: TuneResult, path: Path) -> None:
    """Put the chosen settings into a recipe file; one that does not exist begins as a copy of the recipe tuned from.

    Raises:
        UsageError: The file exists and is not a recipe.
    """
    source = load_recipe(str(path) if path.exists() else result.recipe)
    own = source.methods.get(result.method, {}) | dict(result.chosen)
    name = source.name if path.exists() else path.stem
    updated = source.model_copy(update={"name": name, "methods": source.methods | {result.method: own}})
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, dump_yaml({key: value for key, value in updated.model_dump(mode="json").items() if value}))


def render(result: TuneResult) -> str:
    """The trials as a plain table, best marked."""
    names = list(result.trials[0].settings)
    rows = [[*names, "acquisition", "retention", "score", ""]]
    for trial in result.trials:
        values = [
            f"{trial.settings[name]:g}" if _number(trial.settings[name]) else str(trial.settings[name])
            for name in names
        ]
        numbers = [_shown(trial.acquisition), _shown(trial.retention), _shown(trial.score)]
        mark = "chosen" if trial.settings == dict(result.chosen) else trial.reason
        rows.append([*values, *numbers, mark])
    widths = [max(len(row[column]) for row in rows) for column in range(len(names) + 3)]
    seeds = ", ".join(map(str, result.seeds))
    lines = [
        f"Settings of {result.method} from the grid of recipe {result.recipe}, seed {seeds}",
        f"Chosen by the {result.rule}",
    ]
    for row in rows:
        cells = [cell.rjust(width) for cell, width in zip(row, widths, strict=False)]
        lines.append("  ".join([*cells, row[-1]]).rstrip())
    return "\n".join([*lines, str(result.file)])


def described(settings: Mapping[str, Any]) -> str:
    """Settings as ``name=value`` pairs."""
    return ", ".join(f"{name}={value:g}" if _number(value) else f"{name}={value}" for name, value in settings.items())


def _check(request: Request, grid: Mapping[str, Any], recipe: Recipe, registry: Registry) -> None:
    if request.method is None or request.method in ("base", "joint"):
        raise UsageError(f"--tune needs a method to tune, not {request.method}")
    if not grid:
        hint = f"recipes with a grid: {', '.join(name for name in recipe_names() if load_recipe(name).grid)}"
        raise UsageError(f"recipe {recipe.name} declares no grid", hint=hint)
    known = registry.method_class(request.method).Settings.model_fields
    for name in grid:
        if name not in known:
            raise UsageError(f"method {request.method} has no setting {name} to tune", hint=nearest_hint(name, known))
        if name in request.group("method"):
            raise UsageError(f"--set method.{name} and --tune exclude each other", why=f"{name} is in the grid")
    if "epochs" in grid and request.sequence is not None:
        fixed = [stage.name for stage in registry.sequence(request.sequence).resolve().stages if stage.epochs]
        if fixed:
            raise UsageError("the grid tries epochs, which the sequence fixes", why=f"in {', '.join(fixed)}")
    if "split" in request.group("evaluation"):
        raise UsageError("--tune evaluates on dev rows", why="--set evaluation.split was given")


def _specs(
    point: Mapping[str, Any], request: Request, execution: Execution, registry: Registry, progress: ClosingProgress
) -> list[RunSpec]:
    from cl_bench.harness.resolve import resolve

    trial = Request(settings={"method": dict(point), "evaluation": {"split": "dev"}})
    specs = resolve(trial.over(request), execution, registry, progress.note)
    if specs[0].suite is None:
        raise UsageError("--tune needs a retention suite", why="the rule weighs acquisition against retention")
    return specs


def _trial(
    point: dict[str, Any],
    specs: list[RunSpec],
    execution: Execution,
    registry: Registry,
    progress: ClosingProgress,
) -> Trial:
    from cl_bench.harness.runner import run_one

    measured: list[tuple[float, float]] = []
    directories, reason = [], ""
    for spec in specs:
        try:
            result = run_one(spec, execution, registry, progress)
        except InterruptedRunError:
            raise
        except ClBenchError as error:
            reason = f"seed {spec.seed}: {error.what}"
            continue
        directories.append(str(result.directory))
        found = [result.metrics["metrics"][name] for name in ("acquisition", "retention")]
        if any(metric["value"] is None for metric in found):
            reason = f"seed {spec.seed}: " + "; ".join(str(metric.get("reason", "")) for metric in found).strip("; ")
        else:
            measured.append((found[0]["value"], found[1]["value"]))
    if reason:
        return Trial(point, None, None, None, reason, tuple(directories))
    acquisition, retention = (fmean(values) for values in zip(*measured, strict=True))
    return Trial(point, acquisition, retention, (acquisition + retention) / 2, "", tuple(directories))


def _best(trials: list[Trial]) -> Trial:
    scored = [trial for trial in trials if trial.score is not None]
    if not scored:
        raise DivergedError("no trial has a score", why=trials[0].reason, hint="choose a milder grid")
    return max(scored, key=lambda trial: trial.score or 0.0)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
