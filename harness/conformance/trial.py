"""Training a tiny model with a method, and modifiers beside it, under the eyes of the checks."""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from torch import Tensor

from cl_bench.harness.components import Components
from cl_bench.harness.conformance.tiny import Stopped, weights
from cl_bench.harness.conformance.watching import ROWS, GuardedTask, State, WatchingContext, Weights, padded, untouched
from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.harness.state_file import load_state, save_state
from cl_bench.methods.base import (
    Adaptation,
    Context,
    Fidelity,
    Method,
    MethodSettings,
    Modifier,
    Stage,
    Student,
)


@dataclass(frozen=True, slots=True)
class Part:
    """A method or modifier class with the settings it gets."""

    cls: type[Method] | type[Modifier]
    settings: MethodSettings

    def build(self) -> Any:
        """A fresh object."""
        return self.cls(self.settings)


@dataclass(frozen=True, slots=True)
class Subject:
    """What is tried: a method with the modifiers beside it."""

    method: Part
    modifiers: tuple[Part, ...] = ()

    @property
    def takes_modifiers(self) -> bool:
        """Whether the method uses the shared loop."""
        return bool(getattr(self.method.cls, "takes_modifiers", True))


@dataclass(frozen=True, slots=True)
class Setup:
    """How a stage is trained.

    Attributes:
        index: Number of the stage; 2 begins from what ``states`` hold.
        rows: Rows of the stage.
        reverse: Hand the method its rows from the last to the first, those that modifiers bring included.
        micro: Micro-batch size.
        padding: Padding side of every tokenizer.
        entry: Decides the state of the global generators before ``adapt``.
        checkpoints: Write one after every optimizer step.
        stop_at: Optimizer step after which the process "dies", or None.
        probe: Stop after the first optimizer step's gradients and keep them.
        start: Weights that the stage begins with, or None for the untouched ones.
        states: What method and modifiers left at the end of the stage before.
        live: The objects of the stage before themselves, in place of fresh ones with their states.
    """

    index: int = 1
    rows: int = ROWS
    reverse: bool = False
    micro: int = 4
    padding: Literal["left", "right"] = "right"
    entry: int = 1
    checkpoints: bool = False
    stop_at: int | None = None
    probe: bool = False
    start: ChatModel | None = None
    states: Sequence[State] = ()
    live: Sequence[Any] = ()


@dataclass(slots=True)
class Outcome:
    """What a trial left.

    Attributes:
        student: The student after the stage.
        before: Its weights before.
        after: Its weights after.
        gradients: Of the first optimizer step, where a probe was set and could be.
        ledger: Generated rows.
        adaptation: What the method returned; None where it was stopped.
        parts: Method and modifiers.
        steps: Optimizer steps that were reported to the context.
        middle: ``training_state`` of the parts after the first optimizer step.
        changed: Names of the models handed out whose weights are not what they were.
        peeked: Splits of the task that were read and may not be.
    """

    student: ChatModel
    before: Weights
    after: Weights
    gradients: Weights
    ledger: list[dict[str, Any]]
    adaptation: Adaptation | None
    parts: list[Any]
    steps: int
    middle: list[State]
    changed: list[str]
    peeked: list[str]

    def states(self) -> list[State]:
        """What the parts carry to the next stage, as it comes back from the disk."""
        return [through_disk(part.state_dict()) for part in self.parts]


def through_disk(state: Mapping[str, Any]) -> State:
    """A state after it was written and read. Raises ``TypeError`` where it holds neither JSON values nor tensors."""
    with tempfile.TemporaryDirectory(prefix="cl-bench-state-") as folder:
        save_state(Path(folder), "state", state)
        return load_state(Path(folder), "state")


def train(subject: Subject, folder: Path, setup: Setup | None = None) -> Outcome:
    """Train one stage as a run does: fresh objects, states from disk, modifiers around the method.

    Args:
        subject: What is tried.
        folder: Checkpoints and cache; one that holds a checkpoint is resumed.
        setup: How.
    """
    setup = setup or Setup()
    task = GuardedTask()
    parts = list(setup.live) or [part.build() for part in (subject.method, *subject.modifiers)]
    for part, state in zip(parts, setup.states, strict=False):
        part.load_state_dict(state)
    method, modifiers = parts[0], parts[1:]
    probe = _GradientProbe()
    student = padded(setup.start or untouched(0), setup.padding)
    before = weights(student)
    stage = Stage(setup.index, f"toy-{setup.index}", task.rows(setup.index, setup.rows), (), task.scorers())
    context = WatchingContext(
        folder, stage.name, student, parts, [*modifiers, *([probe] if setup.probe else [])], setup.micro, setup.padding,
        1 if setup.checkpoints else None, setup.stop_at,
    )  # fmt: skip
    components = Components(setup.entry, _Reversing(method) if setup.reverse else method, modifiers)
    adaptation = None
    with suppress(Stopped):
        adaptation, _ = components.adapt(student, stage, context)
    return Outcome(
        student, before, weights(student), probe.gradients, list(context.ledger), adaptation, parts, context.steps,
        context.middle, context.changed(), task.peeked,
    )  # fmt: skip


class _Reversing(Method):
    """A method that is handed its rows from the last to the first."""

    name: ClassVar[str] = "reversing"
    fidelity: ClassVar[Fidelity] = Fidelity.PAPER_FORMULA
    Settings: ClassVar[type[MethodSettings]] = MethodSettings

    def __init__(self, method: Method) -> None:
        super().__init__()
        self._method = method

    def adapt(self, student: Student, stage: Stage, context: Context) -> Adaptation:
        turned = copy.copy(stage)
        turned.examples = stage.examples[::-1]
        return self._method.adapt(student, turned, context)


class _GradientProbe(Modifier):
    """Copies the gradients of the first optimizer step, other modifiers' penalties included, then stops the stage."""

    name: ClassVar[str] = "probe"
    fidelity: ClassVar[Fidelity] = Fidelity.PAPER_FORMULA
    Settings: ClassVar[type[MethodSettings]] = MethodSettings

    def __init__(self) -> None:
        super().__init__()
        self.gradients: Weights = {}

    def parameter_penalty(self, student: Student) -> Tensor | None:
        self.gradients = {n: p.grad.clone() for n, p in student.model.named_parameters() if p.grad is not None}
        raise Stopped
