"""The command line in this process, a tiny random model in a folder, and a student whose aligner fits."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest

from cl_bench.harness.cli import exit_code_of


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str


Cli = Callable[..., Done]


def call(*arguments: str) -> Done:
    """Call the command line in the current folder."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = exit_code_of(arguments)
    return Done(code, out.getvalue(), err.getvalue())


@pytest.fixture()
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Call the command line in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return call


def save_tiny(folder: Path, seed: int, width: int) -> Path:
    """A random model with tokenizer and chat template as a model folder."""
    from tests.support import tiny_model

    chat = tiny_model(seed, width=width, context_length=1024)
    chat.model.save_pretrained(folder)
    chat.tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a tiny student."""
    return save_tiny(tmp_path_factory.mktemp("models") / "tiny", seed=0, width=16)


@pytest.fixture(scope="session")
def larger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of an aligner with the student's tokenizer."""
    return save_tiny(tmp_path_factory.mktemp("models") / "larger", seed=1, width=32)
