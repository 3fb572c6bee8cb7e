"""Sequence files: names of repeated tasks, orders, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from cl_bench.harness.errors import UnknownNameError, UsageError
from cl_bench.harness.registry import Registry
from cl_bench.sequences.loader import SequenceFile, load_sequence


def sequence(text: str, folder: Path) -> SequenceFile:
    path = folder / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return load_sequence(path)


@pytest.fixture()
def repeated(tmp_path: Path) -> SequenceFile:
    text = "name: mine\nstages: [a, {task: b, rows: 5, epochs: 0.5}, a]\norders: {back: [a-2, b, a]}\n"
    return sequence(text, tmp_path)


@pytest.mark.parametrize(
    ("name", "tasks"),
    [
        ("science", "chemistry biology materials physics"),
        ("skills", "science-mixture tool-use math"),
        ("full", "chemistry biology materials physics tool-use math"),
        ("reasoning", "math science-mixture tool-use coding"),
    ],
)
def test_built_in_sequences(name: str, tasks: str) -> None:
    file = Registry().sequence(name)
    assert [stage.name for stage in file.resolve().stages] == tasks.split()
    assert [stage.name for stage in file.resolve("reversed").stages] == tasks.split()[::-1]


def test_a_repeated_task_gets_a_number(repeated: SequenceFile) -> None:
    assert [stage.name for stage in repeated.resolve().stages] == ["a", "b", "a-2"]


def test_settings_travel_with_their_stage(repeated: SequenceFile) -> None:
    stage = next(stage for stage in repeated.resolve("back").stages if stage.task == "b")
    assert (stage.rows, stage.epochs) == (5, 0.5)


def test_rows_are_named_by_visit_in_every_order(repeated: SequenceFile) -> None:
    assert [stage.name for stage in repeated.resolve("back").stages] == ["a", "b", "a-2"]


def test_explicit_order() -> None:
    resolved = Registry().sequence("skills").resolve("math,science-mixture,tool-use")
    assert resolved.order == "math+science-mixture+tool-use"
    assert [stage.task for stage in resolved.stages] == ["math", "science-mixture", "tool-use"]


@pytest.mark.parametrize(
    ("order", "label"), [("math,tool-use,science-mixture", "reversed"), ("science-mixture,tool-use,math", "default")]
)
def test_an_explicit_order_that_has_a_name_is_called_by_it(order: str, label: str) -> None:
    assert Registry().sequence("skills").resolve(order).order == label


def test_the_label_of_an_order_gives_the_order_again() -> None:
    file = Registry().sequence("full")
    for order in ("default", "reversed", "random:3", "math,tool-use,chemistry,materials,biology,physics"):
        resolved = file.resolve(order)
        assert file.resolve(resolved.order) == resolved


def test_random_orders_are_permutations_fixed_by_their_seed() -> None:
    file = Registry().sequence("full")
    orders = [tuple(stage.name for stage in file.resolve(f"random:{seed}").stages) for seed in range(6)]
    assert orders == [tuple(stage.name for stage in file.resolve(f"random:{seed}").stages) for seed in range(6)]
    assert len(set(orders)) > 3
    assert {tuple(sorted(order)) for order in orders} == {tuple(sorted(orders[0]))}


@pytest.mark.parametrize("order", ["revresed", "random:x", "math,tool-use", "math,math,tool-use", "math,tool,science"])
def test_wrong_orders_are_refused(order: str) -> None:
    with pytest.raises(UsageError):
        Registry().sequence("skills").resolve(order)


def test_unknown_order_names_the_nearest() -> None:
    with pytest.raises(UnknownNameError) as caught:
        Registry().sequence("science").resolve("revresed")
    assert "reversed" in caught.value.nearest


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: mine\nstages: []\n", "stages"),
        ("name: other\nstages: [a]\n", "is called 'other'"),
        ("name: mine\nstages: [{task: a, epoch: 1}]\n", "epoch is not known"),
        ("name: mine\nstages: [{task: a, rows: 0}]\n", "rows"),
        ("name: mine\nstages: [a, b]\norders: {odd: [a]}\n", "not a permutation"),
        ("name: mine\nstages: a\n", "stages"),
        ("- a\n", "expected a mapping"),
        ("name: [\n", "not valid YAML"),
    ],
)
def test_broken_files_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        sequence(text, tmp_path)
