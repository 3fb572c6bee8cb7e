"""Whole runs on the lab through the command line."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from tests.end_to_end.compare import only_run, results_of
from tests.end_to_end.conftest import SMALL, Cli

pytestmark = pytest.mark.end_to_end


def test_main_job_ends_with_table_and_directory_and_a_second_call_does_no_work(
    cli: Cli, process: Cli, tmp_path: Path
) -> None:
    command = ["run", "--method", "synthself", "--sequence", "science", *SMALL, "--output", str(tmp_path / "runs")]
    first = process(*command, cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    directory = Path(first.stdout.rstrip().splitlines()[-1])
    assert directory == only_run(tmp_path / "runs")
    for word in ("chemistry", "Retention", "forgetting", "Generated data", "Cost"):
        assert word in first.stdout
    assert (directory / "matrix.png").read_bytes().startswith(b"\x89PNG")
    assert (directory / "report.md").read_text()
    before = {path: path.stat().st_mtime_ns for path in directory.rglob("*") if path.is_file()}
    second = cli(*command, cwd=tmp_path)
    assert second.returncode == 0, second.stderr
    assert second.stdout == first.stdout
    changed = [p.name for p, t in before.items() if p.stat().st_mtime_ns != t and p.name != ".lock"]
    assert changed == []
    (directory / "report.md").unlink()
    assert cli(*command, cwd=tmp_path).stdout.splitlines()[-1] == str(directory)
    assert (directory / "report.md").read_text()


@pytest.mark.parametrize("sequence", ["skills", "full", "reasoning"])
def test_sequences_run_on_the_lab(sequence: str, cli: Cli, tmp_path: Path) -> None:
    done = cli("run", "--method", "sft", "--sequence", sequence, *SMALL, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 1
    json.loads(done.stdout)
    matrix = json.loads((only_run(tmp_path / "runs") / "matrix.json").read_text())
    assert matrix["rows"][0] == "base"
    expected = {"skills": 3, "full": 6, "reasoning": 4}[sequence]
    assert len(matrix["rows"]) == expected + 1
    assert all(value is not None for row in matrix["values"].values() for value in row.values())


def test_two_seeds_in_one_process_equal_two_processes(cli: Cli, process: Cli, tmp_path: Path) -> None:
    command = ["run", "--method", "sdft", "--sequence", "science", *SMALL, "--limit", "8"]
    together = cli(*command, "--seeds", "0,1", "--output", "together", cwd=tmp_path)
    assert together.returncode == 0, together.stderr
    for seed in ("0", "1"):
        assert process(*command, "--seeds", seed, "--output", "apart", cwd=tmp_path).returncode == 0
    found = {
        output: {re.sub(r".*-(s\d)-.*", r"\1", p.parent.name): results_of(p.parent) for p in paths}
        for output in ("together", "apart")
        for paths in [list((tmp_path / output).glob("*/*/*/spec.yaml"))]
    }
    assert found["together"] == found["apart"]
    weights = "stages/04-physics/checkpoint/model.safetensors"
    assert found["apart"]["s0"][weights] != found["apart"]["s1"][weights]


def test_evaluation_within_a_stage_leaves_no_trace(cli: Cli, tmp_path: Path) -> None:
    command = ["run", "--method", "sdft", "--sequence", "science", *SMALL]
    assert cli(*command, "--output", "plain", cwd=tmp_path).returncode == 0
    assert cli(*command, "--output", "watched", "--eval-every", "1", cwd=tmp_path).returncode == 0
    plain, watched = only_run(tmp_path / "plain"), only_run(tmp_path / "watched")
    found = {name: value for name, value in results_of(watched).items() if "/within/" not in name}
    assert results_of(plain) == found
    stage = watched / "stages" / "01-chemistry"
    steps = sorted(path.name for path in (stage / "within").iterdir())
    assert steps[0] == "step-000001"
    last = watched / "stages" / "01-chemistry" / "within" / steps[-1] / "chemistry" / "samples.jsonl"
    assert (
        last.read_text() == (watched / "stages" / "01-chemistry" / "eval" / "chemistry" / "samples.jsonl").read_text()
    )


@pytest.mark.parametrize("names", [("ewc", "lwf", "wise-ft"), ("lora", "replay", "task-vectors")])
def test_modifiers_compose_and_carry_their_state_through_a_resume(
    names: tuple[str, ...], cli: Cli, tmp_path: Path
) -> None:
    few = ["--method", "sft", "--sequence", "science", *SMALL, "--suite", "none"]
    several = [part for name in names for part in ("--with", name)]
    several += ["--set", "modifier.ewc.sequences=8"] if "ewc" in names else []
    done = cli("run", *few, *several, "--output", "with", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    whole = only_run(tmp_path / "with")
    before = results_of(whole)
    # The last stage again, from what the one before left on disk.
    shutil.rmtree(whole / "stages" / "04-physics")
    again = cli("resume", str(whole), cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert results_of(whole) == before
    assert cli("run", *few, "--output", "plain", cwd=tmp_path).returncode == 0
    plain = results_of(only_run(tmp_path / "plain"))
    weights = "stages/04-physics/checkpoint/model.safetensors"
    assert plain[weights] != before[weights]


def test_bounds_base_and_joint(cli: Cli, tmp_path: Path) -> None:
    base = cli("run", "--method", "base", "--sequence", "science", *SMALL, "--output", "base", cwd=tmp_path)
    assert base.returncode == 0, base.stderr
    assert json.loads((only_run(tmp_path / "base") / "matrix.json").read_text())["rows"] == ["base"]
    joint = cli("run", "--method", "joint", "--sequence", "science", *SMALL, "--output", "joint", cwd=tmp_path)
    assert joint.returncode == 0, joint.stderr
    assert json.loads((only_run(tmp_path / "joint") / "matrix.json").read_text())["rows"] == ["base", "joint"]


def test_diverged_run_keeps_measured_rows_and_exits_with_one(cli: Cli, tmp_path: Path) -> None:
    settings = ["--set", "method.learning_rate=1e30", "--set", "method.max_grad_norm=1e30"]
    done = cli("run", "--method", "sft", "--sequence", "science", *SMALL, *settings, cwd=tmp_path)
    assert done.returncode == 1
    matrix = json.loads((only_run(tmp_path / "runs") / "matrix.json").read_text())
    assert all(value is not None for value in matrix["values"]["base"].values())
    assert all(value is None for value in matrix["values"]["physics"].values())
    assert "diverged" in matrix["reasons"]["physics/chemistry"]
    metrics = json.loads((only_run(tmp_path / "runs") / "metrics.json").read_text())["metrics"]
    assert metrics["acquisition"]["value"] is None and metrics["acquisition"]["reason"]
