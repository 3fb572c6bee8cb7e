"""The examples are a working ``--include-path`` folder."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

from cl_bench.harness.registry import Registry
from cl_bench.methods.base import Context, Stage, Student

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


@pytest.fixture(scope="module")
def registry() -> Registry:
    return Registry([EXAMPLES])


def test_they_are_found_by_their_files(registry: Registry) -> None:
    assert {"smoothed-sft", "jeffreys-sdft"} <= set(registry.methods())
    assert "pull-back" in registry.modifiers()
    assert [stage.rows for stage in registry.sequence("two-sciences").resolve("reversed").stages] == [128, 128]


def test_the_penalty_is_zero_at_the_anchor_and_half_the_squared_distance_off_it(registry: Registry) -> None:
    def chat(value: float) -> Any:
        model = torch.nn.Linear(2, 1)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.fill_(value)
        return SimpleNamespace(model=model)

    modifier_class: Any = registry.modifier_class("pull-back")
    modifier = modifier_class(modifier_class.Settings(strength=0.5))
    context = cast(Context, SimpleNamespace(task_start=lambda: chat(1.0)))
    modifier.before_stage(cast(Student, chat(1.0)), cast(Stage, None), context)
    at_anchor = modifier.parameter_penalty(cast(Student, chat(1.0)))
    moved = modifier.parameter_penalty(cast(Student, chat(3.0)))
    assert at_anchor is not None and at_anchor.item() == 0.0
    assert moved is not None and math.isclose(moved.item(), 0.5 * 0.5 * 3 * 2.0**2)


@pytest.mark.end_to_end
@pytest.mark.parametrize(
    "arguments",
    [("--method", "smoothed-sft"), ("--method", "jeffreys-sdft"), ("--method", "sft", "--with", "pull-back")],
)
def test_they_run(arguments: tuple[str, ...], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "cl_bench.harness.cli", "run", *arguments, "--sequence", "two-sciences",
               "--include-path", str(EXAMPLES), "--limit", "16", "--output", str(tmp_path)]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    directory = tmp_path / done.stdout.strip().splitlines()[-1]
    matrix = json.loads((directory / "matrix.json").read_text(encoding="utf-8"))
    assert matrix["rows"] == ["base", "chemistry", "physics"]
    adaptation = json.loads((directory / "stages" / "01-chemistry" / "adaptation.json").read_text(encoding="utf-8"))
    assert adaptation["steps"] > 0
