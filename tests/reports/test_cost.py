"""What a run cost."""

from __future__ import annotations

import json

import pytest

from cl_bench.harness.documents import validate_document
from cl_bench.harness.measure.run_cost import evaluation_cost, run_cost
from cl_bench.harness.measure.task_result import TaskResult
from cl_bench.harness.run_directory import EVALUATION_COST, load_run
from cl_bench.reports.content import metrics_of
from cl_bench.reports.cost import cost_grid
from tests.reports.conftest import RunMaker


def test_evaluation_costs_a_forward_pass_for_every_token() -> None:
    cells = [TaskResult("a", "accuracy", 0.5, None, 0.0, tokens=10, computed_tokens=110), TaskResult(
        "b", "acc", 0.5, None, 0.0, computed_tokens=90)]  # fmt: skip
    assert evaluation_cost(cells, 1000) == {"generated_tokens": 10, "computed_tokens": 200, "flops": 2 * 1000 * 200}


def test_parts_add_up_and_evaluation_is_not_adaptation(run_maker: RunMaker) -> None:
    view = load_run(run_maker(), verify=False)
    for folder in view.stages.values():
        (folder / EVALUATION_COST).parent.mkdir(parents=True, exist_ok=True)
        found = {"generated_tokens": 1, "computed_tokens": 5, "flops": 4e15}
        (folder / EVALUATION_COST).write_text(json.dumps(found))
    metrics = metrics_of(view)
    cost = run_cost(view, metrics)
    validate_document(cost, "cost")
    stages = cost["stages"]
    total = cost["total"]["pflops"]
    assert total["evaluation"] == pytest.approx(4 * len(stages))
    spent = sum(sum(found["flops"].values()) for found in view.adaptations().values()) / 1e15
    assert (
        cost["total"]["adaptation_pflops"]
        == pytest.approx(spent)
        == pytest.approx(sum(value for part, value in total.items() if part != "evaluation"))
    )
    gain = metrics["metrics"]["gain"]["value"]
    assert cost["per_pflop"]["gain"]["value"] == pytest.approx(gain / spent)
    grid = cost_grid(cost)
    assert grid is not None
    assert grid.rows[-1][0] == "all"
    assert len(grid.rows) == len(stages) + 1


def test_a_run_that_adapted_nothing_has_no_quality_per_operation(run_maker: RunMaker) -> None:
    view = load_run(run_maker(bound="base"), verify=False)
    cost = run_cost(view, metrics_of(view))
    found = cost["per_pflop"]["retention_change"]
    assert found["value"] is None and found["reason"]
