"""Differences from a reference: paired by seed, corrected over the table, claimed from five seeds on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from cl_bench.harness.compare.comparability import check_comparable
from cl_bench.harness.compare.differences import TESTED, Differences, check_reference, differences
from cl_bench.harness.compare.runs import find_runs
from cl_bench.harness.compare.table import panels
from cl_bench.harness.errors import UnknownNameError
from cl_bench.harness.measure.statistics.seeds import Difference, holm
from tests.compare.small_runs import VALUES, Values, make_run

NOISE = (0.01, -0.02, 0.03, 0.0, -0.01)


def retaining(by: float) -> Values:
    """The values with the last row's retention higher by this."""
    last = [value or 0 for value in VALUES["biology"]]
    return {**VALUES, "biology": (last[0], last[1], last[2] + by, last[3] + by)}


def write(folder: Path, seeds: Mapping[str, int]) -> None:
    """Runs in which sdft keeps .1 more than sft, the seeds' own luck taken off, and dft about the same."""
    for seed, luck in enumerate((0.05, -0.05, 0.1, 0.0, -0.1)):
        for method, added in (("sft", 0.0), ("sdft", 0.1 + NOISE[seed] / 10), ("dft", NOISE[seed] / 2)):
            if seed < seeds.get(method, 0):
                make_run(folder, method, seed, retaining(luck + added))


@pytest.fixture(scope="module")
def five(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All three over five seeds."""
    folder = tmp_path_factory.mktemp("five")
    write(folder, {"sft": 5, "sdft": 5, "dft": 5})
    return folder


def found_in(
    folder: Path, reference: str | None = None, mark: bool = False, methods: Sequence[str] = ("*",)
) -> Differences:
    views = find_runs([f"{folder}/*/{method}/*" for method in methods]).views
    (panel,) = panels(views, check_comparable(views, mark))
    return differences(panel, reference)


def retention(found: Differences) -> dict[str, Difference]:
    return {entry.method: entry.difference for entry in found.entries if entry.measure == "retention_change"}


def test_pairing_finds_what_the_seeds_luck_would_hide(five: Path) -> None:
    found = found_in(five)
    assert found.reference == "sft" and len(found.entries) == 2 * len(TESTED)
    better, same = retention(found)["sdft"], retention(found)["dft"]
    assert better.claim and better.mean == pytest.approx(0.1002) and better.interval is not None
    assert better.interval[0] > 0.09 and better.seeds == (0, 1, 2, 3, 4)
    assert not same.claim and same.interval is not None and same.interval[0] < 0 < same.interval[1]
    detectable = {entry.method: entry.detectable for entry in found.entries if entry.measure == "retention_change"}
    assert detectable["dft"] is not None and 0 < detectable["dft"] < 0.1


def test_p_values_are_adjusted_over_the_table(five: Path) -> None:
    shown = {entry: difference.p for entry, difference in retention(found_in(five)).items()}
    alone = {name: retention(found_in(five, methods=("sft", name)))[name].p for name in ("sdft", "dft")}
    # Other measures do not differ between seeds here, so that these two are the whole table.
    assert [shown[name] for name in alone] == holm(list(alone.values())) and shown != alone


def test_fewer_seeds_give_values_and_no_claim(tmp_path: Path) -> None:
    write(tmp_path, {"sft": 3, "sdft": 2})
    found = retention(found_in(tmp_path))["sdft"]
    assert not found.claim and found.interval is None and found.p is None
    assert found.values == pytest.approx((0.101, 0.098)) and found.unpaired == (2,)


def test_the_bounds_are_in_no_claim(tmp_path: Path) -> None:
    write(tmp_path, {"sft": 2})
    make_run(tmp_path, "base", values={"base": VALUES["base"]})
    make_run(tmp_path, "joint-sft", values={"base": VALUES["base"], "joint": VALUES["biology"]})
    found = found_in(tmp_path)
    assert found.entries == () and found.reason == "there is no other method"


def test_a_reference_can_be_named_and_has_to_be_there(tmp_path: Path) -> None:
    write(tmp_path, {"dft": 2, "sdft": 2})
    assert "sft is not among the methods" in found_in(tmp_path).reason
    assert found_in(tmp_path, "dft").reference == "dft"
    tables = panels(find_runs([str(tmp_path)]).views)
    with pytest.raises(UnknownNameError) as caught:
        check_reference(tables, "sdt")
    assert caught.value.nearest[0] == "sdft"


def test_several_rows_of_the_reference_are_not_guessed_between(tmp_path: Path) -> None:
    write(tmp_path, {"sft": 1, "sdft": 1})
    make_run(tmp_path, settings={"learning_rate": 1e-4})
    assert "several methods are called sft" in found_in(tmp_path).reason
    assert found_in(tmp_path, "sft (learning_rate=0.0001)").reference == "sft (learning_rate=0.0001)"


def test_methods_that_are_not_comparable_are_shown_and_not_tested(tmp_path: Path) -> None:
    write(tmp_path, {"sft": 2, "sdft": 2})
    make_run(tmp_path, "dft", limit=8)
    found = found_in(tmp_path, mark=True)
    assert {entry.method for entry in found.entries} == {"sdft"} and found.not_compared == {"dft": ("limit",)}


def test_a_measure_without_values_says_why_and_not_that_seeds_are_missing(tmp_path: Path) -> None:
    values = {"base": (0.2, 0.6, 0.8), "chemistry": (0.9, 0.5, 0.7)}
    for seed in range(2):
        for method in ("sft", "dft"):
            make_run(tmp_path, method, seed, values, stages=("chemistry",))
    make_run(tmp_path, "sdft", 7, values, stages=("chemistry",))
    found = found_in(tmp_path)
    reasons = {(one.method, one.measure): one.difference.reason for one in found.entries if not one.difference.n}
    assert reasons["dft", "forgetting"] == "no task was learned before the last stage"
    assert reasons["sdft", "forgetting"] == "no seed in common"


def test_what_no_test_could_find_is_not_called_detectable(tmp_path: Path) -> None:
    for seed in range(5):
        make_run(tmp_path, "sft", seed)
        make_run(tmp_path, "dft", seed, retaining(0.1))  # the same difference in every seed, but for the last bits
    found = {entry.measure: entry for entry in found_in(tmp_path).entries}["retention_change"]
    assert found.difference.mean == pytest.approx(0.1) and found.difference.interval is None
    assert found.detectable is None and "no spread" in found.difference.reason
