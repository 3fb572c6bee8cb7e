"""The smallest designs hold what they promise: a shorter run of ``benchmarks/interval_coverage.py``."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from cl_bench.harness.measure.statistics import hierarchical, intervals

REPLICATIONS = {"t, ": 1200, "Wilson": 2000, "bootstrap": 400, "paired": 300, "item x seed": 300}
SPREAD = 2.6
"""Standard errors of the shorter simulation that the bounds are widened by."""


def load() -> ModuleType:
    path = Path(__file__).parents[2] / "benchmarks" / "interval_coverage.py"
    spec = importlib.util.spec_from_file_location("interval_coverage", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


BENCHMARK = load()
CASES = [case for case in BENCHMARK.cases() if not case.outside and not case.truth.startswith("8 columns")]


def is_kept(case: Any) -> bool:
    """Whether the share of intervals that hold the truth is compatible with 93 to 97 %."""
    replications = next(number for name, number in REPLICATIONS.items() if case.interval.startswith(name))
    share = BENCHMARK.coverage(case, replications)
    low, high = ((bound, (bound * (1 - bound) / replications) ** 0.5) for bound in (0.93, 0.97))
    return bool(low[0] - SPREAD * low[1] <= share <= high[0] + SPREAD * high[1])


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.interval}: {case.truth}")
def test_the_smallest_design_covers_what_it_says(case: Any) -> None:
    assert is_kept(case)


def test_too_small_a_design_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intervals, "WILSON_ITEMS", 5)
    monkeypatch.setattr(BENCHMARK, "WILSON_ITEMS", 5)
    assert not is_kept(BENCHMARK.wilson_case(0.4))


def test_an_interval_that_forgets_its_seeds_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hierarchical, "expansion", lambda *_: 1.0)
    assert not is_kept(BENCHMARK.hierarchical_case(1, 0, 0.2))


def test_an_interval_with_the_normal_quantile_over_five_seeds_is_noticed() -> None:
    def draw(generator: np.random.Generator) -> tuple[float, float]:
        values = generator.normal(0, 1, 5)
        half = 1.96 * values.std(ddof=1) / 5**0.5
        return values.mean() - half, values.mean() + half

    assert not is_kept(BENCHMARK.Case("t, with z", "5 seeds", "normal", 0.0, draw))
