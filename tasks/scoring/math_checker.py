"""Owns the process that compares mathematical expressions, and ends it when a comparison takes too long."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

LIMIT_S = 5.0
"""Processor seconds for one comparison, math-verify's own limit; the answers of MATH-500 take 0.01 to 0.4. Processor
time, so that the verdict does not depend on what else the machine does."""
WALL_LIMIT_S = 60.0
"""Seconds on the clock for one comparison, should the process not end itself in time."""
START_LIMIT_S = 120.0
"""Seconds for the process to load its libraries, once; from a cold disk that takes several times its usual 1 s."""

_OUT_OF_TIME = getattr(signal, "SIGPROF", 0)
# -P: a file sympy.py in the working folder must not be taken for the library.
_COMMAND = (sys.executable, "-P", "-m", "cl_bench.tasks.scoring.math_worker")


class Verdict(NamedTuple):
    """Whether two expressions agree, or None and the reason why that is not known."""

    equal: bool | None
    problem: str | None = None


class MathChecker:
    """Compares expressions in a process of its own, which starts on first use and again after every failure.

    Comparisons from several threads wait for one another. The process is not shared with forked children: they make
    their own checker (see ``math_checker``).

    Args:
        command: Command line of the process, to which the limit is added; it speaks the protocol of ``math_worker``.
        limit_s: Processor seconds for one comparison.
        wall_limit_s: Seconds on the clock for one comparison.
        start_limit_s: Seconds until the process is ready.
    """

    def __init__(
        self,
        command: Sequence[str] = _COMMAND,
        limit_s: float = LIMIT_S,
        wall_limit_s: float = WALL_LIMIT_S,
        start_limit_s: float = START_LIMIT_S,
    ) -> None:
        """See the class."""
        self._command, self._limit_s = (*command, str(limit_s)), limit_s
        self._wall_limit_s, self._start_limit_s = wall_limit_s, start_limit_s
        self._lock = threading.Lock()
        self._worker: _Worker | None = None

    def equal(self, gold: str, answer: str) -> Verdict:
        """Whether the answer agrees with gold; both are LaTeX without dollars, gold may be the more general form."""
        with self._lock:
            try:
                if self._worker is None:
                    self._worker = _Worker(self._command, self._start_limit_s)
                reply = self._worker.ask({"gold": gold, "answer": answer}, self._wall_limit_s)
            except TimeoutError:
                problem = f"math-verify took longer than {self._wall_limit_s:g} s"
            except _EndedError as error:
                out_of_time = error.status == -_OUT_OF_TIME
                problem = (
                    f"math-verify {f'took longer than {self._limit_s:g} s' if out_of_time else f'ended ({error})'}"
                )
            except (OSError, ValueError) as error:
                problem = f"math-verify gave no verdict ({error})"
            except BaseException:
                # An interrupt: the reply would be taken for that to the next question.
                self._end()
                raise
            else:
                return Verdict(reply.get("equal"), reply.get("error"))
            self._end()
            return Verdict(None, problem)

    def close(self) -> None:
        """End the process, if there is one; the next comparison starts another."""
        with self._lock:
            self._end()

    @property
    def pid(self) -> int | None:
        """Id of the process, or None where none runs."""
        return None if self._worker is None else self._worker.process.pid

    def _end(self) -> None:
        if self._worker is not None:
            self._worker.end()
            self._worker = None


class _EndedError(Exception):
    def __init__(self, status: int) -> None:
        super().__init__(f"exit status {status}")
        self.status = status


class _Worker:
    """One running process; ends with its object or with the program, whichever is first."""

    def __init__(self, command: Sequence[str], start_limit_s: float) -> None:
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.end = weakref.finalize(self, _end_process, self.process, os.getpid())
        self._unread = b""
        try:
            self._read(start_limit_s)
        except TimeoutError as error:
            self.end()
            raise ChildProcessError(f"it was not ready after {start_limit_s:g} s") from error
        except BaseException:
            self.end()
            raise

    def ask(self, request: dict[str, str], limit_s: float) -> dict[str, Any]:
        """The reply to a request. Raises TimeoutError, _EndedError, or ValueError for a reply that is none."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError as error:
            raise _EndedError(self.process.wait()) from error
        return self._read(limit_s)

    def _read(self, limit_s: float) -> dict[str, Any]:
        assert self.process.stdout is not None
        deadline = time.monotonic() + limit_s
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._unread:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise TimeoutError
                piece = os.read(self.process.stdout.fileno(), 65536)
                if not piece:
                    raise _EndedError(self.process.wait())
                self._unread += piece
        line, _, self._unread = self._unread.partition(b"\n")
        reply = json.loads(line)
        if not isinstance(reply, dict):
            raise ValueError(f"unexpected reply {line[:60]!r}")
        return reply


def _end_process(process: subprocess.Popen[bytes], owner: int) -> None:
    if os.getpid() != owner:
        return  # a forked child has a copy of the object, not the process
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        with contextlib.suppress(OSError):
            if pipe is not None:
                pipe.close()


def math_checker() -> MathChecker:
    """The checker of this process; its worker starts on first use and ends with the program."""
    return _checker_of(os.getpid())


@functools.cache
def _checker_of(pid: int) -> MathChecker:
    # By process id, so that a forked child has one of its own, with a lock that nobody holds.
    return MathChecker()
