"""Learning rates of a stage: warmed up over a share of its steps, and never over all of them."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from cl_bench.harness.registry import Registry
from cl_bench.methods.base import Adaptation
from tests.support import TinyContext, tiny_model, toy_examples, toy_stage, weights

METHODS = ("sft", "sdft")


def adapted(method: str, folder: Path, rows: int, **settings: object) -> tuple[Adaptation, bool]:
    """What a stage of batches of 4 reports, and whether its weights moved."""
    found = Registry().method_class(method)
    given = {"batch_size": 4, "epochs": 1, "learning_rate": 1e-3, "max_length": 200, **settings}
    if "max_completion_length" in found.Settings.model_fields:
        given["max_completion_length"] = 16
    student = tiny_model(0)
    before = weights(student)
    adaptation = found(found.Settings(**given)).adapt(student, toy_stage(toy_examples(rows)), TinyContext(folder))
    return adaptation, any(not torch.equal(before[name], value) for name, value in weights(student).items())


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("schedule", ["cosine", "linear", "constant"])
def test_a_stage_of_one_step_trains(method: str, schedule: str, tmp_path: Path) -> None:
    adaptation, moved = adapted(method, tmp_path, rows=4, schedule=schedule)
    assert [log["learning_rate"] for log in adaptation.logs] == [1e-3] and moved


@pytest.mark.parametrize(
    ("rows", "ratio", "rates"),
    [
        (16, 0.0, [1.0, 1.0, 1.0, 1.0]),
        (16, 0.1, [0.0, 1.0, 1.0, 1.0]),
        (16, 0.5, [0.0, 0.5, 1.0, 1.0]),
        (16, 0.99, [0.0, 1 / 3, 2 / 3, 1.0]),
        (8, 0.1, [0.0, 1.0]),
    ],
)
def test_warm_up_takes_its_share_of_the_steps_rounded_up(
    rows: int, ratio: float, rates: list[float], tmp_path: Path
) -> None:
    adaptation, _ = adapted("sft", tmp_path, rows, warmup_ratio=ratio, schedule="constant")
    assert [log["learning_rate"] for log in adaptation.logs] == pytest.approx([1e-3 * rate for rate in rates])
