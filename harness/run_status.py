"""``status.json``: where a run stands, with signs of life of the process that works on it."""

from __future__ import annotations

import os
import platform
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any

from cl_bench.harness.errors import StoreError
from cl_bench.harness.memory import available_bytes, resident_bytes
from cl_bench.harness.store import State, Store

BEAT_SECONDS = 10.0
"""Seconds between two signs of life."""


class RunStatus:
    """The status of a run while a process works on it; a thread renews its signs of life."""

    def __init__(self, store: Store, every: float = BEAT_SECONDS) -> None:
        """Write nothing yet.

        Args:
            store: The run.
            every: Seconds between signs of life.
        """
        self._store, self._every = store, every
        self._state: State = "running"
        self._fields: dict[str, Any] = {}
        self._lock = threading.Lock()

    def set(self, state: State, **fields: Any) -> None:
        """Write a state, with for example ``stage``, ``phase`` or ``reason``."""
        with self._lock:
            self._state, self._fields = state, fields
            self._write()

    def end(self, state: State, **fields: Any) -> None:
        """Write how the work ended, beside where it stood."""
        self.set(state, **self._fields | fields)

    @contextmanager
    def beating(self, also: Callable[[], None] = lambda: None) -> Iterator[None]:
        """Renew the signs of life until the block ends.

        Args:
            also: Called with each.
        """
        over = threading.Event()
        thread = threading.Thread(target=self._beat, args=(over, also), daemon=True, name="heartbeat")
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _beat(self, over: threading.Event, also: Callable[[], None]) -> None:
        while not over.wait(self._every):
            # A full disk stops the run where it matters, and not here.
            with suppress(OSError, StoreError):
                with self._lock:
                    self._write()
                also()

    def _write(self) -> None:
        life = {
            "pid": os.getpid(),
            "host": platform.node(),
            "heartbeat": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        memory = {"resident_bytes": resident_bytes(), "available_bytes": available_bytes()}
        self._store.status(self._state, **self._fields, **life, memory=memory)
