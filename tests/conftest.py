"""What every test shares: no network, a private cache, one thread."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sys
import tempfile
from typing import Any

import pytest

_CACHE = tempfile.mkdtemp(prefix="cl-bench-tests-")
_DEAD_PROXY = "http://127.0.0.1:9"
"""The discard port: whatever speaks HTTP in a child process fails at once instead of reaching a server."""

# Set before any library reads them; child processes inherit them.
os.environ.update(
    CL_BENCH_CACHE=_CACHE,
    HF_HUB_OFFLINE="1",
    HF_DATASETS_OFFLINE="1",
    TOKENIZERS_PARALLELISM="false",
    HTTP_PROXY=_DEAD_PROXY,
    HTTPS_PROXY=_DEAD_PROXY,
    NO_PROXY="localhost,127.0.0.1",
)
os.environ.setdefault("OMP_NUM_THREADS", "1")

_LOCAL_NAMES = frozenset({None, "", "localhost", "127.0.0.1", "::1", "0.0.0.0", "::", socket.gethostname()})


def _refuse_network(event: str, arguments: tuple[Any, ...]) -> None:
    """Audit hook: a connection that would leave this machine is a failed test."""
    if event == "socket.connect" and isinstance(arguments[1], tuple):
        host = arguments[1][0]
    elif event == "socket.getaddrinfo":
        host = arguments[0].decode() if isinstance(arguments[0], bytes) else arguments[0]
    else:
        return
    if host not in _LOCAL_NAMES and not str(host).startswith("127."):
        raise RuntimeError(f"a test tried to reach {host!r}; tests use no network")


sys.addaudithook(_refuse_network)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the private cache."""
    shutil.rmtree(_CACHE, ignore_errors=True)


@pytest.fixture(scope="session", autouse=True)
def _interrupts_are_heard() -> None:
    """A shell starts background jobs deaf to Ctrl-C, and the processes that tests start would be deaf too."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
