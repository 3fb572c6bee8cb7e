"""Reading the project's YAML files: numbers as people write them, duplicate keys refused, errors with file and line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from cl_bench.harness.errors import UsageError

_LONGEST = 4_000_000
"""Characters of a file."""
_MOST_VALUES, _DEEPEST = 500_000, 100
"""Values of a file with its aliases written out, and how far they may lie inside one another."""


class _Loader(yaml.SafeLoader):
    """Safe loader that reads ``5e-5`` as a number and refuses a key given twice in one mapping."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Build a mapping; raises a YAML error at the second occurrence of a key."""
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, list | dict | set):
                raise yaml.constructor.ConstructorError(None, None, "a key is no single value", key_node.start_mark)
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} appears twice", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep=deep)


class _Dumper(yaml.SafeDumper):
    """Safe dumper that quotes every string that ``_Loader`` would read as a number (hex digests such as 12e45678)."""

    def represent_text(self, text: str) -> yaml.ScalarNode:
        """A string; the line breaks of Unicode keep their identity in double quotes only."""
        quoted = '"' if _LINE_BREAKS.intersection(text) else None
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=quoted)


_LINE_BREAKS = frozenset("\r\x85\u2028\u2029")
_Dumper.add_representer(str, _Dumper.represent_text)

# YAML 1.1 wants a dot in a float; people write 5e-5.
_EXPONENT = re.compile(r"^[-+]?[0-9]+(?:\.[0-9]*)?[eE][-+]?[0-9]+$")
for _side in (_Loader, _Dumper):
    _side.add_implicit_resolver("tag:yaml.org,2002:float", _EXPONENT, list("-+0123456789"))


def parse_yaml(text: str, where: str) -> Any:
    """Parse one YAML document.

    Args:
        text: The document.
        where: What to call it in errors.

    Raises:
        UsageError: The text is not valid YAML (names the line), or is or becomes larger than any settings are.
    """
    if len(text) > _LONGEST:
        raise UsageError(f"{where}: {len(text)} characters are too many", why=f"at most {_LONGEST} are read")
    try:
        content = yaml.load(text, Loader=_Loader)  # noqa: S506 - a SafeLoader
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark is not None else ""
        raise UsageError(f"{where}{line}: not valid YAML", why=str(getattr(error, "problem", None) or error)) from error
    except (ValueError, TypeError, OverflowError, RecursionError) as error:  # dates and numbers that are none, depth
        raise UsageError(f"{where}: not valid YAML", why=f"{type(error).__name__}: {error}") from error
    _refuse_expansion(content, where)
    return content


def _refuse_expansion(content: Any, where: str) -> None:
    """Refuse aliases that make much of little, or that hold themselves: whoever reads the values would not end."""
    waiting, seen = [(content, 0)], 0
    while waiting:
        value, depth = waiting.pop()
        seen += 1
        if seen > _MOST_VALUES or depth > _DEEPEST:
            why = f"more than {_MOST_VALUES} values, or {_DEEPEST} inside one another"
            raise UsageError(f"{where}: too large when its aliases are written out", why=why)
        inside = value.values() if isinstance(value, dict) else value if isinstance(value, list | set) else ()
        waiting += [(item, depth + 1) for item in inside]


def read_mapping(path: Path) -> dict[str, Any]:
    """Read a YAML file that holds one mapping.

    Raises:
        UsageError: The file is absent, unreadable, not YAML, or holds something else.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path}", why=str(error)) from error
    content = parse_yaml(text, str(path))
    if not isinstance(content, dict):
        raise UsageError(f"{path}: expected a mapping of names to values", why=f"found {type(content).__name__}")
    return {str(key): value for key, value in content.items()}


def dump_yaml(content: Any) -> str:
    """YAML text of JSON-like content, keys in the order given."""
    return str(yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110))
