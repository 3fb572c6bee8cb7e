"""Every setting of every method is read somewhere: none is shown, hashed and tuned without doing anything."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

import cl_bench.methods.training.mixin as mixin_module
import cl_bench.methods.training.on_policy as on_policy_module
from cl_bench.harness.registry import Registry

SHARED = [Path(inspect.getfile(module)) for module in (mixin_module, on_policy_module)]


def read_settings(source: str) -> set[str]:
    """Names read off something called ``settings``: ``settings.epochs``, ``session.settings.epochs``."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            holder = node.value
            name = holder.id if isinstance(holder, ast.Name) else getattr(holder, "attr", "")
            if name == "settings":
                found.add(node.attr)
    return found


def test_the_reader_sees_reads_alone() -> None:
    assert read_settings("settings.a + run.settings.b\nother.c\nsettings.d = 1\n'settings.e'") == {"a", "b"}


@pytest.mark.parametrize("name", Registry().methods())
def test_every_setting_is_read(name: str) -> None:
    method = Registry().method_class(name)
    files = [Path(inspect.getfile(method)), *SHARED]
    read = set().union(*(read_settings(path.read_text(encoding="utf-8")) for path in files))
    assert set(method.Settings.model_fields) - read == set()
