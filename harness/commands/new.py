"""``cl-bench new``: a working file to start from, alone or in a package."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from cl_bench.harness.commands import method_template, modifier_template, package_template
from cl_bench.harness.commands.execution import print_json
from cl_bench.harness.errors import UsageError
from cl_bench.harness.registry import Registry
from cl_bench.harness.request import BOUNDS

Kind = Literal["method", "modifier"]
_FILES = {
    "method": (method_template.METHOD, method_template.TEST),
    "modifier": (modifier_template.MODIFIER, modifier_template.TEST),
}


def new_command(kind: Kind, name: str, directory: Path, package: bool, json: bool) -> int:
    """Write ``<name>.py`` and ``test_<name>.py``, or a folder ``<name>`` with both in an installable package.

    Raises:
        UsageError: The name is taken or not of the right form, or a file exists; nothing is written then.
    """
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise UsageError(
            f"{name!r} cannot be a {kind}'s name",
            hint=f"small letters and digits, words joined by hyphens: my-{kind}",
        )
    if name in BOUNDS or name in Registry().names(f"{kind}s"):
        raise UsageError(f"a {kind} called {name!r} exists already", hint="choose another name")
    module = name.replace("-", "_")
    contents = _package(kind, name, directory / name) if package else _loose(kind, module, directory)
    for path in contents:
        if path.exists():
            raise UsageError(f"{path} exists already", hint="choose another --dir or name")
    words = _words(kind, name, package)
    for path, template in contents.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(filled(template, words), encoding="utf-8")
    files = [str(path) for path in contents]
    if json:
        print_json({"name": name, "files": files})
        return 0
    print("\n".join(files))
    print(f"try: cl-bench validate {kind} {files[0]}")
    if package:
        print(f"     pip install -e {directory / name}")
    where = "" if package else f" --include-path {directory}"
    print(f"     cl-bench run {words['RUN']} --sequence science{where}")
    return 0


def filled(template: str, words: Mapping[str, str]) -> str:
    """A template with its words put in."""
    for word, text in words.items():
        template = template.replace(f"@{word}@", text)
    return template


def _loose(kind: Kind, module: str, directory: Path) -> dict[Path, str]:
    file, test = _FILES[kind]
    return {directory / f"{module}.py": file, directory / f"test_{module}.py": test}


def _package(kind: Kind, name: str, folder: Path) -> dict[Path, str]:
    file, test = _FILES[kind]
    module = name.replace("-", "_")
    inner = folder / _package_name(module)
    return {
        inner / f"{module}.py": file,
        inner / "__init__.py": package_template.INIT,
        folder / "tests" / f"test_{module}.py": test,
        folder / "pyproject.toml": package_template.PYPROJECT,
        folder / "README.md": package_template.README,
    }


def _package_name(module: str) -> str:
    # A prefix, so that no other package is shadowed by a method's name.
    return f"cl_bench_{module}"


def _words(kind: Kind, name: str, package: bool) -> dict[str, str]:
    module = name.replace("-", "_")
    beside = f'Path(__file__).with_name("{module}.py")'
    inside = f'Path(__file__).parents[1] / "{_package_name(module)}" / "{module}.py"'
    return {
        "KIND": kind,
        "NAME": name,
        "CLASS": "".join(part.capitalize() for part in name.split("-")),
        "MODULE": module,
        "PACKAGE": _package_name(module),
        "FILE": inside if package else beside,
        "RUN": f"--method {name}" if kind == "method" else f"--method sft --with {name}",
    }
