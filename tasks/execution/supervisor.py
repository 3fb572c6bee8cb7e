"""Watches one program: time, memory, processes, output; and ends everything it started."""

from __future__ import annotations

import os
import select
import time

from cl_bench.tasks.execution.processes import (
    descendants,
    end_descendants,
    end_group,
    end_namespace,
    excess,
    process_table,
)

_CHECK_S = 0.025
"""Seconds between two looks at memory and processes; more where a look takes long."""
_SHARE_OF_LOOKING = 0.1
_START_S = 30.0
"""Seconds for an interpreter to start on a busy machine; the program's own time begins when it is ready."""
_CHUNK = 1 << 16
_VERDICT_BYTES = 4096


class Supervisor:
    """Waits for a child process within its limits.

    Args:
        limits: ``seconds``, ``memory``, ``processes`` and ``output`` (bytes of it to keep).
        scope: How the processes of the program are found: "namespace" (this process is the first of its own PID
            namespace), "descendants" (it adopts orphans) or "group".
        looks: Whether ``/proc`` shows the program's processes.
    """

    def __init__(self, limits: dict[str, float], scope: str, looks: bool) -> None:
        """See the class."""
        self._limits, self._scope, self._looks = limits, scope, looks
        self._status: int | None = None
        self._started = time.monotonic()
        self._next_look = time.monotonic() + _CHECK_S
        self._poll = select.poll()
        self._kept: dict[int, bytes] = {}
        self._room: dict[int, int] = {}
        self._open: set[int] = set()

    def watch(self, program: int, verdict: int, output: int) -> dict[str, object]:
        """Wait until the program ends or breaks a limit, then end all its processes.

        Args:
            program: Number of the child process, which leads its own process group.
            verdict: Where the verdict is read from.
            output: Where standard output and standard error are read from.

        Returns:
            ``end`` ("" where the program ended by itself, else "time", "memory", "processes" or "abandoned"), its wait
            ``status``, ``seconds`` since the program was ready, the bytes of ``verdict`` and ``output``, and ``gone``:
            no process is left.
        """
        self._room = {verdict: _VERDICT_BYTES, output: int(self._limits["output"])}
        self._kept = {verdict: b"", output: b""}
        self._open = set(self._room)
        for source in self._open:
            os.set_blocking(source, False)
            self._poll.register(source, select.POLLIN)
        # The caller reads this process's standard output: an error on it says that the caller is gone.
        self._poll.register(1, 0)
        handle = _wake_at_end(self._poll, program)
        end = self._wait(program, handle, verdict)
        seconds = time.monotonic() - self._started
        gone = self._end_all(program)
        for source in self._room:
            self._read(source)
        return {
            "end": end,
            "status": self._status,
            "seconds": seconds,
            "verdict": self._kept[verdict],
            "output": self._kept[output],
            "gone": gone,
        }

    def _wait(self, program: int, handle: int | None, verdict: int) -> str:
        seconds = _START_S
        while True:
            if seconds == _START_S and self._kept[verdict]:
                self._started, seconds = time.monotonic(), self._limits["seconds"]
            left = self._started + seconds - time.monotonic()
            pause = min(max(left, 0.0), _CHECK_S if self._looks and handle is not None else 0.005)
            if self._serve(self._poll.poll(pause * 1000), handle):
                return "abandoned"
            self._reap(program)
            if self._status is not None:
                return ""
            if left <= 0:
                return "time"
            if broken := self._look():
                return broken

    def _serve(self, ready: list[tuple[int, int]], handle: int | None) -> bool:
        for source, _ in ready:
            if source == 1:
                return True
            if source != handle:
                self._read(source)
        return False

    def _read(self, source: int) -> None:
        """Take what is there, keep what there is room for, drop the rest: the program never waits for its reader."""
        for _ in range(16):
            try:
                chunk = os.read(source, _CHUNK)
            except BlockingIOError:
                return
            if not chunk:
                if source in self._open:
                    self._open.remove(source)
                    self._poll.unregister(source)
                return
            self._kept[source] += chunk[: self._room[source] - len(self._kept[source])]

    def _look(self) -> str:
        now = time.monotonic()
        if not self._looks or now < self._next_look:
            return ""
        table = process_table()
        mine = descendants(table, os.getpid())
        broken = excess(table, mine, int(self._limits["processes"]), int(self._limits["memory"]))
        spent = time.monotonic() - now
        self._next_look = now + max(_CHECK_S, spent / _SHARE_OF_LOOKING)
        return broken

    def _reap(self, program: int) -> None:
        """Note the program's end; as the one who adopts orphans, bury those that ended too."""
        while True:
            try:
                number, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if number == program:
                self._status = status
            if number == 0:
                return

    def _end_all(self, program: int) -> bool:
        if self._scope == "namespace":
            end_namespace()
            return True
        if self._scope == "descendants":
            return end_descendants()
        end_group(program)
        return True


def _wake_at_end(poll: select.poll, program: int) -> int | None:
    try:
        handle = os.pidfd_open(program)
    except (AttributeError, OSError):
        return None
    poll.register(handle, select.POLLIN)
    return handle
