"""A run whose training data holds evaluated items says so, stage by stage, and scores what is clean."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from cl_bench.harness.conformance.run_checks import run_checks
from cl_bench.harness.store import load_run
from tests.end_to_end.compare import only_run
from tests.end_to_end.conftest import SMALL, Cli

pytestmark = pytest.mark.end_to_end

LEAKY = '''
"""Chemistry whose training rows hold some of its own test rows, and all of a retention skill."""

from dataclasses import replace

from cl_bench.tasks.lab.skills import skill_task
from cl_bench.tasks.lab.task import LabTask


class Leaky(LabTask):
    def __init__(self, options):
        super().__init__("leaky", "chemistry", rows={"test": 40})

    def train(self):
        return [replace(row, task="leaky") for row in (*super().train()[:20], *self.test(), *SORT.test())]


SORT = skill_task("sort")
'''


def test_what_a_stage_trained_on_is_flagged_and_left_out(cli: Cli, tmp_path: Path) -> None:
    own = tmp_path / "own"
    (own / "tasks").mkdir(parents=True)
    (own / "sequences").mkdir()
    (own / "tasks" / "leaky_task.py").write_text(LEAKY)
    sources = "{lab: {kind: python, file: leaky_task.py, class: Leaky}}"
    (own / "tasks" / "leaky.yaml").write_text(f"name: leaky\ntitle: Leaky\nsources: {sources}\n")
    (own / "sequences" / "leaks.yaml").write_text("name: leaks\ndescription: Leaks.\nstages: [biology, leaky]\n")
    command = ["run", "--method", "sft", "--sequence", "leaks", "--include-path", "own", *SMALL]
    done = cli(*command, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    directory = only_run(tmp_path / "runs")
    view = load_run(directory)
    trained = set(json.loads((view.stages["leaky"] / "data" / "rows.json").read_text()))
    columns = json.loads((view.stages["leaky"] / "data" / "contamination.json").read_text())["columns"]
    evaluated = {name: [row["id"] for row in view.samples("base", name)] for name in columns}
    flagged = {name: set(found["items"]["exact"]) for name, found in columns.items()}
    assert flagged == {name: trained & set(ids) for name, ids in evaluated.items()}
    assert {name for name, ids in flagged.items() if ids} == {"leaky", "lab-sort"}
    before = json.loads((view.stages["biology"] / "data" / "contamination.json").read_text())["columns"]
    assert all(found["any"]["count"] == 0 for found in before.values())
    run = json.loads((directory / "contamination.json").read_text())
    for row in view.matrix.rows:
        kept = [s["correct"] for s in view.samples(row, "lab-sort") if s["id"] not in trained]
        assert run["clean"]["matrix"]["values"][row]["lab-sort"] == pytest.approx(sum(kept) / len(kept))
    assert [check.problem for check in run_checks(view)] == [""] * len(run_checks(view))
    for expected in (f"{len(flagged['lab-sort'])} evaluated rows of lab-sort are also trained on", "clean items"):
        assert expected in done.stdout and expected in (directory / "report.md").read_text()
    content = (directory / "contamination.json").read_bytes()
    shutil.rmtree(view.stages["leaky"])
    assert cli("resume", str(directory), "--include-path", "own", cwd=tmp_path).returncode == 0
    assert (directory / "contamination.json").read_bytes() == content
