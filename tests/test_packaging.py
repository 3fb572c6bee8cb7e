"""The wheel: complete, and usable from any directory of a machine that has only the wheel and its dependencies."""

from __future__ import annotations

import ast
import fnmatch
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("harness", "methods", "tasks", "sequences", "reports")
LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.egg-info", "build", "dist")


def settings() -> dict[str, Any]:
    """The setuptools table of pyproject.toml."""
    table: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    return table


def package_of(folder: Path) -> str:
    """Import name of a folder of the checkout."""
    parts = folder.relative_to(ROOT).parts
    return "cl_bench" if parts == ("harness", "_root") else ".".join(("cl_bench", *parts))


def run(*command: str | Path, cwd: Path, timeout: float = 300, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command with an environment that does not lead back to the checkout."""
    env = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return subprocess.run([str(part) for part in command], cwd=cwd, env={**env, **environment}, capture_output=True,
                          text=True, timeout=timeout, check=False)  # fmt: skip


def test_every_package_of_the_tree_is_listed() -> None:
    folders = {path.parent for part in PARTS for path in (ROOT / part).rglob("__init__.py")}
    assert sorted(settings()["packages"]) == sorted(package_of(folder) for folder in folders)


def test_every_folder_with_code_is_a_package() -> None:
    folders = {path.parent for part in PARTS for path in (ROOT / part).rglob("*.py")}
    assert [str(folder) for folder in sorted(folders) if not (folder / "__init__.py").exists()] == []


def test_every_part_is_marked_as_typed() -> None:
    assert [part for part in (*PARTS, "harness/_root") if not (ROOT / part / "py.typed").exists()] == []


def test_every_library_in_use_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [name for group in project["optional-dependencies"].values() for name in group]
    declared = {canonicalize_name(Requirement(text).name) for text in (*project["dependencies"], *extras)}
    distributions = packages_distributions()
    missing = set()
    for path in (path for part in PARTS for path in (ROOT / part).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            else:
                modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for module in {name.split(".")[0] for name in modules} - sys.stdlib_module_names - {"cl_bench", ""}:
                if not declared & {canonicalize_name(name) for name in distributions.get(module, [module])}:
                    missing.add(f"{path.relative_to(ROOT)}: {module}")
    assert missing == set()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy so that the checkout stays clean. Uses the setuptools of this environment."""
    work = tmp_path_factory.mktemp("wheel")
    source = work / "source"
    source.mkdir()
    for part in PARTS:
        shutil.copytree(ROOT / part, source / part, ignore=LEFT_OUT)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy2(ROOT / name, source)
    built = run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index", "--no-build-isolation",
                "--wheel-dir", work / "dist", source, cwd=work)  # fmt: skip
    assert built.returncode == 0, built.stderr
    (path,) = (work / "dist").glob("*.whl")
    return path


def test_the_wheel_holds_every_file_of_the_package(wheel: Path) -> None:
    ignored = ("*.pyc", "*.orig", "*~")
    expected = set()
    for part in PARTS:
        for path in (ROOT / part).rglob("*"):
            if path.is_file() and not any(fnmatch.fnmatch(path.name, pattern) for pattern in ignored):
                inside = path.relative_to(ROOT).as_posix().removeprefix("harness/_root/")
                expected.add(f"cl_bench/{inside}")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert expected - names == set()
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"cl_bench"}
    assert any(name.endswith("licenses/LICENSE") for name in names)


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty environment with the wheel; its dependencies are read from the environment that runs the tests.

    A folder named in a ``.pth`` file joins the path, but the ``.pth`` files inside that folder are not run: the
    editable install of the checkout therefore stays invisible, and no download is needed.
    """
    home = tmp_path_factory.mktemp("environment")
    venv.create(home, with_pip=False, symlinks=True)
    python = home / "bin" / "python"
    done = run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index", wheel,
               cwd=home)  # fmt: skip
    assert done.returncode == 0, done.stderr
    (site_packages,) = home.glob("lib/python*/site-packages")
    borrowed = dict.fromkeys([sysconfig.get_path("purelib"), sysconfig.get_path("platlib")])
    (site_packages / "zz_dependencies.pth").write_text("\n".join(borrowed) + "\n", encoding="utf-8")
    return home


def undocumented(directory: Path) -> list[str]:
    """Files of a run that docs/run-directory.md does not name; models and tasks have folders of their own."""
    page = (ROOT / "docs" / "run-directory.md").read_text(encoding="utf-8")
    own = {"checkpoint", "eval"}
    files = [path.relative_to(directory) for path in directory.rglob("*") if path.is_file()]
    return [str(file) for file in files if not own & set(file.parts) and file.name not in page and file.name != ".lock"]


@pytest.mark.end_to_end
def test_the_installed_copy_is_the_one_in_use(installed: Path, tmp_path: Path) -> None:
    code = "import cl_bench, cl_bench.harness.cli as c; print(c.__file__); print(cl_bench.__version__)"
    shown = run(installed / "bin" / "python", "-c", code, cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    file, version = shown.stdout.splitlines()
    assert Path(file).is_relative_to(installed)
    assert version == tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]


@pytest.mark.end_to_end
def test_help_and_lists_work_from_another_directory(installed: Path, tmp_path: Path) -> None:
    command = installed / "bin" / "cl-bench"
    shown = run(command, "--help", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "run" in shown.stdout
    for kind, names in {
        "methods": ("sft", "synthself", "sdft"),
        "sequences": ("science", "skills", "full", "reasoning"),
        "tasks": ("chemistry", "biology", "materials", "physics", "math", "tool-use"),
    }.items():
        listed = run(command, "list", kind, cwd=tmp_path)
        assert listed.returncode == 0, listed.stderr
        assert [name for name in names if name not in listed.stdout.split()] == []
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def with_example_package(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same environment with the example package, built from a copy so that the checkout stays clean."""
    source = tmp_path_factory.mktemp("example") / "package"
    shutil.copytree(ROOT / "examples" / "package", source, ignore=LEFT_OUT)
    done = run(sys.executable, "-m", "pip", "--python", installed / "bin" / "python", "install", "--quiet", "--no-deps",
               "--no-index", "--no-build-isolation", source, cwd=source)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return installed


@pytest.mark.end_to_end
def test_an_installed_package_brings_a_method_and_a_modifier(with_example_package: Path, tmp_path: Path) -> None:
    command = with_example_package / "bin" / "cl-bench"
    listed = run(command, "list", "methods", "--json", cwd=tmp_path)
    assert listed.returncode == 0, listed.stderr
    rows = {row["name"]: row for row in json.loads(listed.stdout)}
    assert {name: (rows[name]["kind"], rows[name]["from"]) for name in ("calm-sft", "calm-output")} == {
        "calm-sft": ("method", "cl-bench-calm"),
        "calm-output": ("modifier", "cl-bench-calm"),
    }
    checked = run(command, "validate", "method", "calm-sft", cwd=tmp_path, CL_BENCH_CACHE=str(tmp_path / "cache"))
    assert checked.returncode == 0, checked.stdout + checked.stderr
    # The package's folder given beside its installation is the same method, not a second one.
    folder = str(ROOT / "examples" / "package" / "cl_bench_calm")
    again = run(command, "validate", "method", "calm-sft", "--static", "--include-path", folder, cwd=tmp_path)
    assert again.returncode == 0, again.stdout + again.stderr


@pytest.mark.end_to_end
def test_they_run_together(with_example_package: Path, tmp_path: Path) -> None:
    arguments = ("run", "--method", "calm-sft", "--with", "calm-output", "--sequence", "science", "--model", "lab-s",
                 "--limit", "8", "--suite", "none", "--offline")  # fmt: skip
    command = with_example_package / "bin" / "cl-bench"
    done = run(command, *arguments, cwd=tmp_path, CL_BENCH_CACHE=str(tmp_path / "cache"))
    assert done.returncode == 0, done.stderr
    directory = tmp_path / done.stdout.strip().splitlines()[-1]
    spec = (directory / "spec.yaml").read_text(encoding="utf-8")
    assert "name: calm-sft" in spec and "name: calm-output" in spec
    assert len(list(directory.glob("stages/*/done.json"))) == 5


@pytest.mark.end_to_end
def test_the_main_job_runs_from_another_directory(installed: Path, tmp_path: Path) -> None:
    arguments = ("run", "--method", "synthself", "--sequence", "science", "--limit", "16", "--offline")
    done = run(installed / "bin" / "cl-bench", *arguments, cwd=tmp_path, CL_BENCH_CACHE=str(tmp_path / "cache"))
    assert done.returncode == 0, done.stderr
    directory = tmp_path / done.stdout.strip().splitlines()[-1]
    assert directory.is_relative_to(tmp_path / "runs")
    matrix = json.loads((directory / "matrix.json").read_text(encoding="utf-8"))
    assert matrix["rows"] == ["base", "chemistry", "biology", "materials", "physics"]
    assert {column["kind"] for column in matrix["columns"]} >= {"sequence", "retention"}
    measured = [matrix["values"][row][column["name"]] for row in matrix["rows"] for column in matrix["columns"]]
    assert [value for value in measured if value is None or not 0 <= value <= 1] == []
    assert len(list(directory.glob("stages/*/done.json"))) == len(matrix["rows"])
    assert undocumented(directory) == []
