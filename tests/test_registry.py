"""The registry: names from files, entry points and included folders, and how broken plug-ins are reported."""

from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

from cl_bench.harness import registry as registry_module
from cl_bench.harness.errors import UnknownNameError, UsageError
from cl_bench.harness.registry import KINDS, Registry

METHOD = """
from typing import ClassVar
from cl_bench.methods.base import Adaptation, Fidelity, Method, MethodSettings

class Mine(Method):
    '''Does nothing.'''
    name: ClassVar[str] = "{name}"
    fidelity: ClassVar[Fidelity] = Fidelity.RECONSTRUCTED
    Settings = MethodSettings
    def adapt(self, student, stage, context):
        return Adaptation()
"""
MODIFIER = """
from typing import ClassVar
from cl_bench.methods.base import Fidelity, MethodSettings, Modifier

class Mine(Modifier):
    '''Changes nothing.'''
    name: ClassVar[str] = "{name}"
    fidelity: ClassVar[Fidelity] = Fidelity.RECONSTRUCTED
    Settings = MethodSettings
"""
ROOT = Path(registry_module.__file__).resolve().parents[1]


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_built_in_methods_can_all_be_loaded() -> None:
    registry = Registry()
    assert {"sft", "synthself", "sdft"} <= set(registry.methods())
    for name in registry.methods():
        assert registry.method_class(name).name == name


def test_built_in_tasks_sequences_and_suites_are_their_files() -> None:
    registry = Registry()
    assert registry.tasks() == sorted(path.stem for path in (ROOT / "tasks").glob("*.yaml"))
    assert registry.suites() == sorted(path.stem for path in (ROOT / "tasks" / "retention").glob("*.yaml"))
    for name in registry.sequences():
        for stage in registry.sequence(name).stages:
            assert stage.task in registry.tasks()


def test_every_method_file_is_found() -> None:
    names = {path.stem.replace("_", "-") for path in (ROOT / "methods").glob("*.py")} - {"--init--", "base"}
    assert set(Registry().methods()) == names


def test_listing_names_imports_no_method(tmp_path: Path) -> None:
    write(tmp_path / "methods" / "explodes.py", "raise RuntimeError('imported')")
    registry = Registry([tmp_path])
    assert "explodes" in registry.methods()
    with pytest.raises(UsageError, match="cannot import") as caught:
        registry.method_class("explodes")
    assert "imported" in caught.value.why


@pytest.mark.parametrize("folder", ["methods", "."])
def test_included_method_with_hyphens(tmp_path: Path, folder: str) -> None:
    write(tmp_path / folder / "my_method.py", METHOD.format(name="my-method"))
    registry = Registry([tmp_path])
    assert "my-method" in registry.methods()
    assert "my-method" not in registry.modifiers()
    assert registry.method_class("my-method").name == "my-method"
    assert registry.source("methods", "my-method").origin == str(tmp_path)


def test_loose_files_are_told_apart_by_content(tmp_path: Path) -> None:
    write(tmp_path / "gentle.py", MODIFIER.format(name="gentle"))
    write(tmp_path / "helper.py", "VALUE = 1\n")
    registry = Registry([tmp_path])
    assert "gentle" in registry.modifiers()
    assert "gentle" not in registry.methods()
    assert "helper" not in registry.methods() + registry.modifiers()
    assert registry.modifier_class("gentle").name == "gentle"


def test_included_yaml_files(tmp_path: Path) -> None:
    write(tmp_path / "sequences" / "short.yaml", "name: short\nstages: [math]\n")
    write(tmp_path / "suites" / "mine.yaml", "name: mine\n")
    write(tmp_path / "tasks" / "extra.yaml", "name: extra\n")
    registry = Registry([tmp_path])
    assert registry.sequence("short").stages[0].task == "math"
    assert registry.suite_path("mine") == tmp_path / "suites" / "mine.yaml"
    assert "extra" in registry.tasks()


def test_a_name_may_not_be_taken_twice(tmp_path: Path) -> None:
    write(tmp_path / "methods" / "sft.py", METHOD.format(name="sft"))
    with pytest.raises(UsageError, match="two methods are called 'sft'") as caught:
        Registry([tmp_path])
    assert str(tmp_path) in caught.value.why


def test_the_same_folder_twice_is_no_clash(tmp_path: Path) -> None:
    write(tmp_path / "methods" / "mine.py", METHOD.format(name="mine"))
    assert "mine" in Registry([tmp_path, tmp_path]).methods()


@pytest.mark.parametrize("kind", KINDS)
def test_unknown_names_come_with_the_nearest(kind: str) -> None:
    registry = Registry()
    known = registry.names(kind)
    with pytest.raises(UnknownNameError) as caught:
        registry.source(kind, known[0] + "x")
    assert known[0] in caught.value.nearest


def test_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a folder"):
        Registry([tmp_path / "absent"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (METHOD.format(name="other"), "is called 'other'"),
        ("VALUE = 1\n", "exactly one Method"),
        (METHOD.format(name="mine") + METHOD.replace("Mine", "Two").format(name="mine"), "exactly one Method"),
        ("def broken(:\n", "cannot import"),
        ("import no_such_module_anywhere\n", "cannot import"),
    ],
    ids=["another name", "no method", "two methods", "syntax error", "missing import"],
)
def test_broken_method_files(tmp_path: Path, text: str, message: str) -> None:
    write(tmp_path / "methods" / "mine.py", text)
    with pytest.raises(UsageError, match=message):
        Registry([tmp_path]).method_class("mine")


def test_abstract_method_names_what_is_missing(tmp_path: Path) -> None:
    text = METHOD.format(name="mine").replace("def adapt", "def adopt")
    write(tmp_path / "methods" / "mine.py", text)
    with pytest.raises(UsageError) as caught:
        Registry([tmp_path]).method_class("mine")
    assert "does not define adapt" in caught.value.why


def test_identity_follows_the_source(tmp_path: Path) -> None:
    path = write(tmp_path / "methods" / "mine.py", METHOD.format(name="mine"))
    before = Registry([tmp_path]).identity("methods", "mine")
    assert Registry([tmp_path]).identity("methods", "mine") == before
    write(path, METHOD.format(name="mine") + "# changed\n")
    assert Registry([tmp_path]).identity("methods", "mine") != before


def test_the_folder_of_an_installed_package_is_no_second_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path / "a_package" / "mine.py", METHOD.format(name="mine"))
    write(tmp_path / "a_package" / "__init__.py", "")
    point = EntryPoint("mine", "a_package.mine:Mine", "cl_bench.methods")
    monkeypatch.setattr(registry_module, "entry_points", lambda: EntryPoints([point]))
    monkeypatch.syspath_prepend(str(tmp_path))
    assert Registry([file.parent]).source("methods", "mine").entry_point == point
    other = write(tmp_path / "elsewhere" / "mine.py", METHOD.format(name="mine") + "# another\n")
    with pytest.raises(UsageError, match="two methods are called 'mine'"):
        Registry([other.parent])


def test_entry_points_are_found_and_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    points = EntryPoints(
        [
            EntryPoint("from-elsewhere", "cl_bench.methods.sft:SFT", "cl_bench.methods"),
            EntryPoint("not-a-method", "json:dumps", "cl_bench.methods"),
            EntryPoint("gone", "no_such_module_anywhere:X", "cl_bench.methods"),
        ]
    )
    monkeypatch.setattr(registry_module, "entry_points", lambda: points)
    registry = Registry()
    assert registry.method_class("from-elsewhere").name == "sft"
    with pytest.raises(UsageError, match="not a Method class"):
        registry.method_class("not-a-method")
    with pytest.raises(UsageError, match="cannot load 'gone'"):
        registry.method_class("gone")
