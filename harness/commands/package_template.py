"""What ``cl-bench new --package`` writes around the file and its test; see ``method_template``."""

from __future__ import annotations

PYPROJECT = """[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "cl-bench-@NAME@"
version = "0.1.0"
description = "The @KIND@ @NAME@ for cl-bench."
readme = "README.md"
requires-python = ">=3.11"
dependencies = ["cl-bench"]

[project.entry-points."cl_bench.@KIND@s"]
@NAME@ = "@PACKAGE@.@MODULE@:@CLASS@"

[tool.setuptools]
packages = ["@PACKAGE@"]
"""

README = """# @NAME@

A @KIND@ for cl-bench.

```bash
pip install -e .
cl-bench list @KIND@s
cl-bench validate @KIND@ @NAME@
cl-bench run @RUN@ --sequence science
python -m pytest
```
"""

INIT = '''"""The @KIND@ @NAME@ for cl-bench."""
'''
