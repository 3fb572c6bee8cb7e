"""``new`` and ``validate`` for methods and modifiers: what is written runs, and planted faults are seen."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from cl_bench.harness.conformance.behaviour import behaviour_checks
from cl_bench.harness.conformance.trials import Trials
from cl_bench.harness.plugins import import_file
from cl_bench.harness.registry import Registry
from tests.cli.conftest import Cli


def test_new_method_is_found_and_passes_the_static_checks(cli: Cli, tmp_path: Path) -> None:
    done = cli("new", "method", "my-way", "--dir", "mine")
    assert done.code == 0
    assert done.out.splitlines()[:2] == ["mine/my_way.py", "mine/test_my_way.py"]
    assert "my-way" in cli("list", "methods", "--include-path", "mine").out
    checked = cli("validate", "method", "mine/my_way.py", "--static", "--json")
    assert checked.code == 0
    assert json.loads(checked.out)["valid"] is True


def test_the_loss_of_the_new_method_is_tested_by_its_test(cli: Cli, tmp_path: Path) -> None:
    cli("new", "method", "my-way")
    tests = import_file(tmp_path / "test_my_way.py")
    tests.test_loss_of_even_logits_is_the_logarithm_of_the_vocabulary()
    tests.test_smoothing_costs_a_confident_answer()
    text = (tmp_path / "my_way.py").read_text().replace("share * evenly", "0 * evenly")
    (tmp_path / "my_way.py").write_text(text)
    with pytest.raises(AssertionError):
        tests.test_smoothing_costs_a_confident_answer()


@pytest.mark.parametrize("name", ["My-Way", "my_way", "1way", "sft", "base", "-x"])
def test_new_method_refuses_names(cli: Cli, tmp_path: Path, name: str) -> None:
    assert cli("new", "method", "--", name).code == 2
    assert list(tmp_path.iterdir()) == []


def test_new_method_overwrites_nothing(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "test_my_way.py").write_text("mine")
    assert cli("new", "method", "my-way").code == 2
    assert [path.name for path in tmp_path.iterdir()] == ["test_my_way.py"]


@pytest.mark.parametrize(
    ("old", "new", "check"),
    [
        ("fidelity: ClassVar[Fidelity] = Fidelity.RECONSTRUCTED", 'fidelity = "sure"', "fidelity is declared"),
        ("stage: Stage, context: Context) ->", "context: Context, stage: Stage) ->", "adapt takes"),
        ("smoothing: float = setting(", "careless: int = 3\n    smoothing: float = setting(", "a description, a unit"),
    ],
)
def test_static_checks_see_planted_faults(cli: Cli, tmp_path: Path, old: str, new: str, check: str) -> None:
    cli("new", "method", "my-way")
    text = (tmp_path / "my_way.py").read_text()
    assert old in text
    (tmp_path / "my_way.py").write_text(text.replace(old, new))
    done = cli("validate", "method", "my_way.py", "--static")
    assert done.code == 1
    assert check in "".join(line for line in done.out.splitlines() if "FAIL" in line)


def test_every_built_in_method_and_modifier_passes_the_static_checks(cli: Cli) -> None:
    for kind in ("method", "modifier"):
        for name in Registry().names(f"{kind}s"):
            assert cli("validate", kind, name, "--static").code == 0


def test_new_modifier_is_found_and_its_test_tests_its_penalty(cli: Cli, tmp_path: Path) -> None:
    done = cli("new", "modifier", "my-pull", "--dir", "mine")
    assert done.code == 0
    assert done.out.splitlines()[:2] == ["mine/my_pull.py", "mine/test_my_pull.py"]
    assert json.loads(cli("validate", "modifier", "mine/my_pull.py", "--static", "--json").out)["valid"] is True
    tests = import_file(tmp_path / "mine" / "test_my_pull.py")
    tests.test_the_penalty_is_half_the_squared_distance()
    file = tmp_path / "mine" / "my_pull.py"
    file.write_text(file.read_text().replace("return 0.5 *", "return 1.0 *"))
    with pytest.raises(AssertionError):
        tests.test_the_penalty_is_half_the_squared_distance()


@pytest.mark.parametrize(("kind", "name"), [("method", "my-way"), ("modifier", "my-pull")])
def test_what_new_writes_passes_the_checks_on_a_tiny_model(cli: Cli, kind: str, name: str, tmp_path: Path) -> None:
    cli("new", kind, name)
    registry = Registry([tmp_path])
    modifier: Any = registry.modifier_class(name) if kind == "modifier" else None
    trials = Trials(registry.method_class("sft" if modifier else name), tmp_path / "trials", modifier)
    checks = behaviour_checks(trials)
    assert len(checks) > 10 and [check for check in checks if not check.passed] == []


@pytest.mark.parametrize(("kind", "name"), [("method", "my-way"), ("modifier", "my-pull")])
def test_new_package_can_be_installed_by_its_entry_point(
    cli: Cli, kind: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = cli("new", kind, name, "--package", "--json")
    assert done.code == 0
    folder, module = tmp_path / name, name.replace("-", "_")
    package = f"cl_bench_{module}"
    assert sorted(json.loads(done.out)["files"]) == sorted(
        str(path.relative_to(tmp_path)) for path in folder.rglob("*") if path.is_file()
    )
    project = tomllib.loads((folder / "pyproject.toml").read_text())
    ((group, points),) = project["project"]["entry-points"].items()
    assert group == f"cl_bench.{kind}s"
    assert project["tool"]["setuptools"]["packages"] == [package]
    place, _, cls = points[name].partition(":")
    monkeypatch.syspath_prepend(str(folder))
    __import__(place)
    assert getattr(sys.modules[place], cls).name == name
    assert f"cl-bench validate {kind} {name}" in (folder / "README.md").read_text()
    checked = cli("validate", kind, str(folder / package / f"{module}.py"), "--static")
    assert checked.code == 0, checked.err
    tests = import_file(folder / "tests" / f"test_{module}.py")
    assert folder / package / f"{module}.py" == tests.FILE
    assert cli("new", kind, name, "--package").code == 2, "nothing is overwritten"


@pytest.mark.parametrize(
    ("old", "new", "check"),
    [
        ("def parameter_penalty(self, student: Student)", "def parameter_penalty(self)", "hooks take"),
        ("fidelity: ClassVar[Fidelity] = Fidelity.RECONSTRUCTED", 'fidelity = "sure"', "fidelity is declared"),
        ("0.1, ", 'float("inf"), ', "defaults are allowed values"),
    ],
)
def test_static_checks_of_modifiers_see_planted_faults(
    cli: Cli, tmp_path: Path, old: str, new: str, check: str
) -> None:
    cli("new", "modifier", "my-pull")
    text = (tmp_path / "my_pull.py").read_text()
    assert old in text
    (tmp_path / "my_pull.py").write_text(text.replace(old, new))
    done = cli("validate", "modifier", "my_pull.py", "--static")
    assert done.code == 1
    assert check in "".join(line for line in done.out.splitlines() if "FAIL" in line)


def test_a_modifier_without_a_hook_is_refused(cli: Cli, tmp_path: Path) -> None:
    text = (
        "from cl_bench.methods.base import Fidelity, MethodSettings, Modifier\n\n"
        'class Idle(Modifier):\n    """Changes nothing."""\n    name = \'idle\'\n'
        "    fidelity = Fidelity.RECONSTRUCTED\n    Settings = MethodSettings\n"
    )
    (tmp_path / "idle.py").write_text(text)
    done = cli("validate", "modifier", "idle.py", "--static")
    assert done.code == 1 and "at least one hook" in done.out


def test_validate_says_what_went_wrong_on_the_tiny_model_and_does_not_go_on(cli: Cli, tmp_path: Path) -> None:
    cli("new", "method", "my-way")
    text = (tmp_path / "my_way.py").read_text()
    (tmp_path / "my_way.py").write_text(text.replace("        trainer.run()\n", "        raise ValueError('oh')\n"))
    done = cli("validate", "method", "my_way.py", "--json")
    assert done.code == 1
    (line,) = done.out.splitlines()
    (failed,) = [check for check in json.loads(line)["checks"] if not check["passed"]]
    number = text[: text.index("        trainer.run()\n")].count("\n") + 1
    assert failed["check"] == "a tiny model is trained"
    assert failed["problem"] == f"ValueError: oh (my_way.py, line {number}, in adapt)"


def test_validate_names_its_kinds(cli: Cli) -> None:
    shown = cli("validate", "--help").out
    assert all(f"  {kind} " in shown for kind in ("method", "modifier", "task", "suite", "run", "spec"))
