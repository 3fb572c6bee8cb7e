"""RunSpec: what its hash covers, its round trip through YAML, and how wrong content is refused."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cl_bench.harness.errors import UsageError
from cl_bench.harness.files import canonical_json
from cl_bench.harness.run_directory import run_path
from cl_bench.harness.spec import (
    BranchSpec,
    ComponentSpec,
    DataSpec,
    EvaluationSpec,
    Execution,
    ModelSpec,
    RunSpec,
    SequenceSpec,
    StageSpec,
    SuiteSpec,
    TaskSpec,
    data_options,
)
from cl_bench.harness.yaml_files import dump_yaml, parse_yaml
from cl_bench.methods.base import Precision

SPEC = RunSpec(
    profile="lab",
    recipe="lab",
    lab_version=1,
    method=ComponentSpec(name="sft", settings={"learning_rate": 5e-5, "epochs": 2.0}, identity="0.1.0+12e45"),
    modifiers=(ComponentSpec(name="replay", settings={"share": 0.1}, identity="0.1.0+77"),),
    sequence=SequenceSpec(
        name="science", stages=(StageSpec(task="chemistry", name="chemistry"), StageSpec(task="math", name="math"))
    ),
    data=DataSpec(source="lab"),
    tasks=(TaskSpec(name="chemistry", identity={"version": "1"}), TaskSpec(name="math", identity={"version": "1"})),
    suite=SuiteSpec(name="lab", tier="fast", tasks=({"name": "lab-copy", "rows": 50},)),
    evaluation=EvaluationSpec(rows=200, ood_rows=50),
    model=ModelSpec(name="lab-m", fingerprint="12e45678", source="/somewhere"),
    aligner=ModelSpec(name="lab-l", fingerprint="55", source="/elsewhere"),
)

CHANGES: dict[str, Any] = {
    "results_version": 99,
    "profile": "laptop",
    "recipe": "table5",
    "lab_version": 2,
    "method": ComponentSpec(name="sft", settings={"learning_rate": 6e-5, "epochs": 2.0}, identity="0.1.0+12e45"),
    "modifiers": (),
    "bound": "joint",
    "sequence": SequenceSpec(name="science", order="reversed", stages=SPEC.sequence.stages[::-1]),
    "data": DataSpec(source="lab", distance="LO"),
    "tasks": (TaskSpec(name="chemistry", identity={"version": "2"}), SPEC.tasks[1]),
    "suite": None,
    "evaluation": EvaluationSpec(rows=200, ood_rows=50, split="dev"),
    "model": ModelSpec(name="lab-m", fingerprint="other", source="/somewhere"),
    "aligner": None,
    "precision": Precision(micro_batch_size=8),
    "evaluation_batch_size": 64,
    "seed": 1,
    "limit": 4,
    "eval_every": 10,
    "branch": BranchSpec(
        run="77", method="sft", seed=0, settings="99", stage=1, row="chemistry", weights="88", carried=False
    ),
}


def test_every_field_is_tried() -> None:
    assert set(CHANGES) == set(RunSpec.model_fields)


@pytest.mark.parametrize("field", sorted(CHANGES))
def test_every_field_changes_the_hash(field: str) -> None:
    changed = SPEC.model_copy(update={field: CHANGES[field]})
    assert changed.digest() != SPEC.digest()


@pytest.mark.parametrize("field", [item.name for item in dataclasses.fields(Precision)])
def test_every_field_of_the_precision_changes_the_hash(field: str) -> None:
    value: Any = {"training": "bf16", "generation": "bf16"}.get(field, 3)
    changed = SPEC.model_copy(update={"precision": dataclasses.replace(Precision(), **{field: value})})
    assert changed.digest() != SPEC.digest()


def test_where_models_lie_does_not_change_the_hash() -> None:
    moved = {"model": SPEC.model.model_copy(update={"source": "/moved"})}
    assert SPEC.aligner is not None
    moved["aligner"] = SPEC.aligner.model_copy(update={"source": "/moved"})
    assert SPEC.model_copy(update=moved).digest() == SPEC.digest()


def test_round_trip_through_yaml_keeps_spec_and_hash() -> None:
    again = RunSpec.from_yaml(SPEC.to_yaml())
    assert again == SPEC
    assert again.digest() == SPEC.digest()


@example("\x85")
@example({"a\u2028": ["\u2029 ", "\r", "\r\n x", "a\x85\n"]})
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=8,
    )
)
def test_yaml_gives_back_what_was_written(content: Any) -> None:
    assert parse_yaml(dump_yaml({"content": content}), "test") == {"content": content}


@given(st.text(alphabet="0123456789e+-.", min_size=1))
def test_digits_written_as_text_come_back_as_text(text: str) -> None:
    assert parse_yaml(dump_yaml([text]), "test") == [text]


def test_numbers_as_people_write_them() -> None:
    assert parse_yaml("[5e-5, 1e3, 5.0e-5, 3, -2E2]", "test") == [5e-5, 1000.0, 5e-5, 3, -200.0]


def test_canonical_json_ignores_the_order_of_keys() -> None:
    assert canonical_json({"a": 1, "b": 2}) == canonical_json({"b": 2, "a": 1})


def test_unknown_key_is_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="evaluation.row is not known") as caught:
        RunSpec.from_yaml(SPEC.to_yaml().replace("  rows: 200", "  row: 200"))
    assert "did you mean rows" in caught.value.hint


def test_unknown_key_of_the_precision_is_refused() -> None:
    with pytest.raises(UsageError, match="trainig"):
        RunSpec.from_yaml(SPEC.to_yaml().replace("training: fp32", "trainig: fp32"))


def test_key_given_twice_is_refused_with_its_line() -> None:
    with pytest.raises(UsageError, match="line 2"):
        parse_yaml("a: 1\na: 2\n", "twice.yaml")


@pytest.mark.parametrize(
    ("method", "bound"), [(None, None), (None, "joint"), (ComponentSpec(name="sft"), "base")], ids=str
)
def test_method_and_bound_must_fit(method: ComponentSpec | None, bound: Any) -> None:
    content = SPEC.model_dump(mode="json") | {"method": method and method.model_dump(), "bound": bound}
    with pytest.raises(UsageError, match="bound 'base'"):
        RunSpec.from_yaml(dump_yaml(content))


def test_stage_names_must_be_unique_and_not_base() -> None:
    twice = (StageSpec(task="math", name="math"), StageSpec(task="math", name="math"))
    for stages in (twice, (StageSpec(task="math", name="base"),)):
        with pytest.raises(ValueError, match="unique"):
            SequenceSpec(name="x", stages=stages)


def test_directory_ends_in_the_hash() -> None:
    path = run_path(Path("runs"), SPEC)
    assert path.name == f"lab-m-default-s0-{SPEC.digest()[:8]}"
    assert path.parts[:3] == ("runs", "science", "sft+replay")


def test_data_options_join_form_and_places() -> None:
    options = data_options(DataSpec(source="hub", split="paper"), Execution(data_root=Path("/d"), offline=True))
    assert (options.source, options.split, options.data_root, options.offline) == ("hub", "paper", Path("/d"), True)
