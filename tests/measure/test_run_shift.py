from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any, cast

import pytest

import cl_bench.harness.measure.run_shift as run_shift_module
from cl_bench.harness.measure.matrix import Column
from cl_bench.harness.measure.run_evaluation import TaskColumn, decoded_together
from cl_bench.harness.measure.run_shift import ShiftMeter, sampled_rows
from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.harness.models.load import load_chat_model, resolve_model
from cl_bench.harness.spec import RunSpec
from cl_bench.methods.base import Precision
from cl_bench.tasks.lab.task import LabTask


def spec_of(precision: str = "fp32") -> RunSpec:
    """What measurement reads of a run's specification."""
    parts = SimpleNamespace(
        precision=Precision("fp32", cast(Any, precision)),
        evaluation=SimpleNamespace(system_prompt=None),
        evaluation_batch_size=16,
    )
    return cast(RunSpec, parts)


def column_of(name: str, rows: int = 6) -> TaskColumn:
    """The first test rows of a lab domain."""
    task = LabTask(name)
    return TaskColumn(Column(name, "sequence", 0.0, rows, "accuracy"), task, tuple(task.test()[:rows]))


COLUMNS = [column_of(name) for name in ("chemistry", "biology")]


@pytest.fixture(scope="module")
def models() -> list[ChatModel]:
    """Three models of one tokenizer that differ a little, as a student does after each stage."""
    found = []
    for move in (1.0, 1.02, 0.97):
        model = load_chat_model(resolve_model("lab-s", offline=True))
        for parameter in model.model.parameters():
            parameter.data.mul_(move)
        found.append(model)
    return found


def test_a_run_in_one_go_measures_what_a_resumed_one_measures(models: list[ChatModel]) -> None:
    base, first, second = models
    whole, resumed = ShiftMeter(spec_of(), COLUMNS), ShiftMeter(spec_of(), COLUMNS)
    one = whole.measure(1, base, base, first, ["chemistry"])
    two = whole.measure(2, base, first, second, ["biology"])
    assert resumed.measure(2, base, first, second, ["biology"]) == two
    assert list(two["previous_forward_kl"]) == ["biology"]
    assert one["previous_forward_kl"] == {"chemistry": one["forward_kl"]["chemistry"]}
    assert one["forward_kl_trained"] == one["forward_kl"]["chemistry"]["token_mean"] > 0
    assert two["previous_forward_kl"]["biology"] != two["forward_kl"]["biology"]


def test_no_shift_where_nothing_moved(models: list[ChatModel]) -> None:
    shift = ShiftMeter(spec_of(), COLUMNS).measure(1, models[0], models[0], models[0], ["chemistry"])
    for kind in ("forward_kl", "reverse_kl"):
        assert [value["token_mean"] for value in shift[kind].values()] == pytest.approx([0.0, 0.0], abs=1e-6)


def test_samples_of_another_stage_are_not_taken_for_the_previous_model(models: list[ChatModel]) -> None:
    base, first, second = models
    meter = ShiftMeter(spec_of(), COLUMNS)
    meter.measure(1, base, base, second, ["chemistry"])
    # Stage 2 was read back from disk: the meter goes on with stage 3 and must draw from the model it is given.
    later = meter.measure(3, base, first, second, ["chemistry"])
    assert later == ShiftMeter(spec_of(), COLUMNS).measure(3, base, first, second, ["chemistry"])


@pytest.mark.parametrize(("precision", "groups"), [("fp32", 1), ("bf16", 2)])
def test_columns_share_batches_only_where_rows_do_not_influence_each_other(precision: str, groups: int) -> None:
    found = decoded_together(COLUMNS, spec_of(precision))
    assert len(found) == groups
    assert [item.column.name for _, items in found for item in items] == ["chemistry", "biology"]


def test_columns_of_other_length_limits_are_decoded_apart() -> None:
    short = LabTask("biology")
    short.max_new_tokens = 5
    columns = [COLUMNS[0], dataclasses.replace(COLUMNS[1], task=short)]
    assert [settings.max_new_tokens for settings, _ in decoded_together(columns, spec_of())] == [64, 5]


def test_samples_for_shift_are_cut_where_a_task_allows_long_answers(
    models: list[ChatModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_shift_module, "_LONGEST", 5)
    rows = sampled_rows(models[0], spec_of(), COLUMNS)
    assert max(len(completion) for own in rows.values() for _, completion in own) == 5
