"""The documentation says what the program does: links, commands and options exist, methods are listed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from cl_bench.harness.registry import Registry

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")])
_LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
_FENCE = re.compile(r"^```bash\n(.*?)^```", re.MULTILINE | re.DOTALL)


def commands() -> Iterator[tuple[str, list[str]]]:
    """(page, words) of every command line in a bash block."""
    for page in PAGES:
        for block in _FENCE.findall(page.read_text(encoding="utf-8")):
            for line in block.replace("\\\n", " ").splitlines():
                words = shlex.split(line, comments=True)
                if words:
                    yield str(page.relative_to(ROOT)), words


def problem(words: list[str], command: Any) -> str | None:
    """What is wrong with a ``cl-bench`` command line: an unknown subcommand or option, or None."""
    rest = words[1:]
    while hasattr(command, "commands") and rest:
        found = command.commands.get(rest[0])
        if found is None:
            return f"no command {rest[0]!r}"
        command, rest = found, rest[1:]
    known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    unknown = [word for word in rest if word.startswith("--") and word.split("=")[0] not in known]
    return f"no option {unknown[0]} in {' '.join(words)!r}" if unknown else None


def application() -> Any:
    from cl_bench.harness.cli import app

    return typer.main.get_command(app)


def test_the_detector_sees_what_is_wrong() -> None:
    assert problem(["cl-bench", "ran"], application()) == "no command 'ran'"
    assert "--methud" in str(problem(["cl-bench", "run", "--methud", "sft"], application()))
    assert problem(["cl-bench", "run", "--method", "sft"], application()) is None


def test_every_command_in_the_documentation_exists() -> None:
    found = [(page, words) for page, words in commands() if words[0] == "cl-bench"]
    assert len(found) > 10
    wrong = [f"{page}: {problem(words, application())}" for page, words in found if problem(words, application())]
    assert not wrong


def test_every_make_target_in_the_documentation_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = {word for _, words in commands() if words[0] == "make" for word in words[1:]}
    assert named and named <= targets


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    targets = [link for link in _LINK.findall(page.read_text(encoding="utf-8")) if "://" not in link]
    assert [link for link in targets if not (page.parent / link).exists()] == []


def test_the_index_lists_every_method_as_it_declares_itself() -> None:
    index = (ROOT / "docs" / "methods" / "README.md").read_text(encoding="utf-8")
    rows = [[cell.strip(" *`") for cell in line.strip("|").split("|")] for line in index.splitlines() if "](" in line]
    listed = {re.sub(r".*\((.*)\.md\).*", r"\1", row[0]): row for row in rows if row[0].startswith("[")}
    registry = Registry()
    assert set(listed) == set(registry.methods())
    for name, (_, family, needs, fidelity, source) in listed.items():
        method = registry.method_class(name)
        assert family == method.family
        assert {need.strip() for need in needs.split(",")} == {need.value.replace("_", " ") for need in method.needs}
        assert fidelity == method.fidelity.value.replace("_", " ")
        assert source
        assert (ROOT / "docs" / "methods" / f"{name}.md").exists()


def test_the_readme_begins_with_what_it_is() -> None:
    first, *rest = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert first.startswith("cl-bench measures what a language model learns and what it forgets")
    assert any("Not to be confused with" in line for line in rest[:5])
