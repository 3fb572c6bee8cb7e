"""The suite's own guard: nothing in it can reach another machine."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest

UNREACHABLE = "192.0.2.1"
"""An address reserved for documentation; no machine has it."""


def test_a_connection_to_another_machine_is_refused() -> None:
    with socket.socket() as client, pytest.raises(RuntimeError, match="no network"):
        client.settimeout(0.1)
        client.connect((UNREACHABLE, 80))


def test_a_name_of_another_machine_is_not_looked_up() -> None:
    with pytest.raises(RuntimeError, match="no network"):
        socket.getaddrinfo("example.invalid", 443)


def test_a_connection_to_this_machine_is_allowed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        assert client.getpeername() == server.getsockname()


def test_http_in_child_processes_fails_at_once() -> None:
    code = f"import urllib.request; urllib.request.urlopen('http://{UNREACHABLE}/', timeout=5)"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert child.returncode != 0
    assert "Connection refused" in child.stderr
