"""What a stage remembers of its training rows: the same after a resume, and marked where the student drew them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cl_bench.methods.base import Method
from cl_bench.methods.grpo import GRPO
from cl_bench.methods.sdft import SDFT
from cl_bench.methods.sft import SFT
from cl_bench.methods.training import trained
from cl_bench.methods.training.trained import sample_order
from tests.support import Stopped, TinyContext, tiny_model, toy_examples, toy_stage

METHODS: dict[str, tuple[type[Method], dict[str, Any]]] = {
    "sft": (SFT, {}),
    "sdft": (SDFT, {"max_completion_length": 6}),
    "grpo": (GRPO, {"max_completion_length": 6, "samples": 2}),
}
SETTINGS = {"epochs": 2, "batch_size": 4, "learning_rate": 1e-3}


def adapt(name: str, context: TinyContext) -> None:
    cls, own = METHODS[name]
    cls(cls.Settings(**SETTINGS, **own)).adapt(tiny_model(0), toy_stage(toy_examples(8)), context)


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


def test_a_sample_of_many_rows_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trained, "MOST_TRAINED", 3)
    context = TinyContext(tmp_path)
    adapt("sft", context)
    ids = sorted((example.id for example in toy_examples(8)), key=sample_order)
    assert [row.example_id for row in context.ledger.trained] == ids[:3]
