"""Tuning: every point of the grid on dev rows, one rule, and the recipe that comes of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cl_bench.harness import runner
from cl_bench.harness.errors import DivergedError, UsageError
from cl_bench.harness.profile_files import load_recipe
from cl_bench.harness.progress import SilentProgress
from cl_bench.harness.registry import Registry
from cl_bench.harness.request import Request
from cl_bench.harness.spec import Execution, RunSpec
from cl_bench.harness.tune import TuneResult, render, tune, write_recipe

Scores = Callable[[float, float], tuple[float | None, float | None]]


@dataclass
class Result:
    directory: Path
    metrics: dict[str, Any]


@pytest.fixture()
def seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[RunSpec]:
    """Specifications that were run; acquisition and retention come from ``SCORES``."""
    specs: list[RunSpec] = []

    def run_one(spec: RunSpec, execution: Execution, registry: Registry, progress: Any) -> Result:
        specs.append(spec)
        assert spec.method is not None
        settings = spec.method.settings
        acquisition, retention = scores(settings["learning_rate"], settings["epochs"])
        if acquisition is None:
            raise DivergedError("loss is not finite")
        metrics = {"acquisition": {"value": acquisition}, "retention": {"value": retention, "reason": "no suite row"}}
        return Result(execution.output / "x", {"metrics": metrics})

    monkeypatch.setattr(runner, "run_one", run_one)
    return specs


def scores(learning_rate: float, epochs: float) -> tuple[float | None, float | None]:
    """Higher rates learn more and forget more; the highest diverges with two epochs."""
    if learning_rate == 0.3:
        return (None, None) if epochs == 2 else (0.9, 0.1)
    return (0.6, 0.7) if (learning_rate, epochs) == (0.2, 1) else (0.4, 0.8)


@pytest.fixture()
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "mine.yaml"
    text = "name: mine\ndefaults: {batch_size: 8}\nmethods: {sft: {weight_decay: 0.5}}\n"
    path.write_text(text + "grid: {learning_rate: [0.1, 0.2, 0.3], epochs: [1, 2]}\n", encoding="utf-8")
    return path


def tuned(recipe: Path, tiny: Path, **options: Any) -> TuneResult:
    request = Request(**{"method": "sft", "sequence": "skills", "profile": "lab", "limit": 2} | options)
    request = request.model_copy(update={"recipe": str(recipe), "model": str(tiny)})
    return tune(request, Execution(output=recipe.parent / "runs"), Registry(), SilentProgress(quiet=True))


def test_all_points_on_dev_rows_and_the_best_mean_wins(seen: list[RunSpec], recipe: Path, tiny: Path) -> None:
    result = tuned(recipe, tiny)
    assert len(seen) == len(result.trials) == 6
    assert {spec.evaluation.split for spec in seen} == {"dev"}
    assert dict(result.chosen) == {"learning_rate": 0.2, "epochs": 1}
    failed = [trial for trial in result.trials if trial.score is None]
    assert [(trial.settings, "not finite" in trial.reason) for trial in failed] == [
        ({"learning_rate": 0.3, "epochs": 2}, True)
    ]
    assert json.loads(result.file.read_text())["trials"] == json.loads(json.dumps(result.to_json()))["trials"]
    table = render(result).splitlines()
    assert "chosen" in next(line for line in table if line.split()[:2] == ["0.2", "1"])


def test_every_seed_counts(seen: list[RunSpec], recipe: Path, tiny: Path) -> None:
    tuned(recipe, tiny, seeds=(0, 4))
    assert [spec.seed for spec in seen] == [0, 4] * 6


def test_recipe_receives_the_choice_and_keeps_the_rest(seen: list[RunSpec], recipe: Path, tiny: Path) -> None:
    result = tuned(recipe, tiny)
    write_recipe(result, recipe)
    content = load_recipe(str(recipe))
    assert content.methods["sft"] == {"weight_decay": 0.5, "learning_rate": 0.2, "epochs": 1}
    assert content.defaults == {"batch_size": 8}
    assert content.grid == {"learning_rate": (0.1, 0.2, 0.3), "epochs": (1, 2)}


def test_a_new_recipe_begins_as_a_copy_of_the_one_tuned_from(
    seen: list[RunSpec], recipe: Path, tiny: Path, tmp_path: Path
) -> None:
    write_recipe(tuned(recipe, tiny), tmp_path / "fresh.yaml")
    content = load_recipe(str(tmp_path / "fresh.yaml"))
    assert (content.name, content.defaults) == ("fresh", {"batch_size": 8})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "base"}, "needs a method"),
        ({"settings": {"method": {"epochs": 3}}}, "exclude each other"),
        ({"settings": {"evaluation": {"split": "test"}}}, "dev rows"),
        ({"suite": "none"}, "needs a retention suite"),
    ],
)
def test_what_cannot_be_tuned(
    seen: list[RunSpec], recipe: Path, tiny: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        tuned(recipe, tiny, **options)
    assert seen == []


def test_nothing_to_choose_from(seen: list[RunSpec], recipe: Path, tiny: Path) -> None:
    recipe.write_text("name: mine\ngrid: {learning_rate: [0.3], epochs: [2]}\n", encoding="utf-8")
    with pytest.raises(DivergedError, match="no trial has a score"):
        tuned(recipe, tiny)
