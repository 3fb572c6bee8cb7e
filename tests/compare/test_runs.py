"""Which runs a comparison finds, and which it leaves out and says so."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from cl_bench.harness.compare.runs import find_runs
from cl_bench.harness.compare.whole import load_whole
from cl_bench.harness.errors import EXIT_FAILED, EXIT_USAGE, ClBenchError, NotARunError, StoreError, UsageError
from cl_bench.harness.run_directory import RunView
from tests.compare.small_runs import VALUES, make_run


def test_runs_are_found_by_directory_folder_file_and_pattern(tmp_path: Path) -> None:
    first, second = make_run(tmp_path / "runs"), make_run(tmp_path / "runs", seed=1)
    places = [
        [str(first), str(second)],
        [str(tmp_path / "runs")],
        [str(tmp_path / "runs" / "*" / "sft" / "*")],
        [str(tmp_path / "runs" / "**" / "matrix.json")],
        [str(first / "report.md"), str(second / "stages" / "01-chemistry" / "shift.json"), str(first / "matrix.json")],
    ]
    (first / "report.md").write_text("")
    for place in places:
        assert {view.spec.seed for view in find_runs(place).views} == {0, 1}


def test_a_run_counts_once_however_often_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert len(find_runs([str(run), str(tmp_path), f"{run}/", str(run.relative_to(tmp_path))]).views) == 1


def test_a_copied_run_is_left_out_and_named(tmp_path: Path) -> None:
    run = make_run(tmp_path / "runs")
    shutil.copytree(run, tmp_path / "copies" / run.name)
    found = find_runs([str(tmp_path / "runs"), str(tmp_path / "copies")])
    assert [view.directory for view in found.views] == [run.resolve()]
    assert [(one.directory.parent.name, one.reason) for one in found.left_out] == [
        ("copies", f"the same run as {run.resolve()}")
    ]


def test_unfinished_runs_are_left_out_and_diverged_ones_shown(tmp_path: Path) -> None:
    make_run(tmp_path)
    interrupted, running = make_run(tmp_path, seed=1, state="interrupted"), make_run(tmp_path, seed=2, state="running")
    make_run(tmp_path, seed=3, state="diverged", values={**VALUES, "biology": (None,) * 4})
    found = find_runs([str(tmp_path)])
    assert {view.spec.seed for view in found.views} == {0, 3}
    reasons = {run.directory: run.reason for run in found.left_out}
    assert reasons == {
        interrupted.resolve(): "unfinished: interrupted",
        running.resolve(): "unfinished: interrupted",
    }


@pytest.mark.parametrize("damage", ["edited", "truncated", "removed"])
def test_damaged_samples_are_found_by_their_hash(tmp_path: Path, damage: str) -> None:
    make_run(tmp_path)
    run = make_run(tmp_path, seed=1, samples=3)
    samples = run / "stages" / "01-chemistry" / "eval" / "reading" / "samples.jsonl"
    lines = samples.read_bytes().splitlines(keepends=True)
    if damage == "removed":
        samples.unlink()
    else:
        samples.write_bytes(b"".join(lines[:-1]) if damage == "truncated" else samples.read_bytes().replace(b"x", b"y"))
    found = find_runs([str(tmp_path)])
    assert [view.spec.seed for view in found.views] == [0]
    assert found.left_out[0].directory == run.resolve()
    assert found.left_out[0].reason.startswith("cannot be read: ") and "samples.jsonl" in found.left_out[0].reason


def test_a_changed_spec_or_matrix_is_damage_too(tmp_path: Path) -> None:
    runs = [make_run(tmp_path, seed=seed) for seed in range(3)]
    (runs[0] / "spec.yaml").write_text((runs[0] / "spec.yaml").read_text().replace("seed: 0", "seed: 9"))
    (runs[1] / "matrix.json").write_text("{")
    found = find_runs([str(tmp_path)])
    assert [view.spec.seed for view in found.views] == [2]
    assert len(found.left_out) == 2 and all("cannot be read" in run.reason for run in found.left_out)


@pytest.mark.parametrize(
    ("place", "kind"), [("nothing-here", UsageError), ("none-*", UsageError), ("empty", NotARunError)]
)
def test_where_there_is_no_run(tmp_path: Path, place: str, kind: type[ClBenchError]) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(kind, match=place.rstrip("*")) as caught:
        find_runs([str(tmp_path / place)])
    assert caught.value.exit_code == EXIT_USAGE


def test_nothing_but_unfinished_runs_is_an_error_that_names_them(tmp_path: Path) -> None:
    run = make_run(tmp_path, state="failed")
    with pytest.raises(StoreError) as caught:
        find_runs([str(tmp_path)])
    assert caught.value.exit_code == EXIT_FAILED and str(run.resolve()) in caught.value.why


@pytest.mark.parametrize("place", ["", "a" * 5000])
def test_a_name_that_no_place_can_have(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_run(tmp_path)
    monkeypatch.chdir(tmp_path)  # an empty name is not the folder one is in
    with pytest.raises(UsageError, match="there is no"):
        find_runs([place])


def test_another_attempt_with_other_results_is_no_copy(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    again = run.with_name(run.name.replace("-s0-", "-s0-again2-"))
    shutil.copytree(run, again)
    matrix = json.loads((again / "matrix.json").read_text())
    matrix["values"]["biology"]["reading"] = 0.1
    (again / "matrix.json").write_text(json.dumps(matrix))
    (left,) = find_runs([str(run), str(again)]).left_out
    assert left.directory == again.resolve() and "another attempt" in left.reason and "other results" in left.reason


def test_a_run_that_the_system_does_not_let_us_read_hides_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_run(tmp_path)
    shut = make_run(tmp_path, seed=1).resolve()

    def refusing(directory: Path, shifts: bool) -> RunView:
        if directory.resolve() == shut:
            raise PermissionError(13, "Permission denied", str(directory / "matrix.json"))
        return load_whole(directory, shifts)

    monkeypatch.setattr("cl_bench.harness.compare.runs.load_whole", refusing)
    found = find_runs([str(tmp_path)])
    assert [view.spec.seed for view in found.views] == [0]
    assert found.left_out[0].reason == f"cannot be read: {shut}/matrix.json: Permission denied"


def test_no_place_at_all_is_refused() -> None:
    with pytest.raises(UsageError, match="no runs"):
        find_runs([])
