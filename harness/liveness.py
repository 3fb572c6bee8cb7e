"""Whether anybody works on a run whose status says so, and how a process that is gone without a word probably ended."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cl_bench.harness.run_lock import is_held

STALE_SECONDS = 120.0
"""Seconds without a sign of life after which a process on another host counts as gone."""
NEAR_LIMIT = 0.1
"""Share of the memory that a process had and could still have: below it, a kill was probably for memory."""


def as_it_is(status: Mapping[str, Any], lock: Path) -> dict[str, Any]:
    """The content of ``status.json``; one that says ``running`` while nobody works on the run says interrupted.

    Args:
        status: The content.
        lock: The run's lock file, which a process holds while it works.
    """
    if status.get("state") != "running" or is_alive(status, lock):
        return dict(status)
    return {**status, "state": "interrupted", "reason": _end(status)}


def is_alive(status: Mapping[str, Any], lock: Path) -> bool:
    """Whether a process works on a run whose status says ``running``."""
    if status.get("host", platform.node()) == platform.node():
        return is_held(lock)
    return works_elsewhere(status)


def works_elsewhere(status: Mapping[str, Any]) -> bool:
    """Whether a process on another host, whose lock cannot be seen from here, gave a sign of life just now."""
    elsewhere = status.get("host", platform.node()) != platform.node()
    age = _age_seconds(status)
    return status.get("state") == "running" and elsewhere and age is not None and -STALE_SECONDS < age < STALE_SECONDS


def _end(status: Mapping[str, Any]) -> str:
    """How a process that is gone without a word probably ended."""
    who = f"process {status.get('pid', 'unknown')} on {status.get('host', 'this host')} is gone"
    memory = status.get("memory")
    sizes: Mapping[str, Any] = memory if isinstance(memory, Mapping) else {}
    resident, available = sizes.get("resident_bytes"), sizes.get("available_bytes")
    if not (isinstance(resident, int) and isinstance(available, int)):
        return f"{who}: it was killed, or the machine was stopped"
    if available < NEAR_LIMIT * (resident + available):
        had = f"{resident / 2**30:.1f} GiB used, {available / 2**30:.1f} GiB left at its last sign of life"
        return f"{who}, probably killed for memory ({had})"
    return f"{who}: it was killed, or the machine was stopped"


def _age_seconds(status: Mapping[str, Any]) -> float | None:
    try:
        return (datetime.now(UTC) - datetime.fromisoformat(str(status.get("heartbeat")))).total_seconds()
    except (ValueError, TypeError):
        return None
