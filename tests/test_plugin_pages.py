"""The method and the modifier printed in docs/plugins.md are whole: written to a file they pass the checks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cl_bench.harness.conformance.behaviour import behaviour_checks
from cl_bench.harness.conformance.class_checks import method_class_checks, modifier_class_checks
from cl_bench.harness.conformance.trials import Trials
from cl_bench.harness.registry import Registry
from cl_bench.methods.sft import SFT

PAGE = Path(__file__).resolve().parents[1] / "docs" / "plugins.md"
_WHOLE = re.compile(r"`(\w+\.py)`:\n\n```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files of the page."""
    folder = tmp_path_factory.mktemp("page")
    for name, text in _WHOLE.findall(PAGE.read_text(encoding="utf-8")):
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_the_page_has_a_method_and_a_modifier_of_less_than_sixty_lines(written: Path) -> None:
    registry = Registry([written])
    assert "entropy-sft" in registry.methods() and "hold-norms" in registry.modifiers()
    lengths = {path.name: len(path.read_text(encoding="utf-8").splitlines()) for path in written.iterdir()}
    assert len(lengths) == 2 and max(lengths.values()) < 60, lengths


def test_the_method_passes_every_check(written: Path, tmp_path: Path) -> None:
    method = Registry([written]).method_class("entropy-sft")
    checks = [*method_class_checks(method), *behaviour_checks(Trials(method, tmp_path))]
    assert [check for check in checks if not check.passed] == []


def test_the_modifier_passes_every_check(written: Path, tmp_path: Path) -> None:
    modifier = Registry([written]).modifier_class("hold-norms")
    checks = [*modifier_class_checks(modifier), *behaviour_checks(Trials(SFT, tmp_path, modifier))]
    assert [check for check in checks if not check.passed] == []


def test_every_check_is_in_the_table_of_the_page(written: Path, tmp_path: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")
    table = page[page.index("### What `validate` checks") : page.index("### Rules that the checks")]
    rows = [line for line in table.splitlines() if line.startswith("| ")][1:]
    checks = behaviour_checks(Trials(SFT, tmp_path))
    assert len(rows) == len(checks)
