"""What comes from data, models, plug-ins and files is shown without orders for a terminal or a browser."""

from __future__ import annotations

import io
import json
import os
import re
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cl_bench.harness.cli import exit_code_of
from cl_bench.harness.cli_errors import exit_code
from cl_bench.harness.escaping import VisibleStream, cell, markdown, page, visible
from cl_bench.harness.progress import SilentProgress, make_progress
from cl_bench.harness.redaction import HIDDEN, redacted, redacted_setting

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


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
@pytest.mark.parametrize("name", [f"adapt {CLEAR}{TITLE}{REVERSED}", "a[/b]", "[bold]a[/bold]", "a\nb"])
def test_names_of_phases_give_no_orders(stream: type[io.StringIO], name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    written = stream()
    with make_progress(True, written) as progress:
        progress.phase(name, 2)
        progress.advance(1, **{f"loss{name}": 0.5})
        progress.phase("next")
    shown = written.getvalue()
    assert CLEAR not in shown and "\x07" not in shown and "\u202e" not in shown
    assert visible(name) in shown and f"{visible(name)}=0.5" in shown


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


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("connect(password='hunter2hunter2')", f"connect(password='{HIDDEN}')"),
        ('--set method.api_key="abc123def"', f'--set method.api_key="{HIDDEN}"'),
        ('{"api_key": "abc123def"}', f'{{"api_key": "{HIDDEN}"}}'),
        ("{'api_key': 'abc, \\'def', 'n': 1}", f"{{'api_key': '{HIDDEN}', 'n': 1}}"),
        (r'"{\"api_key\": \"abc def\"}"', rf'"{{\"api_key\": \"{HIDDEN}\"}}"'),
        ('password = "two words", port = 1', f'password = "{HIDDEN}", port = 1'),
        ('password="cut off', f'password="{HIDDEN} off'),
        ("passwords=['abc'] password=['abc']", f"passwords=['abc'] password=['{HIDDEN}']"),
        ("api_key: abc123def", f"api_key: {HIDDEN}"),
        ("X-Api-Key: abc123def", f"X-Api-Key: {HIDDEN}"),
        ("client_secret=>abc AccountKey=abc==", f"client_secret=>{HIDDEN} AccountKey={HIDDEN}"),
        ("https://h/x?access_token=abc&n=1", f"https://h/x?access_token={HIDDEN}&n=1"),
        ("Authorization: Bearer abc", f"Authorization: Bearer {HIDDEN}"),
        ("{'Authorization': 'Bearer abc'}", f"{{'Authorization': '{HIDDEN}'}}"),
        ("sent Bearer abcdef123456", f"sent Bearer {HIDDEN}"),
        ("login(token='abcdefgh12345678')", f"login(token='{HIDDEN}')"),
        ("-----BEGIN PRIVATE KEY-----\nabc\ndef\n-----END", f"-----BEGIN PRIVATE KEY-----{HIDDEN}-----END"),
    ],
)
def test_what_is_assigned_to_a_secret_name_is_hidden(text: str, shown: str) -> None:
    assert redacted(text, {}) == shown
    assert redacted(shown, {}) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("redis://:pw@host", f"redis://{HIDDEN}@host"),
        ("https://TOKEN@github.com/x", f"https://{HIDDEN}@github.com/x"),
        ("https://user:pa/ss@host/x", f"https://{HIDDEN}@host/x"),
        ("https://user:p@ss@host/x", f"https://{HIDDEN}@host/x"),
        ("https://user:p@ss/w@host/x", f"https://{HIDDEN}@host/x"),
        ("postgres://u:p#a?b@db.local:5432/x", f"postgres://{HIDDEN}@db.local:5432/x"),
        ("git+https://u:pw@host.org/a@v1.0", f"git+https://{HIDDEN}@host.org/a@v1.0"),
        ("http://a:b@h,http://c:d@i", f"http://{HIDDEN}@h,http://{HIDDEN}@i"),
        ('"http://a:b@h":"x@y"', f'"http://{HIDDEN}@h":"x@y"'),
    ],
)
def test_passwords_in_addresses_are_hidden(text: str, shown: str) -> None:
    assert redacted(text, {}) == shown
    assert redacted(shown, {}) == shown


@pytest.mark.parametrize(
    "text",
    [
        "http://host:8080/a@b",
        "http://[::1]:8080/a@b",
        "https://host/users/me@example.org",
        "hf://datasets/x@main",
        "file:///home/me@here",
        "me@example.org",
        "token: 12, tokens: 1234567, token id: 151643",
        "token: antidisestablishmentarianism",
        "password-free, passwordless, the secret of the key",
        "max_password_length=12, private_repo=True, api_key_env=NAME, key: value",
        "api_key=None, password: null",
        "pass@1: 0.5, pass=3, forward_pass: 2",
        "secret://vault",
        "Bearer tokens are sent",
        "[0.1, 0.3] +5.0 | - |",
    ],
)
def test_ordinary_text_is_no_secret(text: str) -> None:
    assert redacted(text, {}) == text


@pytest.mark.parametrize(
    "name",
    [
        "PGPASSWORD", "SECRET_KEY", "STRIPE_SECRET_KEY", "DB_PASS", "GITHUB_PAT", "SSH_PASSPHRASE", "MYSQL_PWD",
        "AZURE_STORAGE_KEY", "OPENAI_KEY", "AWS_ACCESS_KEY_ID", "SOMEAPIKEY", "GOOGLE_CREDENTIALS", "API_KEY",
    ],
)  # fmt: skip
@pytest.mark.parametrize("value", ["abcdefgh", 'it\'s "here"', "back\\slash", "tab\tbed", "grün+1", " blank around\n"])
def test_values_of_secret_variables_are_hidden_in_every_form(name: str, value: str) -> None:
    for text in (value.strip(), repr(value), repr(f"'\"{value}"), json.dumps(value), json.dumps([f"x {value}"])):
        found = redacted(f"<{text}>", {name: value})
        assert HIDDEN in found and value.strip() not in found and repr(value)[1:-1] not in found
        assert not {"abcdefgh", "here", "slash", "bed", "+1", "around"} & set(re.findall(r"\+?\w+", found))


@pytest.mark.parametrize("name", ["PWD", "OLDPWD", "PATH", "MONKEY", "COMPASS", "TOKENIZERS_PARALLELISM", "MAX_TOKENS"])
def test_other_variables_are_no_secrets(name: str) -> None:
    assert redacted("in abcdefgh", {name: "abcdefgh"}) == "in abcdefgh"


@given(st.text("pasword:=/@ \\'\"[]hidetkn.1\n") | st.text())
def test_what_is_hidden_stays_as_it_is(text: str) -> None:
    assert redacted(redacted(text, {}), {}) == redacted(text, {})


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("api_key", "abc, def", HIDDEN),
        ("db_pass", "abc", HIDDEN),
        ("token", "abc", HIDDEN),
        ("options", "{'api_key': 'abc'}", f"{{'api_key': '{HIDDEN}'}}"),
        ("api_key", "None", "None"),
        ("bos_token", "<s>", "<s>"),
        ("max_new_tokens", "256", "256"),
        ("epochs", "2", "2"),
    ],
)
def test_settings_that_are_named_as_secrets_are_hidden(name: str, value: str, shown: str) -> None:
    assert redacted_setting(name, value) == shown


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
