"""A benchmark's cell has an interval: Wilson's where rows are right or wrong, a bootstrap where each has a share."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from cl_bench.harness.measure.statistics.intervals import bootstrap_mean, wilson
from cl_bench.harness.measure.suite_results import task_result
from cl_bench.harness.measure.task_result import TaskResult
from cl_bench.tasks.retention.benchmarks import Benchmark
from cl_bench.tasks.retention.suites import SuiteEntry


def result(scores: list[float], graded: bool) -> TaskResult:
    """What lm-eval's samples of a two-option benchmark become."""
    task: Any = SimpleNamespace(OUTPUT_TYPE="multiple_choice", VERSION=1)
    entry = SuiteEntry(name="harbour", source="lab-skill", task="harbour", metric="acc", chance=0.5)
    benchmark = Benchmark(entry, task, [f"h{number}" for number in range(len(scores))], graded=graded)
    logged = [
        {"doc_id": number, "doc": {}, "filter": "none", "prompt_hash": "0", "acc": score, "metrics": ["acc"],
         "resps": [[(-1.0, False)], [(-2.0, False)]], "arguments": [("Which?", " left"), ("Which?", " right")]}
        for number, score in enumerate(scores)
    ]  # fmt: skip
    means = {"acc,none": sum(scores) / len(scores)}
    return task_result(benchmark, range(len(scores)), logged, means, {}, 1.0)


def test_rows_that_are_right_or_wrong() -> None:
    found = result([1.0, 0.0, 1.0] * 30, graded=False)
    assert found.intervals == {"acc": wilson(60, 90)}


def test_rows_with_a_share_each() -> None:
    shares = [0.25, 0.5, 1.0, 0.0] * 20
    found = result(shares, graded=True)
    assert found.value == pytest.approx(0.4375)
    assert found.intervals == {"acc": bootstrap_mean(shares)}


@pytest.mark.parametrize("graded", [False, True])
def test_few_rows_have_none(graded: bool) -> None:
    assert result([1.0, 0.0] * 20, graded).intervals == {}
