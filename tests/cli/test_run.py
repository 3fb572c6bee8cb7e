"""``run`` and ``resume`` with a tiny random model on a few lab rows."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from cl_bench.harness.conformance.lab_run import lab_checks
from cl_bench.harness.progress import SilentProgress
from cl_bench.harness.registry import Registry
from cl_bench.harness.spec import Execution
from tests.cli.conftest import Done, call

pytestmark = pytest.mark.end_to_end


@dataclass(frozen=True)
class Finished:
    """A finished run of a method of the user's, in a folder of its own.

    Attributes:
        home: The folder that the command was called in.
        options: The command.
        done: How it ended.
        directory: The run directory, below ``home``.
    """

    home: Path
    options: list[str]
    done: Done
    directory: Path


@pytest.fixture(scope="module")
def original(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    home = tmp_path_factory.mktemp("run")
    (home / "mine" / "sequences").mkdir(parents=True)
    (home / "mine" / "sequences" / "short.yaml").write_text("name: short\nstages: [chemistry, math]\n")
    options = [
        *("run", "--method", "my-way", "--sequence", "short", "--include-path", "mine", "--model", str(tiny)),
        *("--profile", "lab", "--suite", "none", "--limit", "2", "--threads", "1", "--set", "evaluation.ood_rows=0"),
    ]
    before = Path.cwd()
    os.chdir(home)
    try:
        call("new", "method", "my-way", "--dir", "mine/methods")
        (home / "mine" / "methods" / "test_my_way.py").unlink()
        done = call(*options, "--json", "--save-spec", "spec.yaml")
    finally:
        os.chdir(before)
    return Finished(home, options, done, Path(json.loads(done.out)["runs"][0]["directory"]))


@pytest.fixture()
def finished(original: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Finished:
    """A copy of the finished run, its home being the current folder."""
    home = tmp_path / "home"
    shutil.copytree(original.home, home)
    monkeypatch.chdir(home)
    return Finished(home, original.options, original.done, original.directory)


def test_json_is_one_line_and_the_second_call_does_no_work(finished: Finished) -> None:
    (run,) = json.loads(finished.done.out)["runs"]
    assert len(finished.done.out.splitlines()) == 1
    assert (finished.done.code, run["status"]) == (0, "done")
    assert finished.directory.name == f"tiny-default-s0-{run['hash'][:8]}"
    before = {path: path.stat().st_mtime_ns for path in finished.directory.rglob("*") if path.is_file()}
    second = call("run", "spec.yaml", "--include-path", "mine", "--threads", "1", "--json")
    assert json.loads(second.out) == json.loads(finished.done.out)
    after = {path: path.stat().st_mtime_ns for path in finished.directory.rglob("*") if path.is_file()}
    assert {path.name for path in after if after[path] != before.get(path)} <= {".lock"}


def test_seeds_end_with_their_directories(finished: Finished) -> None:
    done = call(*finished.options, "--seeds", "0-1", "--quiet")
    assert done.code == 0
    last = [Path(line) for line in done.out.splitlines()[-2:]]
    assert [path.name.rpartition("-")[0] for path in last] == ["tiny-default-s0", "tiny-default-s1"]
    assert all((path / "matrix.json").is_file() for path in last)
    assert "over seeds" in done.out


def test_resume_of_a_finished_run_prints_its_table(finished: Finished) -> None:
    refused = call("resume", str(finished.directory), "--quiet")
    assert refused.code == 2 and "made with plug-ins: method my-way" in refused.err and "mine" in refused.err
    done = call("resume", str(finished.directory), "--quiet", "--include-path", "mine")
    assert done.code == 0
    assert done.out.splitlines()[-1].endswith(str(finished.directory))


def test_resume_refuses_when_the_method_has_changed(finished: Finished) -> None:
    with (finished.home / "mine" / "methods" / "my_way.py").open("a") as stream:
        stream.write("# changed\n")
    refused = call("resume", str(finished.directory), "--include-path", "mine")
    assert refused.code == 1
    assert "method.identity" in refused.err


def test_a_directory_whose_spec_was_edited_is_refused(finished: Finished) -> None:
    spec = finished.directory / "spec.yaml"
    spec.write_text(spec.read_text().replace("seed: 0", "seed: 1"))
    for command in (["resume", str(finished.directory)], ["validate", "run", str(finished.directory)]):
        refused = call(*command)
        assert refused.code == 1
        assert "does not belong to the spec" in refused.err


def test_show_and_validate_read_a_run(finished: Finished) -> None:
    assert call("validate", "run", str(finished.directory)).code == 0
    assert "chemistry" in call("show", "run", str(finished.directory)).out
    content = json.loads(call("show", "run", str(finished.directory), "--json").out)
    assert content["matrix"]["rows"] == ["base", "chemistry", "math"]


def test_validate_finds_a_damaged_file(finished: Finished) -> None:
    damaged = next(finished.directory.glob("stages/01-*/eval/*/samples.jsonl"))
    damaged.write_text(damaged.read_text() + "\n")
    done = call("validate", "run", str(finished.directory))
    assert done.code == 1
    assert damaged.name in done.out + done.err


def test_a_file_is_refused_as_output(finished: Finished, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    assert call(*finished.options, "--output", str(tmp_path / "file")).code == 2
    assert (tmp_path / "file").read_text() == "mine"


IDLE = '''
from typing import ClassVar
from cl_bench.methods.base import Adaptation, Fidelity, Method, MethodSettings

class Idle(Method):
    """Trains nothing."""
    name: ClassVar[str] = "idle"
    fidelity: ClassVar[Fidelity] = Fidelity.RECONSTRUCTED
    Settings = MethodSettings
    def adapt(self, student, stage, context):
        return Adaptation()
'''


def test_the_short_run_of_validate_sees_a_method_that_trains_nothing(tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "idle.py").write_text(IDLE)
    registry = Registry([tmp_path])
    checks = lab_checks("idle", registry, Execution(threads=1), SilentProgress(quiet=True), model=str(tiny))
    failed = {check.name for check in checks if not check.passed}
    assert failed == {"every stage reports its steps", "every stage changes the weights"}
