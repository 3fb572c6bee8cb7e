"""``cl-bench new``: a working file to start from."""

from __future__ import annotations

import re
from pathlib import Path

from cl_bench.harness.commands.execution import print_json
from cl_bench.harness.commands.method_template import METHOD, TEST, filled
from cl_bench.harness.errors import UsageError
from cl_bench.harness.registry import Registry
from cl_bench.harness.request import BOUNDS


def new_method_command(name: str, directory: Path, json: bool) -> int:
    """Write ``<name>.py`` and ``test_<name>.py``.

    Raises:
        UsageError: The name is taken or not of the right form, or a file exists; nothing is written then.
    """
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise UsageError(
            f"{name!r} cannot be a method's name", hint="small letters and digits, words joined by hyphens: my-method"
        )
    if name in BOUNDS or name in Registry().methods():
        raise UsageError(f"a method called {name!r} exists already", hint="choose another name")
    module = name.replace("-", "_")
    contents = {directory / f"{module}.py": METHOD, directory / f"test_{module}.py": TEST}
    for path in contents:
        if path.exists():
            raise UsageError(f"{path} exists already", hint="choose another --dir or name")
    directory.mkdir(parents=True, exist_ok=True)
    for path, template in contents.items():
        path.write_text(filled(template, name), encoding="utf-8")
    files = [str(path) for path in contents]
    if json:
        print_json({"name": name, "files": files})
    else:
        print("\n".join(files))
        print(f"try: cl-bench validate method {files[0]}")
        print(f"     cl-bench run --method {name} --sequence science --include-path {directory}")
    return 0
