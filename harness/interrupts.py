"""Ctrl-C that is not lost: an exception raised inside a destructor or a callback of a library goes nowhere."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any


class Interrupts:
    """Raises ``KeyboardInterrupt`` as usual, remembers it, and raises it again where ``check`` is called.

    Used as a context around long work. Outside the main thread, and where the signal is ignored or somebody else's,
    nothing is installed and ``check`` never raises.
    """

    def __init__(self) -> None:
        """Nothing is installed yet."""
        self.asked = False
        self._before: Any = None

    def __enter__(self) -> Interrupts:
        """Take over the default handler."""
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._before = signal.signal(signal.SIGINT, self._interrupted)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Put the handler back."""
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def check(self) -> None:
        """Raise ``KeyboardInterrupt`` where the user asked to stop and the exception was swallowed."""
        if self.asked:
            raise KeyboardInterrupt

    def _interrupted(self, number: int, frame: FrameType | None) -> None:
        self.asked = True
        raise KeyboardInterrupt
