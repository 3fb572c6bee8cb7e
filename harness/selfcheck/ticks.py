"""Moments of a run at which it can be killed, counted by what the run is doing."""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from cl_bench.harness.files import append_line

Activity = Literal["generation", "training", "checkpoint", "evaluation", "record"]
"""What a run is doing: sampling training data, an optimizer step, writing weights, measuring, writing anything else."""
ACTIVITIES: tuple[Activity, ...] = get_args(Activity)
_LONGEST_DELAY = {"generation": 0.03, "training": 0.03, "checkpoint": 0.004, "evaluation": 0.03, "record": 0.001}
"""Seconds from a moment to a kill that falls after it, at most: about as long as such a moment takes."""
_WEIGHTS = ("/mid/", "/checkpoint/", "/checkpoint-", "/state.")
"""Parts of paths below which weights and optimizer states are written."""


@dataclass(frozen=True, slots=True)
class KillPoint:
    """When a process ends itself with SIGKILL.

    Attributes:
        activity: What it is to be doing.
        number: How many moments of that activity go by before, from 1.
        delay: Seconds after that moment, so that a kill can fall inside a computation.
        earliest: The first stage, by its place in the run, whose moments count.
    """

    activity: Activity
    number: int
    delay: float = 0.0
    earliest: int = 0


def random_point(activity: Activity, most: int, generator: random.Random, earliest: int = 0) -> KillPoint:
    """A kill point within the first ``most`` moments; half of them fall between two moments."""
    longest = _LONGEST_DELAY[activity] if generator.random() < 0.5 else 0.0
    return KillPoint(activity, generator.randint(1, max(1, most)), generator.uniform(0, longest), earliest)


class Ticker:
    """Counts the moments of this process and kills it at one of them."""

    def __init__(self, run_directory: Path, at: KillPoint | None, log: Path) -> None:
        """Count for a run.

        Args:
            run_directory: Where it is written.
            at: Where to end the process, or None.
            log: JSON lines of what a kill found the run doing.
        """
        self.counts: Counter[str] = Counter()
        self._directory, self._at, self._log = str(run_directory), at, log
        self._stage, self._phase, self._passed, self._dying = "", "", 0, False

    def enter(self, stage: str, phase: str) -> None:
        """The run entered a phase of a stage."""
        self._stage, self._phase = stage, phase

    def computing(self, training: bool = False) -> None:
        """A forward pass of a model, or a step of training."""
        if training:
            self._tick("training")
        else:
            self._tick("generation" if self._phase == "adapt" else "evaluation")

    def audited(self, event: str, arguments: tuple[Any, ...]) -> None:
        """An audit hook of ``sys.addaudithook``: files opened for writing and renamed."""
        if self._dying or event not in ("open", "os.rename"):
            return
        path = str(arguments[1] if event == "os.rename" else arguments[0])
        if event == "open" and not (isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)):
            return
        if path.startswith(self._directory) or "/checkpoint-" in path:
            self._tick("checkpoint" if any(part in path for part in _WEIGHTS) else "record")

    def _tick(self, activity: Activity) -> None:
        place = int(self._stage[:2]) if self._stage[:2].isdigit() else 0
        self.counts[activity] += 1
        if self._at is None or self._at.activity != activity or place < self._at.earliest:
            return
        self._passed += 1
        if self._passed != self._at.number or self._dying:
            return
        self._dying = True
        if self._at.delay:
            timer = threading.Timer(self._at.delay, self._die)
            timer.daemon = True
            timer.start()
        else:
            self._die()

    def _die(self) -> None:
        assert self._at is not None
        with suppress(OSError):
            append_line(self._log, {**asdict(self._at), "stage": self._stage, "phase": self._phase})
        os.kill(os.getpid(), signal.SIGKILL)


def watch(ticker: Ticker) -> None:
    """Have a ticker told what this process does, for the rest of the process."""
    from cl_bench.harness.generation.local import LocalSampler
    from cl_bench.harness.measure import loglikelihood
    from cl_bench.harness.store import Store
    from cl_bench.methods.training.mixin import TrainingMixin

    def entered(store: Store, kind: str, **fields: Any) -> None:
        if kind == "phase":
            folders = [path.name for path in (store.directory / "stages").glob("*")]
            named = [name for name in folders if name[3:] == fields["stage"]]
            ticker.enter(named[0] if named else fields["stage"], fields["phase"])
        event(store, kind, **fields)

    event = Store.event
    Store.event = entered  # type: ignore[method-assign, assignment]
    _before(LocalSampler, "_forward", ticker.computing)
    _before(loglikelihood, "_score_batch", ticker.computing)
    _before(TrainingMixin, "training_step", lambda: ticker.computing(training=True))
    sys.addaudithook(ticker.audited)


def _before(owner: Any, name: str, tell: Callable[[], None]) -> None:
    real = getattr(owner, name)

    def told(*arguments: Any, **named: Any) -> Any:
        tell()
        return real(*arguments, **named)

    setattr(owner, name, told)
