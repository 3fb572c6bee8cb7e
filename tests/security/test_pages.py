"""Markdown pages and tables for spreadsheets: text from data, settings and files neither marks them up nor leaks."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from cl_bench.harness.compare.comparison import Comparison, compare_runs
from cl_bench.harness.escaping import cell, markdown, page, visible
from cl_bench.harness.redaction import HIDDEN
from cl_bench.harness.store import Store
from cl_bench.reports import compare, compare_csv
from cl_bench.reports.report import render_report
from tests.compare.small_runs import VALUES, make_run

OWNED = "x\n\n# Owned\n\n![p](http://evil/beacon.png)"
LINKS = (
    "![a [b] c](http://evil/x.png)",
    "\\[x](http://evil)",
    "\\\\[x](http://evil)",
    "[x][y]",
    "[0.1]: http://evil",
    "[0.1](http://evil)",
    "[0.1][0.1]",
    "# Owned",
    "- 1. # Owned",
    "   > said",
    "```\ncode",
    "a\\|b",
    "a\\\\|b|c",
    "`a\\|b`",
    "`[x](http://evil)",
)
_SPECIAL = st.text("[]()!\\|:#>`~*-+1. ab\n")
_MARKED_UP = {"link_open", "image", "heading_open", "blockquote_open", "fence", "code_block", "html_block"}


def tokens(text: str) -> Iterator[Token]:
    """All tokens of a page of Markdown with tables, those within lines too."""
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        yield token
        yield from token.children or ()


def kinds(text: str) -> set[str]:
    return {token.type for token in tokens(text)} & _MARKED_UP


def shown(text: str) -> str:
    return "".join(token.content for token in tokens(text) if token.type in ("text", "text_special", "code_inline"))


@given(_SPECIAL)
@example(LINKS[0])
@example(LINKS[1])
@example(LINKS[2])
@example(LINKS[6])
def test_text_in_a_page_marks_nothing_up(text: str) -> None:
    line = markdown(text)
    assert not kinds(page(f"{line}\n\n* {line}\n* {line}\n\n[0.1] [x] [y]\n"))
    assert kinds(page(f"# {line}\n\n{line}\n")) == {"heading_open"}


@given(_SPECIAL, _SPECIAL)
@example("a\\|b", "`a\\|b`")
@example("a\\", "b")
@example("`a|b`", "`a\\`")
def test_text_in_a_table_is_one_cell(one: str, two: str) -> None:
    table = f"| x | y |\n| --- | --- |\n| {cell(one)} | {cell(two)} |\n"
    found = list(tokens(page(table)))
    assert [token.type for token in found].count("td_open") == 2
    assert not {token.type for token in found} & _MARKED_UP
    assert "|" not in cell(one).replace("\\|", "")


@given(st.text("[]()!\\|:#ab1, "))
@example("[0.1, 0.3] and [80.0] and [x] \\ \\\\ \\[")
@example("\x1b[2J")
def test_text_is_shown_as_it_is(text: str) -> None:
    expected = visible(text).strip(" ")
    assert shown(page(f"x {markdown(text)} x")).split() == f"x {expected} x".split()
    table = f"| x | y |\n| --- | --- |\n| {cell(text)} | y |\n"
    assert shown(page(table)).split() == f"xy{expected}y".split()


def test_numbers_in_brackets_stay_readable() -> None:
    for text in ("[0.1, 0.3]", "-5.0 [-6.1, -3.9]", "[80.0]", "[-]", "[+1e-05, 2 %]"):
        assert markdown(text) == cell(text) == text


@pytest.mark.parametrize("text", ["a|b\\n", "[x](y)", "\\[", "a\\|b"])
def test_code_in_a_cell_is_shown_as_it_is(text: str) -> None:
    table = f"| x | y |\n| --- | --- |\n| {cell(f'`{text}`')} | y |\n"
    assert shown(table) == f"xy{text}y"


@pytest.fixture
def owned(tmp_path: Path) -> Path:
    """Runs whose names, reasons and settings mark up a page where it lets them."""
    for seed, name in enumerate((*LINKS, OWNED)):
        settings = {"api_key": "abc, def", "plain": name, "more": {"password": "swordfish"}}
        run = make_run(tmp_path, f"m {name}", seed, settings=settings, model={"name": name, "fingerprint": "ab" * 32})
        Store.reopen(run).status("diverged", reason=name)
    interrupted = make_run(tmp_path, seed=99, state="interrupted")
    Store.reopen(interrupted).status("interrupted", reason=OWNED)
    return tmp_path


def headings(text: str) -> list[str]:
    found = list(tokens(text))
    return [after.content for token, after in zip(found, found[1:], strict=False) if token.type == "heading_open"]


def test_a_comparison_has_no_headings_and_links_but_its_own(owned: Path) -> None:
    text = compare.markdown(compare_runs([str(owned)]))
    assert not kinds(text) - {"heading_open"}
    assert not [title for title in headings(text) if title.startswith("Owned")]
    assert "http://evil/beacon.png" in text, "the reason is told"


def test_a_report_has_no_headings_and_links_but_its_own(owned: Path) -> None:
    for status in owned.rglob("status.json"):
        text = render_report(status.parent)
        assert not kinds(text) - {"heading_open"}
        assert not [title for title in headings(text) if title.startswith("Owned")]
        assert [title for title in headings(text) if title.startswith("method ")]


def test_a_report_shows_no_secrets(owned: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "STRIPE_SECRET_KEY", "a[b]|c\\d")
    run = make_run(owned, "secretive", settings={"api_key": "abc, def", "odd": "a[b]|c\\d", "more": {"token": "x"}})
    Store.reopen(run).status("failed", reason="no answer from https://TOKEN12@host, password='swordfish'")
    text = render_report(run)
    assert f"| api_key | `{HIDDEN}` |" in text and f"| odd | `{HIDDEN}` |" in text
    assert not [secret for secret in ("abc, def", "c\\\\d", "TOKEN12", "swordfish") if secret in text]


def test_a_comparison_shows_no_secrets(tmp_path: Path) -> None:
    for seed, key in enumerate(("abc123def", "ghi456jkl")):
        make_run(tmp_path, "secretive", seed, settings={"api_key": key})
    run = make_run(tmp_path, seed=2, values={**VALUES, "biology": (None,) * 4}, state="diverged")
    Store.reopen(run).status("diverged", reason="no answer from https://TOKEN12@host")
    found = compare_runs([str(tmp_path)])
    pages = (compare.markdown(found), compare.text(found, 300), compare_csv.methods_csv(found))
    for text in pages:
        assert not [secret for secret in ("abc123def", "ghi456jkl", "TOKEN12") if secret in text]
    assert "TOKEN12" not in pages[0] and f"api_key={HIDDEN}" in pages[1]


FORMULAS = ('=HYPERLINK("http://evil";"x")', "+1+1", "-1+1", "@SUM(A1)", "\t=1", "a\x1b[2J", "\r=1")


@pytest.fixture
def formulas(tmp_path: Path) -> Comparison:
    for name in FORMULAS:
        for seed in (0, 1):
            make_run(tmp_path, name, seed)
    return compare_runs([str(tmp_path)])


def test_no_cell_for_a_spreadsheet_is_a_formula(formulas: Comparison) -> None:
    tables = (compare_csv.methods_csv, compare_csv.differences_csv, compare_csv.points_csv)
    cells = [value for table in tables for row in csv.reader(io.StringIO(table(formulas))) for value in row]
    assert not [value for value in cells if value.startswith(tuple("=+@\t\r"))]
    negative = [number for value in cells if value.startswith("-") for number in value.split(";")]
    assert negative and all(float(number) < 1 for number in negative), "numbers stay numbers"
    methods = {row["method"] for row in csv.DictReader(io.StringIO(compare_csv.methods_csv(formulas)))}
    assert methods == {f"'{name}" for name in FORMULAS[:4]} | {"\\t=1", "a\\x1b[2J", "\\r=1"}
