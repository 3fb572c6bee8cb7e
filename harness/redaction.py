"""Secrets taken out of what is written down: command lines and reasons of failures."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

HIDDEN = "[hidden]"
_SECRET_NAME = re.compile(
    r"(?:^|_)(?:TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?|API_?KEY|ACCESS_KEY(?:_ID)?|PRIVATE_KEY)$", re.IGNORECASE
)
_SHORTEST = 6
"""Characters of a variable's value from which it is looked for: shorter ones are words that stand everywhere."""
_SHAPES = (
    # Tokens by their published prefixes: Hugging Face, OpenAI and alike, GitHub, GitLab, AWS, Slack, Google.
    re.compile(r"\b(?:hf_|sk-|ghp_|gho_|ghs_|github_pat_|glpat-|xox[abp]-|AIza)[A-Za-z0-9_\-]{10,}"),
    re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
)
_IN_ADDRESS = re.compile(r"(?<=://)[^/@\s:]+:[^/@\s]+(?=@)")
_ASSIGNED = re.compile(
    r"(?P<name>(?:(?:auth|access|api|hub|hf|secret|private)[_-]?(?:token|key)|secret|password|passwd)\s*=\s*)"
    r"(?P<value>[^\s&,;\"']+)",
    re.IGNORECASE,
)


def redacted(text: str, environment: Mapping[str, str] | None = None) -> str:
    """The text with secrets replaced by ``[hidden]``.

    Secrets are values of environment variables whose names say so, tokens of well-known forms, passwords in addresses,
    and what is assigned to a name that says so.

    Args:
        text: Any text.
        environment: Variables whose values are looked for; None: this process's.
    """
    variables = os.environ if environment is None else environment
    known = {value for name, value in variables.items() if _SECRET_NAME.search(name) and len(value) >= _SHORTEST}
    for value in sorted(known, key=len, reverse=True):
        text = text.replace(value, HIDDEN)
    for shape in (*_SHAPES, _IN_ADDRESS):
        text = shape.sub(HIDDEN, text)
    return _ASSIGNED.sub(lambda found: f"{found['name']}{HIDDEN}", text)
