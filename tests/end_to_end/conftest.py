"""Runs the command line as a user does: in processes of their own, in a temporary folder, with a cache of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

SMALL = ["--model", "lab-s", "--threads", "1", "--limit", "24"]
"""The smallest lab model on few rows: seconds, not minutes."""

Cli = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The process environment: one cache for all end-to-end tests, no network."""
    cache = tmp_path_factory.mktemp("cache")
    return {**os.environ, "CL_BENCH_CACHE": str(cache), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="session")
def cli(environment: dict[str, str]) -> Cli:
    """``cl-bench`` with arguments, in a folder; stdout and stderr are text."""

    def call(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "cl_bench.harness.cli", *arguments]
        return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=280)

    return call


@pytest.fixture()
def popen(environment: dict[str, str]) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """A ``cl-bench`` process to be killed; whatever is left is killed at the test's end."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str, cwd: Path) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "cl_bench.harness.cli", *arguments]
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, cwd=cwd, env=environment, stdout=pipe, stderr=pipe, text=True)
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()
