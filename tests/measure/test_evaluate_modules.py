"""The measures as local ``evaluate`` modules: the same numbers, with no network."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cl_bench.harness.errors import UnknownNameError
from cl_bench.harness.measure.evaluate_modules import EVALUATE_MODULES, evaluate_module
from cl_bench.harness.measure.plain_matrix import PlainMatrix
from cl_bench.harness.measure.run_metrics import run_metrics
from cl_bench.harness.measure.samplewise import sample_wise

GOLDEN = Path(__file__).parents[1] / "golden"
TASKS = ["a", "b", "c", "d"]


def test_matrix_metrics_are_those_of_the_golden_vector() -> None:
    vector = json.loads((GOLDEN / "cl_metrics_a.json").read_text())
    inputs, expected = vector["inputs"], vector["expected"]
    joint = dict(zip(TASKS, inputs["joint_reference"], strict=True))
    found = evaluate_module("continual_learning").compute(
        predictions=inputs["R"], tasks=TASKS, base=inputs["base"], joint=joint
    )
    names = {
        "average_accuracy": "average_accuracy_final",
        "average_incremental_accuracy": "average_incremental_accuracy",
        "backward_transfer": "BWT",
        "forward_transfer": "FWT_vs_base",
        "forgetting": "forgetting_max_from_learn",
        "forgetting_all_past": "forgetting_max_past_minus_final",
        "intransigence": "intransigence",
        "acquisition": "learning_accuracy_diag",
        "gain": "acquisition_gain_over_base",
    }
    assert {name: found[name] for name in names} == pytest.approx({n: expected[other] for n, other in names.items()})
    assert found["retention"] is None and found["reasons"]["retention"] == "the run has no retention suite"


def test_every_metric_of_a_run_is_there() -> None:
    scores = [[0.8, 0.1], [0.6, None], [0.9, 0.7]]
    columns = {"chance": {"a": 0.25}, "items": {"a": 100, "b": 80}, "retention": {"r": [0.5, 0.49, 0.4, 0.45]},
               "retention_items": {"r": 200}}  # fmt: skip
    learned = ["a", "b", "a"]
    found = evaluate_module("continual_learning").compute(
        predictions=scores, tasks=["a", "b"], base=[0.2, 0.1], learned=learned, **columns
    )
    plain = PlainMatrix.of(scores, ["a", "b"], [0.2, 0.1], learned, **columns)  # type: ignore[arg-type]
    assert plain.matrix.rows == ("base", "a", "b", "a-2")
    expected = run_metrics(plain.matrix, plain.learned)["metrics"]
    assert {name: one["value"] for name, one in expected.items()} == {n: v for n, v in found.items() if n != "reasons"}
    assert found["reasons"]["acquisition"] == "b/b: not evaluated"
    assert found["retention_change"] == pytest.approx(-0.05)


def test_sample_wise_forgetting_is_the_products() -> None:
    vector = json.loads((GOLDEN / "samplewise_a.json").read_text())["inputs"]
    found = evaluate_module("sample_wise_forgetting").compute(
        predictions=vector["post"], references=vector["pre"], options=4
    )
    expected = sample_wise(vector["pre"], vector["post"], 4)
    assert (found["forgotten"], found["gained"]) == (expected.forgotten, expected.gained) == (3, 1)
    assert found["forgetting_adjusted"] == pytest.approx(expected.adjusted(expected.forgetting))
    open_ended = evaluate_module("sample_wise_forgetting").compute(predictions=[False, True], references=[True, True])
    assert open_ended["forgetting_adjusted"] == open_ended["forgetting"] == 0.5


def test_rows_that_do_not_fit_are_refused() -> None:
    module = evaluate_module("continual_learning")
    with pytest.raises(ValueError, match="one score for each of the 3 tasks"):
        module.compute(predictions=[[0.1, 0.2]], tasks=["a", "b", "c"])
    with pytest.raises(ValueError, match="what each stage trained on"):
        PlainMatrix.of([[0.1], [0.2]], ["a"])
    with pytest.raises(ValueError, match="r needs the untouched model's score"):
        PlainMatrix.of([[0.1]], ["a"], retention={"r": [0.1]})


def test_an_unknown_name_is_refused_and_known_ones_load_with_descriptions() -> None:
    with pytest.raises(UnknownNameError, match="continual_learnin"):
        evaluate_module("continual_learnin")
    for name in EVALUATE_MODULES:
        module = evaluate_module(name)
        assert module.description.strip() and "predictions" in module.inputs_description


def test_names_of_stages_stay_apart_whatever_tasks_are_called() -> None:
    again = PlainMatrix.of([[0.8, 0.1], [0.4, 0.7], [0.9, 0.5]], ["a", "a-2"], learned=["a", "a-2", "a"])
    assert again.matrix.rows == ("a", "a-2", "a-3") and list(again.learned.values()) == [("a",), ("a-2",), ("a",)]
    base = PlainMatrix.of([[0.8], [0.9]], ["base"], [0.1], learned=["base", "base"])
    assert base.matrix.rows == ("base", "base-2", "base-3") and base.matrix.value("base", "base") == 0.1


def test_a_missing_joint_score_is_a_reason() -> None:
    found = evaluate_module("continual_learning").compute(
        predictions=[[0.8, 0.1], [0.6, 0.9]], tasks=["a", "b"], joint={"a": None, "b": 0.9}
    )
    assert found["intransigence"] is None and found["reasons"]["intransigence"] == "no joint reference for a"


def test_a_grade_is_no_verdict() -> None:
    with pytest.raises(ValueError, match="right .1. or wrong .0., not 2"):
        evaluate_module("sample_wise_forgetting").compute(predictions=[2, 0], references=[1, 0])
