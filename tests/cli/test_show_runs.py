"""The overview of a folder of runs."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import pytest

from cl_bench.harness.commands import show_runs
from cl_bench.harness.run_directory import RunView, load_run
from tests.cli.conftest import Cli
from tests.compare.small_runs import make_run


def test_a_folder_of_runs_is_listed_with_where_each_stands(cli: Cli, tmp_path: Path) -> None:
    done = make_run(tmp_path / "runs")
    stopped = make_run(tmp_path / "runs", seed=1, state="interrupted")
    broken = make_run(tmp_path / "runs", seed=2)
    (broken / "spec.yaml").write_text("{", encoding="utf-8")
    told = cli("show", "runs", "--json")
    states = {row["directory"]: row["state"] for row in json.loads(told.out)}
    named = {"done": done, "interrupted": stopped, "damaged": broken}
    assert states == {str(run.relative_to(tmp_path)): state for state, run in named.items()}
    text = cli("show", "run", str(tmp_path / "runs")).out
    assert "done, 3 of 3 rows finished" in text and f"; cl-bench resume {stopped}" in text
    assert f"{broken}/spec.yaml cannot be read" in text


def test_one_run_that_cannot_be_read_and_names_with_line_breaks_hide_nothing(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forged = "x\n    forged\n    done, 3 of 3 rows finished"
    make_run(tmp_path / "runs" / forged)
    listed = make_run(tmp_path / "runs", seed=1)
    (listed / "status.json").write_text(json.dumps({"schema_version": 1, "state": ["done"]}), encoding="utf-8")
    broken = make_run(tmp_path / "runs", seed=2)

    def read(directory: Path, verify: bool) -> RunView:
        if directory.name == broken.name:
            raise PermissionError(errno.EACCES, "Permission denied", str(directory / "status.json"))
        return load_run(directory, verify)

    monkeypatch.setattr(show_runs, "load_run", read)
    (tmp_path / "spec.yaml").write_text("saved: beside", encoding="utf-8")
    told = cli("show", "runs")
    assert told.code == 0 and len(told.out.splitlines()) == 8, "three lines a run, two where it cannot be read"
    assert "    forged" not in told.out.splitlines()
    states = {row["directory"]: row["state"] for row in json.loads(cli("show", "runs", "--json").out)}
    assert sorted(states.values()) == ["damaged", "damaged", "done"]
    assert cli("compare", "runs").code == 0, "a saved specification above is no run"
    assert cli("show", "").code == 2 and cli("show", "run", "").code == 2


def test_a_folder_without_runs_and_a_kind_without_a_name_are_told_apart(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "methods").mkdir()
    (tmp_path / "elsewhere").mkdir()
    assert "which one?" in cli("show", "methods").err
    none = cli("show", "elsewhere")
    assert none.code == 2 and "no run at elsewhere" in none.err
