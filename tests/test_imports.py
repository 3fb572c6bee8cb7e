"""Rules about what imports what, and when: start-up stays fast and the parts stay apart."""

from __future__ import annotations

import ast
import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("harness", "methods", "tasks", "sequences", "reports")
HEAVY = frozenset({
    "accelerate", "datasets", "evaluate", "gguf", "lm_eval", "matplotlib", "numpy", "pandas", "peft", "pyarrow",
    "scipy", "seaborn", "sklearn", "torch", "transformers", "trl",
})  # fmt: skip
AT_THE_TOP = HEAVY - {"torch", "numpy"}
"""What no module may import at its top: nothing heavier than torch."""
UNSTABLE = ("trl", "transformers", "peft", "lm_eval", "datasets", "evaluate")
"""Libraries whose names move between versions."""
LONGEST = 400
LOADED_BY_EVALUATE = "harness/measure/evaluate_modules/*/*.py"
"""Scripts that ``evaluate.load`` copies and runs; nothing imports them."""
PRELOADED = "harness/selfcheck/preloaded.py"
"""Imports the libraries of a run, once for many processes; loaded by name in a process of its own."""


def sources() -> list[Path]:
    """Every Python file of the package."""
    return sorted(path for part in PARTS for path in (ROOT / part).rglob("*.py"))


def module_name(path: Path) -> str:
    """Import name of a file of the package."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = parts[:-1] if parts[-1] == "__init__" else parts
    return ".".join(("cl_bench",) if parts == ("harness", "_root") else ("cl_bench", *parts))


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def is_type_checking(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def run_at_import(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements that run when a module is imported: not function bodies, not what only type checkers read."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        yield node
        for name in ("body", "orelse", "finalbody"):
            if name == "body" and is_type_checking(node):
                continue
            yield from run_at_import(getattr(node, name, []))
        for handler in getattr(node, "handlers", []):
            yield from run_at_import(handler.body)


def imported(nodes: Iterator[ast.stmt] | Iterator[ast.AST]) -> Iterator[tuple[str, str | None, int]]:
    """(module, name or None, line) of each import statement among the nodes."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((alias.name, None, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.module, alias.name, node.lineno) for alias in node.names)


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)


def loaded_after(statement: str) -> set[str]:
    """Heavy top-level packages in a fresh interpreter after a statement."""
    show = "import json, sys; print(json.dumps(sorted({module.split('.')[0] for module in sys.modules})))"
    child = python(f"{statement}\n{show}")
    assert child.returncode == 0, child.stderr
    return set(json.loads(child.stdout.splitlines()[-1])) & HEAVY


def test_the_detector_sees_imports_at_the_top_only() -> None:
    tree = ast.parse(
        "import a\n"
        "if TYPE_CHECKING:\n    import b\nelse:\n    import c\n"
        "try:\n    import d\nexcept ImportError:\n    import e\n"
        "def f():\n    import g\n"
        "class K:\n    import h\n    def m(self):\n        import i\n"
    )
    assert [module for module, _, _ in imported(run_at_import(tree.body))] == ["a", "c", "d", "e", "h"]


def test_nothing_heavier_than_torch_at_the_top() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: import {module} inside the function that needs it"
        for path in sources()
        for module, _, line in imported(run_at_import(parse(path).body))
        if module.split(".")[0] in AT_THE_TOP
        and not any(path.relative_to(ROOT).match(pattern) for pattern in (LOADED_BY_EVALUATE, PRELOADED))
    ]
    assert not found


def test_imports_are_absolute_and_through_the_package() -> None:
    wrong = []
    for path in sources():
        nodes = list(ast.walk(parse(path)))
        relative = [node.lineno for node in nodes if isinstance(node, ast.ImportFrom) and node.level]
        # `import harness` would work from the checkout and give a second copy of every module.
        bare = [line for module, _, line in imported(iter(nodes)) if module.split(".")[0] in PARTS]
        wrong += [f"{path.relative_to(ROOT)}:{line}: write `from cl_bench.…`" for line in relative + bare]
    assert not wrong


def test_files_stay_readable() -> None:
    lengths = {str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines()) for path in sources()}
    assert {name: length for name, length in lengths.items() if length > LONGEST} == {}


def test_methods_tasks_and_sequences_know_each_others_contracts_only() -> None:
    apart = ("methods", "tasks", "sequences")
    wrong = []
    for part in apart:
        for path in (ROOT / part).rglob("*.py"):
            for module, name, line in imported(ast.walk(parse(path))):
                _, other, *rest = (*module.split("."), "", "")
                contract = rest[0] == "base" or name == "base"
                if module.startswith("cl_bench.") and other in apart and other != part and not contract:
                    wrong.append(f"{path.relative_to(ROOT)}:{line}: {module}")
    assert not wrong


def test_the_command_line_starts_without_heavy_packages() -> None:
    commands = [module_name(path) for path in (ROOT / "harness" / "commands").glob("*.py")]
    assert loaded_after("import cl_bench.harness.cli, " + ", ".join(sorted(commands))) == set()


def test_help_loads_no_heavy_package_and_no_plugin() -> None:
    code = (
        "import sys\n"
        "from cl_bench.harness.cli import main\n"
        "sys.argv = ['cl-bench', '--help']\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code, end.code\n"
        "built_in = ('cl_bench.methods.', 'cl_bench.tasks.', 'cl_bench.sequences.')\n"
        "assert not [m for m in sys.modules if m.startswith(built_in)], sorted(sys.modules)\n"
    )
    assert loaded_after(code) == set()


def test_the_root_package_costs_nothing() -> None:
    assert loaded_after("import cl_bench; cl_bench.__version__") == set()


def test_reports_need_no_torch() -> None:
    reports = [module_name(path) for path in (ROOT / "reports").rglob("*.py")]
    assert loaded_after("import " + ", ".join(sorted(reports))) & {"torch", "transformers", "trl"} == set()


def test_every_public_name_resolves() -> None:
    package = importlib.import_module("cl_bench")
    assert package.__all__
    for name in package.__all__:
        assert getattr(package, name) is not None
    with pytest.raises(AttributeError, match="no_such_name"):
        package.no_such_name  # noqa: B018


def test_every_module_can_be_the_first_one_imported() -> None:
    """No import cycle that works from one end only. Third-party modules stay loaded, ours are dropped each time."""
    names = [module_name(path) for path in sources() if path.name != "__main__.py"]
    code = (
        "import importlib, sys, traceback\n"
        "broken = []\n"
        f"for name in {names!r}:\n"
        "    for loaded in [m for m in sys.modules if m == 'cl_bench' or m.startswith('cl_bench.')]:\n"
        "        del sys.modules[loaded]\n"
        "    try:\n        importlib.import_module(name)\n"
        "    except Exception:\n        broken.append(name + ': ' + traceback.format_exc(limit=-1))\n"
        "sys.exit('\\n'.join(broken) or 0)\n"
    )
    child = python(code)
    assert child.returncode == 0, child.stderr


def library_symbols() -> list[tuple[str, str | None]]:
    """Names that the package takes from libraries whose names move."""
    found = {
        (module, name)
        for path in sources()
        for module, name, _ in imported(ast.walk(parse(path)))
        if module.split(".")[0] in UNSTABLE
    }
    return sorted(found, key=str)


def test_every_library_symbol_in_use_exists() -> None:
    missing = []
    for module, name in library_symbols():
        try:
            loaded = importlib.import_module(module)
            if name is not None and not hasattr(loaded, name):
                importlib.import_module(f"{module}.{name}")
        except ImportError as error:
            missing.append(f"{module}:{name}: {error}")
    assert not missing
