"""Runs the command line as a user does, in a temporary folder, with one cache for all end-to-end tests.

The cache keeps the untouched model's results from call to call and nothing of trained models: what is compared between
two runs was computed by both.

Most tests call it in this process, which saves the imports of the training libraries; what is about processes (kills,
signals, equality across processes) starts some.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from cl_bench.harness.models.by_name import find_model
from cl_bench.harness.models.fingerprint import weights_fingerprint

SMALL = ["--model", "lab-s", "--threads", "1", "--limit", "24"]
"""The smallest lab model on few rows: seconds, not minutes."""

Done = subprocess.CompletedProcess[str]
Cli = Callable[..., Done]
_MODULE = [sys.executable, "-m", "cl_bench.harness.cli"]


def call(*arguments: str, cwd: Path) -> Done:
    """Call the command line in this process."""
    from cl_bench.harness.cli import exit_code_of

    out, err, before = io.StringIO(), io.StringIO(), Path.cwd()
    os.chdir(cwd)
    try:
        with redirect_stdout(out), redirect_stderr(err):
            code = exit_code_of(arguments)
    finally:
        os.chdir(before)
    return subprocess.CompletedProcess(list(arguments), code, out.getvalue(), err.getvalue())


def forget_trained(cache: Path) -> None:
    """Remove every result of a model other than the small lab model from a cache."""
    kept = weights_fingerprint(Path(find_model("lab-s", offline=True).source))
    for kind in ("evaluations", "answers"):
        for entry in cache.glob(f"{kind}/*/*.jsonl"):
            with entry.open(encoding="utf-8") as lines:
                weights = json.loads(next(lines))["key"]["weights"]
            if weights != kept:
                entry.unlink()


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cache that all end-to-end tests share."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture()
def cli(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """``cl-bench`` in this process."""
    monkeypatch.setenv("CL_BENCH_CACHE", str(cache))

    def start(*arguments: str, cwd: Path) -> Done:
        forget_trained(cache)
        return call(*arguments, cwd=cwd)

    return start


@pytest.fixture()
def process(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """``cl-bench`` in a process of its own."""
    monkeypatch.setenv("CL_BENCH_CACHE", str(cache))

    def start(*arguments: str, cwd: Path) -> Done:
        forget_trained(cache)
        # An explicit environment: readline, which pytest loads, leaves a COLUMNS of its own in the inherited one.
        return subprocess.run(
            [*_MODULE, *arguments], cwd=cwd, capture_output=True, text=True, timeout=280, env=dict(os.environ)
        )

    return start


@pytest.fixture()
def background(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """A ``cl-bench`` process to be killed; whatever is left is killed at the test's end."""
    monkeypatch.setenv("CL_BENCH_CACHE", str(cache))
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str, cwd: Path) -> subprocess.Popen[str]:
        forget_trained(cache)
        pipe = subprocess.PIPE
        begun = subprocess.Popen([*_MODULE, *arguments], cwd=cwd, stdout=pipe, stderr=pipe, text=True)
        started.append(begun)
        return begun

    yield start
    for begun in started:
        if begun.poll() is None:
            begun.kill()
        begun.communicate()
