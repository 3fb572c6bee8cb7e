"""Plug-ins that are wrong end in words and in the right exit code; what is right beside them goes on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

RIGHT = '''
from typing import Any, ClassVar
from cl_bench.methods.base import Adaptation, Fidelity, Method, MethodSettings, Need, setting


class Mine(Method):
    """Moves a weight."""

    name = "mine"
    fidelity = Fidelity.RECONSTRUCTED
    Settings = MethodSettings
    needs: ClassVar[Any] = frozenset()

    def adapt(self, student, stage, context):
        next(student.model.parameters()).data.add_(0.01)
        return Adaptation(steps=1)
'''
NUMBER = '''
class Number(MethodSettings):
    """One."""

    size: int = setting({default}, "Size.", unit="rows", source="here", ge=0)


'''


def text(old: str = "", new: str = "", settings: str = "") -> str:
    assert old in RIGHT
    written = RIGHT.replace(old, new)
    if settings:
        written = written.replace("class Mine", settings + "class Mine").replace("= MethodSettings\n", "= Number\n")
    return written


def options(tiny: Path) -> list[str]:
    Path("sequences").mkdir()
    Path("sequences/short.yaml").write_text("name: short\nstages: [chemistry, math]\n")
    parts = ["run", "--method", "mine", "--sequence", "short", "--include-path", ".", "--model", str(tiny)]
    parts += ["--profile", "lab", "--suite", "none", "--limit", "2", "--threads", "1", "--quiet"]
    return [*parts, "--set", "evaluation.ood_rows=0"]


@pytest.mark.parametrize(
    ("written", "words"),
    [
        (text("    Settings = MethodSettings\n"), "has no Settings class"),
        (text("Settings = MethodSettings", "Settings = dict"), "has no Settings class"),
        (text("= frozenset()", "= None"), "does not say what it needs"),
        (text("= frozenset()", "= ['demonstrations']"), "does not say what it needs"),
        (text(settings=NUMBER.format(default="-5")), "size: Input should be greater than or equal to 0"),
        (text(settings=NUMBER.format(default="'abc'")), "size: Input should be a valid integer"),
        ("import sys\nsys.exit(0)\n" + RIGHT, "cannot import"),
    ],
    ids=["no settings", "other settings", "no needs", "needs in words", "low default", "other default", "exits"],
)
def test_a_broken_class_is_a_usage_error(cli: Cli, tiny: Path, written: str, words: str) -> None:
    Path("mine.py").write_text(written)
    done = cli(*options(tiny))
    assert done.code == 2 and words in done.err and "Traceback" not in done.err
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    "written",
    [text("= frozenset()", "= None"), text(settings=NUMBER.format(default="-5"))],
    ids=["no needs", "low default"],
)
def test_validate_says_what_is_wrong_with_a_class(cli: Cli, written: str) -> None:
    Path("mine.py").write_text(written)
    done = cli("validate", "method", "mine.py", "--static")
    assert done.code == 1 and done.out.count("FAIL") == 1


@pytest.mark.parametrize(
    ("kind", "file", "words"),
    [
        ("modifier", "mine.py", "cl-bench validate method mine.py"),
        ("method", "other.py", "no class in it has the name 'other'"),
    ],
)
def test_validate_says_what_a_file_does_not_define(cli: Cli, kind: str, file: str, words: str) -> None:
    Path(file).write_text(RIGHT)
    done = cli("validate", kind, file)
    assert done.code == 2 and words in done.err


@pytest.mark.end_to_end
def test_one_seed_that_raises_takes_nothing_from_the_others(cli: Cli, tiny: Path) -> None:
    raising = "        if context.seed == 1:\n            raise ValueError('oh')\n        next("
    Path("mine.py").write_text(text("        next(", raising))
    done = cli(*options(tiny), "--seeds", "0-2", "--json")
    assert done.code == 1
    runs = json.loads(done.out)["runs"]
    assert [run["status"] for run in runs] == ["done", "failed", "done"]
    assert "ValueError: oh" in runs[1]["error"] and "in the extension mine" in runs[1]["error"]


@pytest.mark.end_to_end
def test_a_last_stage_of_endless_weights_is_diverged(cli: Cli, tiny: Path) -> None:
    Path("mine.py").write_text(text(".data.add_(0.01)", ".data.fill_(float('nan') if stage.index == 2 else 0.01)"))
    done = cli(*options(tiny), "--json")
    (run,) = json.loads(done.out)["runs"]
    assert done.code == 1 and run["status"] == "diverged"
    matrix = json.loads((Path(run["directory"]) / "matrix.json").read_text())
    assert all(value is not None for value in matrix["values"]["chemistry"].values())
    assert set(matrix["values"]["math"].values()) == {None}
    assert "not finite after the stage" in matrix["reasons"]["math/math"]


@pytest.mark.end_to_end
def test_a_usage_error_within_a_stage_is_a_failure(cli: Cli, tiny: Path) -> None:
    raising = (
        "        from cl_bench.harness.errors import UsageError\n        raise UsageError('too late')\n        next("
    )
    Path("mine.py").write_text(text("        next(", raising))
    done = cli(*options(tiny))
    assert done.code == 1 and "too late" in done.err and "Traceback" not in done.err
