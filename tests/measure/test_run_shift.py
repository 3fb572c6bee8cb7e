"""The shift panel of a run: the same in one go and resumed, its cost, its document, and rows without numbers."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch

from cl_bench.harness.cache import Cache
from cl_bench.harness.context import sampler_for
from cl_bench.harness.documents import validate_document
from cl_bench.harness.generation.local import LocalSampler
from cl_bench.harness.measure import evaluation
from cl_bench.harness.measure.matrix import Column
from cl_bench.harness.measure.run_evaluation import TaskColumn, decoded_together
from cl_bench.harness.measure.shift import answers as answers_module
from cl_bench.harness.measure.shift import divergence
from cl_bench.harness.measure.shift.contexts import PromptSets
from cl_bench.harness.measure.shift.panel import ShiftMeter
from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.harness.models.load import load_chat_model, resolve_model
from cl_bench.harness.spec import RunSpec
from cl_bench.methods.base import Precision
from cl_bench.methods.training.trained import TrainedRow, sample_order
from cl_bench.tasks.base import Example
from cl_bench.tasks.lab.task import LabTask
from cl_bench.tasks.sources.base import DataOptions

TASKS = {name: LabTask(name) for name in ("chemistry", "biology")}
LEARNED = [("chemistry",), ("biology",), ("chemistry",)]
ROWS = 12


def spec_of(precision: str = "fp32", split: str = "test") -> RunSpec:
    """What measurement reads of a run's specification."""
    parts = SimpleNamespace(
        precision=Precision("fp32", cast(Any, precision)),
        evaluation=SimpleNamespace(system_prompt=None, split=split),
        evaluation_batch_size=16,
        suite=None,
    )
    return cast(RunSpec, parts)


def column_of(name: str, rows: int = ROWS) -> TaskColumn:
    """The first test rows of a lab domain."""
    task = TASKS[name]
    return TaskColumn(Column(name, "sequence", 0.0, rows, "accuracy"), task, tuple(task.test()[:rows]))


COLUMNS = [column_of(name) for name in TASKS]


def stage_rows(index: int) -> Sequence[Example]:
    return TASKS[LEARNED[index - 1][0]].train()[:20]


def responses(index: int) -> Mapping[str, Sequence[Mapping[str, Any]]]:
    rows = [{"id": str(i), "response": f"it is {i + index}", "tokens": 3 + index, "ended": "eos"} for i in range(4)]
    return dict.fromkeys(TASKS, rows)


def meter(precision: str = "fp32", cache: Cache | None = None, rows: int = ROWS) -> ShiftMeter:
    spec = spec_of(precision)
    columns = [column_of(name, rows) for name in TASKS]
    sets = PromptSets(spec, columns, {}, DataOptions(source="lab"), stage_rows)
    return ShiftMeter(spec, LEARNED, sets, responses, cache, lambda index: (f"weights {index}", "tokenizer"))


def trained_of(model: ChatModel, index: int, on_policy: bool = False) -> list[TrainedRow]:
    rows = sorted(stage_rows(index), key=lambda example: sample_order(example.id))
    return [
        TrainedRow(e.id, model.prompt_ids(e.messages), model.completion_ids(str(e.demonstration)), on_policy)
        for e in rows
    ]


def find(shift: Mapping[str, Any], measure: str, **wanted: str) -> Mapping[str, Any]:
    return next(
        record
        for record in shift["measures"]
        if record["measure"] == measure and all(record[name] == value for name, value in wanted.items())
    )


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


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_run_in_one_go_measures_what_a_resumed_one_measures(models: list[ChatModel], precision: str) -> None:
    base, first, second = models
    whole, resumed = meter(precision), meter(precision)
    trained = trained_of(base, 2)
    one = whole.measure(1, base, base, first, trained_of(base, 1))
    two = whole.measure(2, base, first, second, trained)
    # The resumed one starts with the second stage, and draws the previous model's answers itself.
    assert resumed.measure(2, base, first, second, trained) == two
    validate_document(one, "shift")
    validate_document(two, "shift")
    assert one["forward_kl_trained"] == one["primary"]["value"] == one["measures"][0]["value"] > 0
    for measure in ("forward_kl", "reverse_kl", "training_nll", "parameter_relative_l2", "response_length_ratio"):
        same = find(one, measure, against="base")["value"]
        assert find(one, measure, against="previous")["value"] == same, "before the first stage both are one model"
        assert find(two, measure, against="previous")["value"] != find(two, measure, against="base")["value"]


def test_answers_of_another_stage_are_not_taken_for_the_previous_models(models: list[ChatModel]) -> None:
    base, first, second = models
    one = meter()
    one.measure(1, base, base, second)
    # Stage 2 was read back from disk: the meter goes on with stage 3 and must draw from the model it is given.
    assert one.measure(3, base, first, second) == meter().measure(3, base, first, second)


def test_no_shift_where_nothing_moved(models: list[ChatModel]) -> None:
    base = models[0]
    shift = meter().measure(1, base, base, base, trained_of(base, 1))
    for record in shift["measures"]:
        if record["measure"] in ("forward_kl", "reverse_kl", "response_mmd2", "parameter_relative_l2"):
            assert record["value"] is None or record["value"] == pytest.approx(0, abs=1e-6)
    assert find(shift, "top1_agreement", prompts="new task")["value"] == 1.0


def test_every_number_says_what_it_is(models: list[ChatModel]) -> None:
    base, first, second = models
    shift = meter().measure(2, base, first, second, trained_of(base, 2))
    for record in shift["measures"]:
        assert all(record[name] for name in ("measure", "against", "prompts", "contexts", "reduction", "unit"))
        assert (record["value"] is None) <= bool(record.get("reason")), record
        assert record["n"] > 0 or record["value"] is None
    primary = shift["primary"]
    assert (primary["against"], primary["prompts"], primary["reduction"]) == ("base", "new task", "token mean")
    assert list(primary["by"]) == ["biology"]
    assert find(shift, "forward_kl", prompts="general")["reason"] == "the run has no retention suite"
    names = {(r["measure"], r["against"], r["prompts"], r["reduction"]) for r in shift["measures"]}
    assert len(names) == len(shift["measures"]), "no two records are of the same thing"
    assert shift["prompt_sets"]["new task"]["n"] == 4


def test_likelihood_of_a_models_own_answers_has_no_excess(models: list[ChatModel]) -> None:
    base = models[0]
    one = meter()
    training = one._sets.training(base, 1)
    answers = one._answers.of_base(base, [training])[training.key]
    rows = [TrainedRow(p.id, p.ids, ids) for p, ids in zip(training.prompts, answers, strict=True)]
    shift = one.measure(1, base, base, models[1], rows)
    assert find(shift, "training_nll_excess")["value"] == pytest.approx(0, abs=1e-9)
    assert find(shift, "training_nll")["value"] > 0
    gold = one.measure(1, base, base, models[1], trained_of(base, 1))
    assert find(gold, "training_nll_excess")["value"] > 1, "the demonstrations are in a style of their own"


def test_own_rollouts_are_marked_and_a_method_without_rows_has_no_number(models: list[ChatModel]) -> None:
    base = models[0]
    marked = meter().measure(1, base, base, models[1], trained_of(base, 1, on_policy=True))
    assert "not comparable" in find(marked, "training_nll")["reason"]
    assert find(marked, "training_nll")["value"] > 0
    without = meter().measure(1, base, base, models[1])
    for name in ("training_nll", "training_nll_excess"):
        assert find(without, name)["value"] is None
        assert "keeps no rows" in find(without, name)["reason"]


def test_rows_of_other_prompts_have_a_likelihood_but_no_excess(models: list[ChatModel]) -> None:
    base = models[0]
    rows = [TrainedRow("elsewhere", (5, 6, 7), (8, 9))]
    shift = meter().measure(1, base, base, models[1], rows)
    assert find(shift, "training_nll")["n"] == 2
    assert find(shift, "training_nll_excess")["value"] is None


def test_one_sampling_pass_a_stage_and_none_of_the_untouched_model_when_cached(
    models: list[ChatModel], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base, first, second = models
    drawn: list[ChatModel] = []
    real = sampler_for

    def spy(model: ChatModel, precision: Precision, *kept: Any) -> Any:
        drawn.append(model)
        return real(model, precision, *kept)

    monkeypatch.setattr(answers_module, "sampler_for", spy)
    for expected in ([first, base, second, base], []):
        drawn.clear()
        one = meter(cache=Cache(tmp_path))
        one.measure(1, base, base, first)
        one.measure(2, base, first, second)
        assert [id(model) for model in drawn] == [id(model) for model in expected]


def test_measuring_leaves_no_trace(models: list[ChatModel]) -> None:
    base, first, second = models
    second.model.train()
    state, before = torch.get_rng_state(), [p.clone() for p in second.model.parameters()]
    meter().measure(2, base, first, second, trained_of(base, 2))
    assert second.model.training and not base.model.training
    assert torch.equal(state, torch.get_rng_state())
    assert all(torch.equal(a, b) for a, b in zip(before, second.model.parameters(), strict=True))
    second.model.eval()


def states() -> tuple[str, str, bytes]:
    """Of every global generator."""
    return str(random.getstate()), str(np.random.get_state()), bytes(torch.get_rng_state().numpy())


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("place", ["sampling", "reading"])
@pytest.mark.parametrize("draw", [random.random, np.random.rand, lambda: torch.rand(3)])
def test_a_library_that_draws_within_the_panel_moves_no_generator(
    models: list[ChatModel], draw: Callable[[], Any], place: str, kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    where: Any = LocalSampler if place == "sampling" else divergence
    name = "generate" if place == "sampling" else "hidden_at"
    original = getattr(where, name)

    def drawing(*args: Any) -> Any:
        draw()
        return original(*args)

    monkeypatch.setattr(where, name, drawing)
    if not kept:
        monkeypatch.setattr(evaluation, "preserved_rng", nullcontext)
    base, first, second = models
    before = states()
    meter().measure(2, base, first, second, trained_of(base, 2))
    assert (states() == before) is kept, "without the guard the planted draw must show"


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


def test_answers_are_cut_where_a_task_allows_long_ones(
    models: list[ChatModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cl_bench.harness.measure.shift.contexts.LONGEST_ANSWER", 5)
    one = meter()
    found = one._sets.new_task(models[0], ["chemistry"])
    answers = one._answers.of_base(models[0], [found])[found.key]
    assert max(len(ids) for ids in answers) == 5
