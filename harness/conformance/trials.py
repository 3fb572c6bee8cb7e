"""The trainings of a tiny model that the checks look at, each made once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from cl_bench.harness.conformance.tiny_settings import Reads, tiny_values
from cl_bench.harness.conformance.trial import Outcome, Part, Setup, Subject, train
from cl_bench.methods.base import Method, Modifier

STEP_ROWS = 4
"""Rows of a stage of one optimizer step."""
_WHOLE_STEP = 16
"""Rows that an optimizer step may hold where modifiers can add some to the stage's."""


class Trials:
    """Trainings that several checks look at, each made once. A modifier is looked at in its second stage."""

    def __init__(self, method: type[Method], folder: Path, modifier: type[Modifier] | None = None) -> None:
        """Try a method, or a modifier beside a method.

        Args:
            method: The method.
            folder: For checkpoints and caches.
            modifier: What is tried, or None where it is the method itself.
        """
        self.method, self.modifier, self._folder, self._count = method, modifier, folder, 0
        self.tried: type[Method] | type[Modifier] = modifier or method
        self.reads = Reads()
        self._watching = self.reads.watching(self.tried.Settings)
        self.subject = self.subject_with({})

    def subject_with(self, changes: Mapping[str, Any], values: Mapping[str, Any] | None = None) -> Subject:
        """The subject with other settings; reads of those of what is tried are noted in ``reads``.

        Args:
            changes: Values of the method's settings, where it has such fields.
            values: Values of the settings of what is tried, in place of the tiny ones.
        """

        def part(cls: Any, changes: Mapping[str, Any]) -> Part:
            if cls is not self.tried:
                return Part(cls, cls.Settings(**tiny_values(cls.Settings, **changes)))
            own = tiny_values(cls.Settings, **changes) if values is None else values
            return Part(cls, self._watching(**own))

        return Subject(part(self.method, changes), (part(self.modifier, {}),) if self.modifier else ())

    def folder(self) -> Path:
        """A new folder."""
        self._count += 1
        return self._folder / str(self._count)

    @cached_property
    def opening(self) -> Outcome:
        """The first stage."""
        return train(self.subject, self.folder(), Setup())

    @cached_property
    def second(self) -> Setup:
        """How the stage after ``opening`` begins."""
        return Setup(index=2, start=self.opening.student, states=self.opening.states())

    @cached_property
    def setup(self) -> Setup:
        """How the stage that is looked at begins."""
        return self.second if self.modifier else Setup()

    @cached_property
    def whole(self) -> Outcome:
        """The stage that is looked at, uninterrupted."""
        return train(self.subject, self.folder(), self.setup) if self.modifier else self.opening

    @cached_property
    def one_step(self) -> Outcome:
        """The first optimizer step over all rows, in micro-batches of four."""
        return self.step()

    def step(self, **changes: Any) -> Outcome:
        """One optimizer step over all rows of the stage that is looked at."""
        subject = self.subject_with({"batch_size": _WHOLE_STEP if self.modifier else STEP_ROWS, "epochs": 1})
        setup = replace(self.setup, rows=STEP_ROWS, probe=subject.takes_modifiers, **changes)
        return train(subject, self.folder(), setup)
