"""Requests: reading options and files, and which of them wins."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cl_bench.harness.errors import UsageError
from cl_bench.harness.request import Request, merge, parse_seeds, parse_settings, read_request


@pytest.mark.parametrize(
    ("text", "seeds"), [("0", (0,)), ("0,2,1", (0, 2, 1)), ("0-4", (0, 1, 2, 3, 4)), ("7, 1-2", (7, 1, 2))]
)
def test_seeds(text: str, seeds: tuple[int, ...]) -> None:
    assert parse_seeds(text) == seeds


@given(st.lists(st.integers(min_value=0, max_value=10**6), min_size=1, max_size=6, unique=True))
def test_seeds_come_back_as_written(seeds: list[int]) -> None:
    assert parse_seeds(",".join(map(str, seeds))) == tuple(seeds)


@pytest.mark.parametrize("text", ["", "a", "1-", "-1", "2-1", "1,,2", "0,0", "0-2,1", "²", "٣", "0-99999999999"])
def test_wrong_seeds(text: str) -> None:
    with pytest.raises(UsageError):
        parse_seeds(text)


def test_settings_are_typed_and_nested() -> None:
    found = parse_settings(
        ["method.learning_rate=5e-5", "modifier.ewc.strength=2", "method.schedule=linear", "sequence.math.rows=3"]
    )
    assert found == {
        "method": {"learning_rate": 5e-5, "schedule": "linear"},
        "modifier": {"ewc": {"strength": 2}},
        "sequence": {"math": {"rows": 3}},
    }


def test_a_value_may_hold_equals_signs_and_dots() -> None:
    assert parse_settings(["method.template='a=b. {question}'"])["method"] == {"template": "a=b. {question}"}


def test_the_later_setting_wins() -> None:
    assert parse_settings(["method.epochs=1", "method.epochs=3"])["method"]["epochs"] == 3


def test_command_line_wins_over_file() -> None:
    file = Request(method="sft", limit=4, settings={"method": {"epochs": 1, "batch_size": 8}})
    line = Request(limit=2, settings={"method": {"epochs": 3}})
    both = line.over(file)
    assert (both.method, both.limit) == ("sft", 2)
    assert both.group("method") == {"epochs": 3, "batch_size": 8}


def test_settings_of_another_method_are_dropped() -> None:
    file = Request(method="sdft", settings={"method": {"ema_rate": 0.1}, "evaluation": {"rows": 3}})
    both = Request(method="sft").over(file)
    assert both.group("method") == {}
    assert both.group("evaluation") == {"rows": 3}


def test_order_of_another_sequence_is_dropped() -> None:
    file = Request(sequence="science", order="physics,biology,chemistry,materials")
    assert Request(sequence="full").over(file).order is None
    assert Request(limit=1).over(file).order == file.order


def test_merge_changes_neither_side() -> None:
    lower, upper = {"a": {"b": 1}}, {"a": {"c": 2}}
    assert merge(lower, upper) == {"a": {"b": 1, "c": 2}}
    assert (lower, upper) == ({"a": {"b": 1}}, {"a": {"c": 2}})


def test_request_file(tmp_path: Path) -> None:
    path = tmp_path / "request.yaml"
    path.write_text("method: sft\nwith: [replay]\nsequence: science\nseeds: 0-2\nsettings: {method: {epochs: 1}}\n")
    request = read_request(path)
    assert (request.method, request.modifiers, request.seeds) == ("sft", ("replay",), (0, 1, 2))
    assert request.group("method") == {"epochs": 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [("metod: sft\n", "metod is not known"), ("settings: {metod: {}}\n", "unknown key 'metod'"), ("- a\n", "mapping")],
)
def test_wrong_request_files(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "request.yaml"
    path.write_text(text)
    with pytest.raises(UsageError, match=message):
        read_request(path)
