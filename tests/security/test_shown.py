"""What comes from data, models, plug-ins and files is shown without orders for a terminal or a browser."""

from __future__ import annotations

import io
import os
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cl_bench.harness.cli import exit_code_of
from cl_bench.harness.cli_errors import exit_code
from cl_bench.harness.escaping import VisibleStream, cell, markdown, page, visible
from cl_bench.harness.progress import SilentProgress
from cl_bench.harness.redaction import HIDDEN, redacted

CLEAR, TITLE, REVERSED = "\x1b[2J", "\x1b]0;owned\x07", "\u202etxt.exe"


@given(st.text())
def test_nothing_unprintable_is_left(text: str) -> None:
    for layout in (False, True):
        left = {c for c in visible(text, layout) if unicodedata.category(c)[0] in "C" or c in "\u2028\u2029"}
        assert left <= ({"\n", "\t"} if layout else set())
    assert visible(visible(text)) == visible(text)
    assert "\n" not in cell(text)


def test_printable_text_is_left_alone() -> None:
    for text in ("plain", "naïve Größe 日本語 ≤ 5 %", "a\\nb", "|x| < 3 & y > 2", "emoji 🙂"):
        assert visible(text) == text
    assert page("p <.001, a < b & c") == "p <.001, a < b & c"


def test_orders_become_their_escapes() -> None:
    assert visible(CLEAR + TITLE) == "\\x1b[2J\\x1b]0;owned\\x07"
    assert visible(REVERSED) == "\\u202etxt.exe"
    assert visible("a\nb\tc") == "a\\nb\\tc" and visible("a\nb\tc\r", layout=True) == "a\nb\tc\\r"


def test_markdown_has_no_tags_links_or_breaks_from_data() -> None:
    assert page("<script>alert(1)</script><!-- x --><img src=x>") == (
        "&lt;script>alert(1)&lt;/script>&lt;!-- x -->&lt;img src=x>"
    )
    assert page("&lt;script&gt;") == "&amp;lt;script&amp;gt;"
    assert markdown("[click](javascript:alert(1)) ![x](http://y)") == "\\[click](javascript:alert(1)) !\\[x](http://y)"
    assert cell("a|b\n| c |") == "a\\|b \\| c \\|"


def test_every_command_writes_visible_text_only(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    name = f"no{CLEAR}{TITLE}<b>{REVERSED}"
    for command in (
        ["run", "--method", name],
        ["show", "task", name],
        ["list", name],
        ["resume", str(tmp_path / name)],
    ):
        assert exit_code_of(command) == 2
    written = capsys.readouterr()
    assert "\x1b" not in written.out + written.err and "\u202e" not in written.out + written.err
    assert "\\x1b[2J" in written.err


def test_notes_and_streams_are_visible(capsys: pytest.CaptureFixture[str]) -> None:
    SilentProgress().note(f"row {CLEAR}")
    assert capsys.readouterr().err == "row \\x1b[2J\n"
    stream = io.StringIO()
    shown = VisibleStream(stream)
    print(f"a{CLEAR}", file=shown)
    assert stream.getvalue() == "a\\x1b[2J\n"


SECRETS = {
    "HF_TOKEN": "hf_abcdefghijklmnopqrstuvwx",
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "MY_PASSWORD": "correct horse",
    "TOKENIZERS_PARALLELISM": "sometimes",
    "MAX_TOKENS": "1000000",
}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("using wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY now", f"using {HIDDEN} now"),
        ("it said correct horse", f"it said {HIDDEN}"),
        ("https://user:pa55word@host/x", f"https://{HIDDEN}@host/x"),
        ("--set data.api_key=abc123", f"--set data.api_key={HIDDEN}"),
        ("token hf_zyxwvutsrqponmlkjihgfe", f"token {HIDDEN}"),
        ("sk-proj-abcdefghijklmnop", HIDDEN),
        ("AKIAIOSFODNN7EXAMPLE", HIDDEN),
        ("max_new_tokens=256, 1000000 rows, sometimes", "max_new_tokens=256, 1000000 rows, sometimes"),
        ("bos_token = <s>, the end token: </s>", "bos_token = <s>, the end token: </s>"),
        ("http://host:8080/path", "http://host:8080/path"),
    ],
)
def test_secrets_are_hidden_and_nothing_else(text: str, shown: str) -> None:
    assert redacted(text, SECRETS) == shown


def test_errors_hide_the_secrets_of_the_environment(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(os.environ, "SOME_TOKEN", "abcdefgh12345")
    assert exit_code_of(["run", "--method", "abcdefgh12345"]) == 2
    assert "abcdefgh12345" not in capsys.readouterr().err
    assert exit_code_of(["run", "--method", "abcdefgh12345", "--json"]) == 2
    written = capsys.readouterr()
    assert HIDDEN in written.out and "abcdefgh12345" not in written.out + written.err


def test_a_trace_hides_secrets_and_orders(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "SOME_TOKEN", "abcdefgh12345")

    def broken() -> None:
        raise RuntimeError(f"no answer from https://user:pa55word@host {CLEAR} with abcdefgh12345")

    assert exit_code(broken, json=True) == 1
    written = capsys.readouterr()
    assert "Traceback" in written.err and HIDDEN in written.err
    for text in (written.out, written.err):
        assert not [secret for secret in ("abcdefgh12345", "pa55word", "\x1b") if secret in text]
