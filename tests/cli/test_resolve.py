"""From a request to a specification: what wins over what, and that a saved specification gives itself again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cl_bench.harness.branching import continued
from cl_bench.harness.errors import UsageError
from cl_bench.harness.models.by_name import settled_precision
from cl_bench.harness.models.safetensors_header import stored_parameters
from cl_bench.harness.profile_files import (
    PrecisionChoice,
    load_profile,
    load_recipe,
    profile_for_model,
    profile_names,
    recipe_names,
)
from cl_bench.harness.registry import Registry
from cl_bench.harness.request import Request, read_request, request_of
from cl_bench.harness.resolve import changes, differences, resolve
from cl_bench.harness.run_directory import run_path
from cl_bench.harness.spec import Execution, RunSpec
from cl_bench.methods.base import Need
from cl_bench.tasks.lab.conditioning import TRAINED


def resolved(**options: Any) -> RunSpec:
    """The specification of a request on the lab, remarks being failures."""
    request = Request(**{"sequence": "skills", "profile": "lab", "suite": "none", "method": "sft"} | options)

    def no_note(message: str) -> None:
        raise AssertionError(message)

    (spec,) = resolve(request, Execution(), Registry(), no_note)
    return spec


def test_profile_fills_what_is_not_said(tiny: Path) -> None:
    spec = resolved(model=str(tiny), suite=None)
    profile = load_profile("lab")
    assert spec.method is not None
    assert (spec.profile, spec.recipe) == ("lab", profile.recipe)
    assert spec.evaluation == profile.evaluation
    assert spec.suite is not None
    assert (spec.suite.name, spec.suite.tier) == (profile.suite, profile.tier)
    assert spec.method.settings["learning_rate"] == _recipe_value("sft", "learning_rate")
    assert spec.lab_version is not None
    assert [task.name for task in spec.tasks] == ["science-mixture", "tool-use", "math"]


def _recipe_value(method: str, setting: str) -> Any:
    recipe = load_recipe("lab")
    return recipe.methods.get(method, {}).get(setting, recipe.defaults[setting])


def test_command_line_over_recipe(tiny: Path) -> None:
    spec = resolved(model=str(tiny), settings={"method": {"learning_rate": 1e-6}})
    assert spec.method is not None
    assert spec.method.settings["learning_rate"] == 1e-6
    assert spec.method.settings["batch_size"] == _recipe_value("sft", "batch_size")


@pytest.mark.parametrize("name", recipe_names())
def test_every_recipe_fits_every_method(name: str) -> None:
    registry, recipe = Registry(), load_recipe(name)
    for method in registry.methods():
        settings = registry.method_class(method).Settings
        settings(**recipe.method_settings(method, settings.model_fields))
    assert set(recipe.methods) <= set(registry.methods())
    assert set(recipe.grid) <= {"learning_rate", "epochs"}


@pytest.mark.parametrize("name", profile_names())
def test_every_profile_names_what_exists(name: str) -> None:
    profile = load_profile(name)
    assert profile.recipe in recipe_names()
    assert profile.suite in Registry().suites()


def test_lab_templates_are_what_pretraining_taught(tiny: Path, larger: Path) -> None:
    for template in load_profile("lab").templates.values():
        assert template == TRAINED[0]
    spec = resolved(method="synthself", model=str(tiny), aligner=str(larger))
    assert spec.method is not None
    assert spec.method.settings["rewrite_template"] == TRAINED[0]


@pytest.mark.parametrize(
    ("model", "profile"),
    [
        (None, "lab"),
        ("lab-s", "lab"),
        ("Qwen/Qwen2.5-0.5B-Instruct", "paper"),
        ("/models/qwen2.5-1.5b", "paper"),
        ("smollm2-135m", "laptop"),
        ("/somewhere/else", "laptop"),
    ],
)
def test_the_model_chooses_the_profile(model: str | None, profile: str) -> None:
    assert profile_for_model(model) == profile


def test_the_limit_cuts_rows_everywhere(tiny: Path) -> None:
    spec = resolved(model=str(tiny), limit=3)
    assert {stage.rows for stage in spec.sequence.stages} == {3}
    assert (spec.evaluation.rows, spec.evaluation.ood_rows, spec.evaluation.suite_rows) == (3, 3, 3)


def test_a_smaller_number_of_rows_survives_the_limit(tiny: Path) -> None:
    spec = resolved(model=str(tiny), limit=30, settings={"sequence": {"rows": 9, "math": {"rows": 5, "epochs": 3}}})
    assert [stage.rows for stage in spec.sequence.stages] == [9, 9, 5]
    assert [stage.epochs for stage in spec.sequence.stages] == [None, None, 3]


def test_the_profile_says_how_many_rows_a_stage_trains_on(tiny: Path) -> None:
    rows = load_profile("lab").training_rows
    assert rows is not None
    assert {stage.rows for stage in resolved(model=str(tiny)).sequence.stages} == {rows}
    own = resolved(model=str(tiny), settings={"sequence": {"rows": 7}})
    assert {stage.rows for stage in own.sequence.stages} == {7}
    whole = resolved(model=str(tiny), settings={"sequence": {"rows": None}})
    assert {stage.rows for stage in whole.sequence.stages} == {None}
    assert resolve(request_of(whole), Execution(), Registry(), lambda message: None) == [whole]


def test_rows_of_the_sequence_file_come_before_those_of_the_profile(tiny: Path, tmp_path: Path) -> None:
    text = "name: two\nstages: [{task: math, rows: 11}, tool-use]\n"
    (tmp_path / "sequences").mkdir()
    (tmp_path / "sequences" / "two.yaml").write_text(text, encoding="utf-8")
    request = Request(method="sft", sequence="two", profile="lab", model=str(tiny), suite="none")
    (spec,) = resolve(request, Execution(), Registry([tmp_path]), lambda message: None)
    assert [stage.rows for stage in spec.sequence.stages] == [11, load_profile("lab").training_rows]


def test_rows_for_every_stage_replace_a_saved_specifications(tiny: Path) -> None:
    spec = resolved(model=str(tiny), settings={"sequence": {"math": {"rows": 5}}})
    changed = Request(settings={"sequence": {"rows": 9}}).over(request_of(spec))
    (again,) = resolve(changed, Execution(), Registry(), lambda message: None)
    assert {stage.rows for stage in again.sequence.stages} == {9}


def test_seeds_differ_in_the_seed_alone(tiny: Path) -> None:
    request = Request(
        method="sft", sequence="skills", profile="lab", suite="none", model=str(tiny), seeds=(3, 5), limit=2
    )
    one, two = resolve(request, Execution(), Registry(), lambda message: None)
    assert (one.seed, two.seed) == (3, 5)
    assert differences(one, two) == {"seed": (3, 5)}


@pytest.mark.parametrize("method", ["base", "sft", "joint", "synthself", "sdft"])
def test_a_saved_specification_resolves_to_itself(method: str, tiny: Path, larger: Path, tmp_path: Path) -> None:
    aligner = str(larger) if method == "synthself" else None
    spec = resolved(
        method=method,
        model=str(tiny),
        aligner=aligner,
        order="reversed",
        limit=5,
        eval_every=2,
        seeds=(7,),
        suite="lab",
    )
    path = tmp_path / "spec.yaml"
    path.write_text(spec.to_yaml(), encoding="utf-8")
    (again,) = resolve(read_request(path), Execution(), Registry(), lambda message: None)
    assert differences(spec, again) == {}
    assert again == spec


def test_options_change_a_saved_specification(tiny: Path) -> None:
    spec = resolved(model=str(tiny), limit=5)
    changed = Request(seeds=(1,), settings={"method": {"epochs": 3}}).over(request_of(spec))
    (again,) = resolve(changed, Execution(), Registry(), lambda message: None)
    assert list(differences(spec, again)) == ["method.settings.epochs", "seed"]


def test_a_branch_asks_for_what_the_run_before_it_had(tiny: Path, tmp_path: Path) -> None:
    given = {"method": {"epochs": 3}, "modifier": {"replay": {"share": 0.25}}, "evaluation": {"rows": 5}}
    spec = resolved(model=str(tiny), modifiers=("replay",), limit=5, seeds=(7,), settings=given)
    before = run_path(tmp_path, spec)
    before.mkdir(parents=True)
    (before / "spec.yaml").write_text(spec.to_yaml(), encoding="utf-8")

    def continuing(**said: Any) -> list[str]:
        (again,) = resolve(continued(Request(**said), before), Execution(), Registry(), lambda message: None)
        return list(differences(spec, again))

    assert continuing() == []
    assert continuing(settings={"method": {"epochs": 4}}) == ["method.settings.epochs"]
    assert continuing(method="sft") == ["modifiers"], "a method that is named brings its own modifiers"
    assert continuing(modifiers=()) == ["modifiers"]
    assert {"recipe", "method.settings.learning_rate", "modifiers"} < set(continuing(recipe="reference"))
    changed = continuing(method="dft", modifiers=("replay",))
    assert {name.partition(".")[0] for name in changed} == {"method", "modifiers"}
    assert "method.name" in changed
    with pytest.raises(UsageError, match="unknown recipe"):
        continuing(recipe="refrence")
    of_a_file = spec.model_copy(update={"recipe": "mine"})
    before = run_path(tmp_path, of_a_file)
    before.mkdir(parents=True)
    (before / "spec.yaml").write_text(of_a_file.to_yaml(), encoding="utf-8")
    with pytest.raises(UsageError, match="recipe mine of a file"):
        continued(Request(), before)
    assert continued(Request(recipe="lab"), before).recipe == "lab"


def test_changes_are_named(tiny: Path) -> None:
    spec = resolved(model=str(tiny), suite="lab")
    assert changes(spec, Execution(), Registry()) == []
    assert spec.method is not None
    other = spec.model_copy(
        update={
            "model": spec.model.model_copy(update={"fingerprint": "other"}),
            "method": spec.method.model_copy(update={"identity": "other"}),
        }
    )
    assert changes(other, Execution(), Registry()) == ["method.identity", "model.fingerprint"]


def test_an_aligner_without_use_is_remarked(tiny: Path, larger: Path) -> None:
    notes: list[str] = []
    request = Request(method="sft", sequence="skills", profile="lab", suite="none", model=str(tiny), limit=2)
    (plain,) = resolve(request, Execution(), Registry(), notes.append)
    assert notes == []
    (spec,) = resolve(request.model_copy(update={"aligner": str(larger)}), Execution(), Registry(), notes.append)
    assert Need.ALIGNER not in Registry().method_class("sft").needs
    assert spec == plain
    assert "uses no aligner" in notes[0]


def test_self_is_its_own_aligner(tiny: Path) -> None:
    spec = resolved(method="synthself", model=str(tiny), aligner="self")
    assert spec.aligner == spec.model


def test_an_unknown_setting_in_a_recipe_is_an_error(tmp_path: Path, tiny: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("name: mine\ndefaults: {ema_rate: 0.5}\nmethods: {sft: {ema_rate: 0.5}}\n", encoding="utf-8")
    with pytest.raises(UsageError, match="recipe mine, method sft: unknown key 'ema_rate'"):
        resolved(model=str(tiny), recipe=str(path))
    # Among the defaults it is skipped by a method that lacks it and taken by one that has it.
    path.write_text("name: mine\ndefaults: {ema_rate: 0.5}\n", encoding="utf-8")
    assert resolved(model=str(tiny), recipe=str(path)).method is not None
    sdft = resolved(model=str(tiny), recipe=str(path), method="sdft").method
    assert sdft is not None
    assert sdft.settings["ema_rate"] == 0.5


def test_parameters_are_counted_from_the_headers(tiny: Path) -> None:
    from safetensors.torch import load_file

    expected = sum(tensor.numel() for tensor in load_file(tiny / "model.safetensors").values())
    assert stored_parameters(tiny) == expected


def test_auto_precision_is_settled(tiny: Path) -> None:
    assert settled_precision(PrecisionChoice(), tiny).training == "fp32"
    assert settled_precision(PrecisionChoice(training="bf16"), tiny).training == "bf16"


@pytest.mark.parametrize(("units", "expected"), [({"avx512_bf16": True}, "bf16"), ({"avx2": True}, "fp32")])
def test_auto_precision_is_bf16_only_where_the_cpu_has_the_units(
    units: dict[str, bool], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    from cl_bench.harness.models.precision import training_format

    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: units)
    assert training_format("auto", 10_000_000) == expected
    assert training_format("auto", 1_000_000) == "fp32"
    assert training_format("bf16", 1_000_000) == "bf16"


def test_a_saved_specification_takes_a_method_that_needs_an_aligner(tmp_path: Path) -> None:
    saved = resolved(model="lab-s", settings={"evaluation": {"rows": 3}})
    assert saved.aligner is None
    path = tmp_path / "saved.yaml"
    path.write_text(saved.to_yaml(), encoding="utf-8")
    spec = resolved(**Request(method="synthself").over(read_request(path)).model_dump())
    assert spec.aligner is not None
    assert spec.evaluation.rows == 3


@pytest.mark.parametrize(
    ("declared", "asked", "suite"),
    [
        ("[]", None, "lab"),
        ("[retention-local, lab]", None, "lab"),
        ("[retention-local]", None, "retention-local"),
        ("[retention-local]", "lab", "lab"),
        ("[retention-local]", "none", None),
    ],
)
def test_suites_that_a_sequence_declares(
    tiny: Path, tmp_path: Path, declared: str, asked: str | None, suite: str | None
) -> None:
    (tmp_path / "sequences").mkdir()
    text = f"name: mine\nstages: [chemistry]\nsuites: {declared}\n"
    (tmp_path / "sequences" / "mine.yaml").write_text(text, encoding="utf-8")
    request = Request(method="sft", sequence="mine", profile="lab", model=str(tiny), suite=asked, limit=2)
    (spec,) = resolve(request, Execution(), Registry([tmp_path]), print)
    assert (spec.suite.name if spec.suite else None) == suite
