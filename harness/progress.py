"""What the user sees of long work: bars on a terminal, plain lines elsewhere, or nothing."""

from __future__ import annotations

import sys
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

from cl_bench.harness.escaping import visible
from cl_bench.harness.redaction import redacted
from cl_bench.methods.base import Progress

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

_LINE_EVERY_SECONDS = 15.0
"""A long phase says where it is this often, where there is no bar."""


class ClosingProgress(Progress):
    """A progress that ends its last phase when its ``with`` block ends."""

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the last phase."""
        self.close()

    def close(self) -> None:
        """End the last phase."""


class SilentProgress(ClosingProgress):
    """Shows nothing; warnings still reach stderr unless ``quiet``."""

    def __init__(self, stream: TextIO | None = None, quiet: bool = False) -> None:
        """Write notes to ``stream`` (stderr by default)."""
        self._stream, self._quiet = stream, quiet

    def phase(self, name: str, total: int | None = None) -> None:
        """Nothing is shown."""

    def advance(self, steps: int = 1, **numbers: float) -> None:
        """Nothing is shown."""

    def note(self, message: str) -> None:
        """One line."""
        if not self._quiet:
            print(visible(redacted(message), layout=True), file=self._stream or sys.stderr, flush=True)


class _Phase:
    """Name, count and clock of the phase that is under way."""

    def __init__(self, name: str, total: int | None) -> None:
        self.name, self.total, self.done, self.began = visible(name), total, 0, monotonic()
        self.numbers: dict[str, float] = {}

    def line(self) -> str:
        count = f"{self.done}/{self.total}" if self.total is not None else (str(self.done) if self.done else "")
        parts = [f"{self.name:<34}", f"{count:>9}", f"{monotonic() - self.began:6.1f} s", shown(self.numbers)]
        return "  ".join(parts).rstrip()


class PlainProgress(ClosingProgress):
    """One line at the end of each phase, and one now and then within a long one."""

    def __init__(self, stream: TextIO | None = None) -> None:
        """Write to ``stream`` (stderr by default)."""
        self._stream = stream
        self._phase: _Phase | None = None
        self._said = monotonic()

    def phase(self, name: str, total: int | None = None) -> None:
        """End the phase before and begin one."""
        self.close()
        self._phase, self._said = _Phase(name, total), monotonic()

    def advance(self, steps: int = 1, **numbers: float) -> None:
        """Count; says a line when the last one is long ago."""
        if self._phase is None:
            return
        self._phase.done += steps
        self._phase.numbers.update(numbers)
        if monotonic() - self._said >= _LINE_EVERY_SECONDS:
            self._say(self._phase.line() + " ...")

    def note(self, message: str) -> None:
        """One line."""
        self._say(visible(redacted(message), layout=True))

    def close(self) -> None:
        """Say how the last phase ended."""
        if self._phase is not None:
            self._say(self._phase.line())
            self._phase = None

    def _say(self, message: str) -> None:
        print(message, file=self._stream or sys.stderr, flush=True)
        self._said = monotonic()


class BarProgress(ClosingProgress):
    """A bar for the phase under way; finished phases stay as lines above it."""

    def __init__(self, console: Console) -> None:
        """Draw on a console."""
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bars

        self._console = console
        self._bars: Bars = Bars(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[numbers]}", markup=False),
            console=console,
            transient=True,
            redirect_stdout=False,
        )
        self._task: TaskID | None = None
        self._phase: _Phase | None = None

    def phase(self, name: str, total: int | None = None) -> None:
        """End the bar before and begin one."""
        self.close()
        self._phase = _Phase(name, total)
        self._bars.start()
        self._task = self._bars.add_task(f"{self._phase.name:<34}", total=total, numbers="")

    def advance(self, steps: int = 1, **numbers: float) -> None:
        """Move the bar."""
        if self._phase is None or self._task is None:
            return
        self._phase.done += steps
        self._phase.numbers.update(numbers)
        self._bars.update(self._task, advance=steps, numbers=shown(self._phase.numbers))

    def note(self, message: str) -> None:
        """One line above the bar."""
        self._console.print(visible(redacted(message), layout=True), markup=False, highlight=False)

    def close(self) -> None:
        """Replace the bar by a line."""
        if self._phase is None or self._task is None:
            return
        self._bars.remove_task(self._task)
        self._bars.stop()
        self._console.print(self._phase.line(), markup=False, highlight=False)
        self._phase = self._task = None


def make_progress(enabled: bool = True, stream: TextIO | None = None) -> ClosingProgress:
    """Bars where ``stream`` (stderr by default) is a terminal, plain lines elsewhere, nothing where not enabled."""
    stream = stream if stream is not None else sys.stderr
    if not enabled:
        return SilentProgress(stream)
    if not stream.isatty():
        return PlainProgress(stream)
    from rich.console import Console

    return BarProgress(Console(file=stream))


def shown(numbers: dict[str, float]) -> str:
    """Numbers as ``loss=0.123``, three significant digits."""
    return "  ".join(f"{visible(name)}={value:.3g}" for name, value in numbers.items())
