"""What a stage remembers of its training rows: the same after a resume, and marked where the student drew them."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from cl_bench.harness.measure.shift.divergence import measure_nll
from cl_bench.harness.measure.shift.trained import Reader, training_records
from cl_bench.methods.base import Method
from cl_bench.methods.grpo import GRPO
from cl_bench.methods.sdft import SDFT
from cl_bench.methods.sft import SFT
from cl_bench.methods.training import trained
from cl_bench.methods.training.trained import TrainedRow, sample_order
from cl_bench.tasks.base import Example
from tests.support import Stopped, TinyContext, tiny_model, toy_examples, toy_stage

METHODS: dict[str, tuple[type[Method], dict[str, Any]]] = {
    "sft": (SFT, {}),
    "sdft": (SDFT, {"max_completion_length": 6}),
    "grpo": (GRPO, {"max_completion_length": 6, "samples": 2}),
}
SETTINGS = {"epochs": 2, "batch_size": 4, "learning_rate": 1e-3}


def adapt(name: str, context: TinyContext, examples: Sequence[Example] | None = None) -> None:
    cls, own = METHODS[name]
    cls(cls.Settings(**SETTINGS, **own)).adapt(tiny_model(0), toy_stage(examples or toy_examples(8)), context)


@pytest.mark.parametrize("name", METHODS)
def test_rows_are_remembered_and_the_same_after_a_resume(name: str, tmp_path: Path) -> None:
    whole = TinyContext(tmp_path / "whole", original=tiny_model(0))
    adapt(name, whole)
    stopped = TinyContext(tmp_path / "cut", original=tiny_model(0), every_steps=1, stop_at=3)
    with pytest.raises(Stopped):
        adapt(name, stopped)
    resumed = TinyContext(tmp_path / "cut", original=tiny_model(0), every_steps=1)
    adapt(name, resumed)
    rows = whole.ledger.trained
    assert resumed.ledger.trained == rows and len(rows) == 8
    assert [row.example_id for row in rows] == sorted((row.example_id for row in rows), key=sample_order)
    assert {row.on_policy for row in rows} == {name != "sft"}
    model, examples = tiny_model(0), {example.id: example for example in toy_examples(8)}
    for row in rows:
        assert row.prompt_ids == model.prompt_ids(examples[row.example_id].messages)
        if name == "sft":
            assert row.completion_ids == model.completion_ids(str(examples[row.example_id].demonstration))
        else:
            drawn = [tuple(found["tokens"]) for found in whole.ledger if found["id"] == row.example_id]
            assert row.completion_ids == drawn[0]


def test_a_rollout_is_never_put_under_the_prompt_of_another_task_that_has_its_id(tmp_path: Path) -> None:
    first = toy_examples(4)
    shared = dataclasses.replace(
        first[0], task="other", messages=({"role": "user", "content": "What is something else?"},)
    )
    context = TinyContext(tmp_path, original=tiny_model(0))
    adapt("sdft", context, [*first, shared])
    drawn = {row["id"] for row in context.ledger}
    assert {row.example_id for row in context.ledger.trained} == drawn - {shared.id}
    assert shared.id in drawn, "else the test could not fail"


def test_a_sample_of_many_rows_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trained, "MOST_TRAINED", 3)
    context = TinyContext(tmp_path)
    adapt("sft", context)
    ids = sorted((example.id for example in toy_examples(8)), key=sample_order)
    assert [row.example_id for row in context.ledger.trained] == ids[:3]


def test_likelihood_of_training_rows_is_never_called_a_divergence_and_own_rollouts_are_marked_everywhere() -> None:
    base, start = tiny_model(0), tiny_model(1)
    rows = [TrainedRow(str(i), (3, 10 + i), (5, 6, 7)[: 1 + i % 3], on_policy=i == 2) for i in range(6)]
    own = {row.prompt_ids: (8, 9, 4, 4) for row in rows[:4]}
    records = training_records(rows, [Reader("base", base, own), Reader("previous", start, own)], 6)
    for record in records:
        assert record.measure in ("training_nll", "training_nll_excess")
        assert not re.search(r"\bkl\b|diverg", " ".join((record.measure, record.contexts, record.unit)).lower())
        assert "not comparable" in record.reason, "one rollout of the student's own among the rows is enough"
    assert not any(record.reason for record in training_records(rows[:2], [Reader("base", base, own)], 6))


def test_excess_is_over_the_same_prompts_under_the_same_model() -> None:
    base, start = tiny_model(0), tiny_model(1)
    rows = [TrainedRow(str(i), (3, 10 + i), (5, 6, 7)[: 1 + i % 3]) for i in range(6)]
    own = {row.prompt_ids: (8, 9, 4, 4)[: 1 + i] for i, row in enumerate(rows[:4])}
    found = training_records(rows, [Reader("base", base, own), Reader("previous", start, own)], 6)
    for against, model in (("base", base), ("previous", start)):
        theirs = measure_nll(model, [(row.prompt_ids, row.completion_ids) for row in rows[:4]])
        ours = measure_nll(model, [(row.prompt_ids, own[row.prompt_ids]) for row in rows[:4]])
        every = measure_nll(model, [(row.prompt_ids, row.completion_ids) for row in rows])
        for reduction, n in (("token", "tokens"), ("sequence", "sequences")):
            mean = f"{reduction}_mean"
            nll, excess = (
                next(r for r in found if (r.measure, r.against, r.reduction) == (name, against, f"{reduction} mean"))
                for name in ("training_nll", "training_nll_excess")
            )
            assert nll.value == pytest.approx(every[mean], rel=1e-5)
            assert nll.n == every[n]
            assert excess.value == pytest.approx(float(theirs[mean] or 0) - float(ours[mean] or 0), rel=1e-4)
            assert f"minus {ours[n]} {'tokens' if reduction == 'token' else 'rows'} of the " in excess.contexts
            assert excess.n == theirs[n], "rows without an own answer to compare with do not count"
            assert excess.by["own answers"] == pytest.approx(ours[mean], rel=1e-5)
