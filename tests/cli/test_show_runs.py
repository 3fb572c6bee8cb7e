"""The overview of a folder of runs."""

from __future__ import annotations

import json
from pathlib import Path

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


def test_a_folder_without_runs_and_a_kind_without_a_name_are_told_apart(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "methods").mkdir()
    (tmp_path / "elsewhere").mkdir()
    assert "which one?" in cli("show", "methods").err
    none = cli("show", "elsewhere")
    assert none.code == 2 and "no run at elsewhere" in none.err
