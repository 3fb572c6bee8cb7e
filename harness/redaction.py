"""Secrets taken out of what is written down and shown: command lines, reasons of failures, pages."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from functools import cache

HIDDEN = "[hidden]"
_SHORTEST = 6
"""Characters of a variable's value from which it is looked for: shorter ones are words that stand everywhere."""
_SECRET_NAME = re.compile(
    r"(?:(?:^|_)(?:TOKEN|SECRET|CREDENTIALS?|ACCESS_KEY_ID|PASS|PAT)|_KEY|API_?KEY|PASSWORD|PASSWD|PASSPHRASE|MYSQL_PWD)$",
    re.IGNORECASE,
)
_SHAPES = (
    # Tokens by their published prefixes: Hugging Face, OpenAI and alike, GitHub, GitLab, AWS, Slack, Google.
    re.compile(r"\b(?:hf_|sk-|ghp_|gho_|ghs_|github_pat_|glpat-|xox[abp]-|AIza)[A-Za-z0-9_\-]{10,}"),
    re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    re.compile(r"(?<=\bBearer )(?=[^\s\"']*\d)[A-Za-z0-9._~+/=-]{8,}"),
    re.compile(r"(?<=PRIVATE KEY-----).*?(?=-----END|\Z)", re.DOTALL),
)
_AFTER_SCHEME = re.compile(r"(?<=://)(?:(?!://)[^\s\"'<>`])+")
_PORT = re.compile(r"\d{1,5}")
_HOST = re.compile(r"(?:localhost|[\w-]+(?:\.[\w-]+)+|[\w.-]+:\d{1,5}|\[[\da-fA-F:.]+\](?::\d{1,5})?)", re.IGNORECASE)
_NAME = (
    r"(?:(?:access|account|api|auth|bearer|client|encryption|hf|hub|private|refresh|secret|session|signing|storage)"
    r"[_-]?(?:token|key)(?:[_-]?id)?|secret|password|passwd|passphrase|authorization)"
)
_SETTING = re.compile(rf"(?:{_NAME}|^token|[_-](?:key|pass|pat|credentials?))$", re.IGNORECASE)
_SEPARATOR = r"\\*[\"']?\s{0,8}(?:=>|:=|==?|:(?!//))[ \t]{0,8}(?:(?:Bearer|Basic|Token)[ \t]+)?"
_NOTHING = r"(?!(?:None|null|True|False|true|false)(?:[\s,;.)}\]|`]|$))"
_LONG_TOKEN = r"(?=[\w.~+/-]*\d)(?=[\w.~+/-]*[A-Za-z])[A-Za-z0-9_.~+/-]{16,}"
_ASSIGNED = re.compile(
    rf"(?P<name>{_NAME}{_SEPARATOR})(?P<value>"
    # In quotes, which may stand in a quoted text themselves; or to the next blank or mark.
    r"[\[(]?(?:(?P<escaped>\\+[\"']).+?(?P=escaped)|\"(?:[^\"\\\n]|\\.)+\"|'(?:[^'\\\n]|\\.)+')"
    rf"|(?:[\[(]?\\*[\"'])?{_NOTHING}(?!\{{\s*[\"'])(?:[^\s&,;\"']*[^\s&,;\"')]|\)+))",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"(?P<open>[\[(]?(?P<quote>\\*[\"'])).*?(?P<close>(?P=quote)?)", re.DOTALL)
_TOKEN = re.compile(rf"(?P<name>(?<![\w-])token{_SEPARATOR}[\"']?){_LONG_TOKEN}", re.IGNORECASE)


def redacted(text: str, environment: Mapping[str, str] | None = None) -> str:
    """The text with secrets replaced by ``[hidden]``.

    Secrets are values of environment variables whose names say so, tokens of well-known forms, users and passwords in
    addresses, and what is assigned to a name that says so.

    Args:
        text: Any text.
        environment: Variables whose values are looked for; None: this process's.
    """
    variables = os.environ if environment is None else environment
    known = {variables[name].strip() for name in variables if _says_secret(name)}
    forms = {form for value in known if len(value) >= _SHORTEST for form in _forms(value)}
    for form in sorted(forms, key=len, reverse=True):
        text = text.replace(form, HIDDEN)
    for shape in _SHAPES:
        text = shape.sub(HIDDEN, text)
    text = _AFTER_SCHEME.sub(_without_user, text)
    text = _ASSIGNED.sub(_without_value, text)
    return _TOKEN.sub(rf"\g<name>{HIDDEN}", text)


@cache
def _says_secret(name: str) -> bool:
    return _SECRET_NAME.search(name) is not None  # asked for every cell of a page


def redacted_setting(name: str, value: str) -> str:
    """The text of a setting's value, hidden where the setting's name says that it is a secret."""
    return HIDDEN if value and value != "None" and _SETTING.search(name) else redacted(value)


def _forms(value: str) -> set[str]:
    """The value as it is, and as it stands in quotes of Python, also beside both kinds of quotes, and of JSON."""
    both = "'\""
    return {value, repr(value)[1:-1], repr(both + value)[4:-1], json.dumps(value)[1:-1]}


def _without_user(found: re.Match[str]) -> str:
    """What follows ``://`` in an address without user and password, which may hold ``@`` and ``/`` themselves.

    ``host:8080/a@b`` has none. Where it is not clear where a password ends, too much is hidden rather than too little.
    """
    address = found[0]
    authority = re.split(r"[/?#]", address, maxsplit=1)[0]
    end, last = authority.rfind("@"), address.rfind("@")
    if end >= 0:
        if last > end and not _HOST.fullmatch(authority[end + 1 :]):
            end = last
        return HIDDEN + address[end:]
    _, colon, rest = authority.partition(":")
    if last < 0 or not colon or authority.startswith("[") or _PORT.fullmatch(rest):
        return address
    return HIDDEN + address[last:]


def _without_value(found: re.Match[str]) -> str:
    quoted = _QUOTED.fullmatch(found["value"])
    return f"{found['name']}{HIDDEN}" if quoted is None else f"{found['name']}{quoted['open']}{HIDDEN}{quoted['close']}"
