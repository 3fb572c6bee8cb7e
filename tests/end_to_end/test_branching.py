"""Going on from a stage of another run, and having a run again."""

from __future__ import annotations

import json
import shutil
from importlib.metadata import version
from pathlib import Path

import pytest

from cl_bench.harness.generation.local import LocalSampler
from cl_bench.harness.selfcheck.results import first_difference, results_of
from cl_bench.methods.dft import DFT
from tests.end_to_end.compare import interrupted, only_run
from tests.end_to_end.conftest import Cli, call
from tests.end_to_end.test_failing import COMMAND

pytestmark = pytest.mark.end_to_end
OTHER = ["dft" if part == "sft" else part for part in COMMAND]


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of sft."""
    folder = tmp_path_factory.mktemp("first")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CL_BENCH_CACHE", str(folder / "cache"))
        assert call(*COMMAND, cwd=folder).returncode == 0
    return only_run(folder / "runs")


def test_the_same_method_goes_on_as_if_nothing_had_been_between(first: Path, cli: Cli, tmp_path: Path) -> None:
    done = cli(*COMMAND, "--from", str(first), "--from-stage", "2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    branch = only_run(tmp_path / "runs")
    assert branch.parent.name == "sft-after-sft-biology"
    assert first_difference(branch, first) == ""
    phases = [json.loads(line) for line in (branch / "events.jsonl").read_text().splitlines()]
    assert [event["stage"] for event in phases if event.get("phase") == "adapt"] == ["materials", "physics"]


def test_another_method_goes_on_without_repeating(first: Path, cli: Cli, tmp_path: Path) -> None:
    command = ["run", "--method", "dft", "--from", str(first), "--from-stage", "biology", "--threads", "1"]
    done = cli(*command, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    branch = only_run(tmp_path / "runs")
    found, before = results_of(branch), results_of(first)
    same = {name for name in found if found[name] == before.get(name)}
    early = {name for name in found if name.startswith(("stages/00-", "stages/01-", "stages/02-"))}
    assert early <= same
    assert not any(name.endswith("model.safetensors") for name in same - early)
    assert cli("validate", "run", str(branch), cwd=tmp_path).returncode == 0
    shown = cli("show", str(branch), cwd=tmp_path).stdout
    for text in (shown, (branch / "report.md").read_text()):
        assert f"goes on from stage biology of sft, seed 0 (run {first.name[-8:]})" in " ".join(text.split())
    (branch / "report.md").unlink()
    assert cli("resume", str(branch), cwd=tmp_path).returncode == 0 and (branch / "report.md").is_file()
    assert cli("compare", str(branch), str(first), cwd=tmp_path).returncode == 0


def test_a_branch_that_keeps_few_weights_goes_on_after_its_first_own_stage(
    first: Path, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = [*OTHER, "--from", str(first), "--from-stage", "1", "--keep-checkpoints", "last"]
    stages = interrupted(monkeypatch, DFT, 2)
    assert cli(*command, cwd=tmp_path).returncode == 130
    branch = only_run(tmp_path / "runs")
    assert [path.parent.name for path in branch.glob("stages/*/checkpoint")] == ["02-biology"]
    done = cli("resume", str(branch), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert stages == ["biology", "materials", "materials", "physics"]
    refused = cli(*OTHER, "--from", str(branch), "--from-stage", "2", cwd=tmp_path)
    assert (
        refused.returncode == 1
        and "the weights after stage biology are gone" in refused.stderr
        and "--fresh" in refused.stderr
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (["--from-stage", "7"], "has no such stage"),
        (["--from-stage", "4"], "no stage is left"),
        (["--from-stage", "1", "--model", "lab-m"], "they differ in model"),
        (["--from-stage", "1", "--limit", "4"], "limit (4 here, 8 there)"),
        (["--from-stage", "1", "--method", "base"], "base trains nothing"),
        (["--from-stage", "1", "--tune"], "--tune tries settings from the untouched model"),
        (["--from-stage", "\u00b2"], "has no such stage"),
        (["--from-stage", "1", "--method", "joint"], "joint trains on all tasks in one stage"),
        (["--from-stage", "1", "--order", "reversed"], "the first 1 stages"),
        ([], "go together"),
    ],
)
def test_what_cannot_go_on_is_refused(changes: list[str], words: str, first: Path, cli: Cli, tmp_path: Path) -> None:
    done = cli(*OTHER, "--from", str(first), *changes, cwd=tmp_path)
    assert done.returncode == 2 and words in done.stderr
    assert not (tmp_path / "runs").exists()


def test_a_run_is_had_again_and_what_differs_is_said(
    first: Path, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = cli("reproduce", str(first), "--run", "--output", "again", "--threads", "1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "files are equal bit for bit" in done.stdout
    with monkeypatch.context() as broken:
        broken.setattr(LocalSampler, "generate", None)  # a cache that answered would hide it
        again = cli("reproduce", str(first), "--run", "--output", "again", "--threads", "1", cwd=tmp_path)
    assert again.returncode == 1
    beside = cli("reproduce", str(first), "--run", "--output", str(first.parents[2]), cwd=tmp_path)
    assert beside.returncode == 2 and "beside the first" in beside.stderr
    half = tmp_path / "half" / first.name
    shutil.copytree(first, half)
    (half / "status.json").write_text(json.dumps({"schema_version": 1, "state": "interrupted", "updated": "2026"}))
    unfinished = cli("reproduce", str(half), "--run", cwd=tmp_path)
    assert unfinished.returncode == 1 and "is interrupted" in unfinished.stderr
    manifest = first / "manifest.json"
    before = manifest.read_text()
    try:
        content = json.loads(before)
        earlier = json.loads(json.dumps(content["sessions"][-1]))
        earlier["environment"]["packages"]["torch"] = "1.0"
        content["sessions"].insert(0, earlier)
        manifest.write_text(json.dumps(content))
        said = cli("reproduce", str(first), cwd=tmp_path)
    finally:
        manifest.write_text(before)
    assert said.returncode == 0 and f"package torch: 1.0 and {version('torch')} then" in said.stdout
    spec = json.loads(cli("reproduce", str(first), "--save-spec", "spec.yaml", "--json", cwd=tmp_path).stdout)
    assert all(not one["decides"] for one in spec["not_matched"])
    assert (tmp_path / "spec.yaml").read_text() == (first / "spec.yaml").read_text()


def test_a_run_whose_method_changed_cannot_be_had_again(
    first: Path, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cl_bench.harness.resolve.RESULTS_VERSION", 999)
    said = cli("reproduce", str(first), cwd=tmp_path)
    assert said.returncode == 1 and "not matched (decides the result): results_version" in said.stdout
    refused = cli("reproduce", str(first), "--run", cwd=tmp_path)
    assert refused.returncode == 1 and "cannot be run again here" in refused.stderr
