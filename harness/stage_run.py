"""One stage of a run: adapt, keep what came of it, evaluate, measure the shift; then it counts."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path

from cl_bench.harness.cache import Cache
from cl_bench.harness.components import Components
from cl_bench.harness.context import RunContext
from cl_bench.harness.files import temporary_name
from cl_bench.harness.measure import contamination_scores
from cl_bench.harness.measure.contamination import EvaluatedItems
from cl_bench.harness.measure.shift.panel import ShiftMeter
from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.harness.planned_stages import planned_stages
from cl_bench.harness.registry import Registry
from cl_bench.harness.run_directory import ADAPTATION, CHECKPOINT, SCHEMA_VERSION, SHIFT, stage_folder
from cl_bench.harness.run_models import RunModels
from cl_bench.harness.run_rows import RunRows
from cl_bench.harness.spec import Execution, StageSpec
from cl_bench.harness.stage_data import make_stage, training_rows
from cl_bench.harness.state_file import load_state, save_state
from cl_bench.harness.store import Store
from cl_bench.methods.base import Adaptation, Progress, Stage
from cl_bench.methods.training.trained import trained_row
from cl_bench.tasks.base import Task

_STATE, _SCRATCH = "state", "scratch"
_TRAINED = "data/trained.jsonl"

Phase = Callable[[str, str], AbstractContextManager[None]]
"""Opens a phase of a stage, by the stage's name and the phase's."""


@dataclass(frozen=True, slots=True)
class StageWork:
    """What every stage of a run works with.

    Attributes:
        store: The run directory.
        execution: Where and how.
        registry: Where methods and modifiers are found.
        models: The run's models.
        cache: Finished work of other runs.
        progress: What the user sees.
        phase: Opens a phase in log, status and manifest.
        spent: Seconds of a phase (``chemistry/adapt``) over all processes that worked on the run.
        tasks: The run's tasks by name.
        items: The evaluated items, for contamination.
        rows: The matrix.
        shift: The shift panel.
    """

    store: Store
    execution: Execution
    registry: Registry
    models: RunModels
    cache: Cache
    progress: Progress
    phase: Phase
    spent: Callable[[str], float]
    tasks: dict[str, Task]
    items: EvaluatedItems
    rows: RunRows
    shift: ShiftMeter


class StageRun:
    """One stage, from the student as the stage before left it."""

    def __init__(self, work: StageWork, index: int, name: str, parts: tuple[StageSpec, ...]) -> None:
        """Name the stage.

        Args:
            work: What all stages work with.
            index: Its place in the run, from 1.
            name: Its row.
            parts: What of the sequence it trains on.
        """
        self._work, self._index, self._name = work, index, name
        self._store, self._spec = work.store, work.store.spec
        self._folder = stage_folder(index, name)
        self._batches = work.store.batches(index, name)
        self._stage = make_stage(self._spec, index, name, parts, work.tasks)

    def carry_out(self, start: Callable[[], ChatModel]) -> ChatModel:
        """Train, evaluate and finish; what an earlier process has done of it is taken over.

        Args:
            start: Gives the student as the stage before left it; it is changed in place.

        Returns:
            The student after the stage.

        Raises:
            DivergedError: Loss or weights became non-finite.
        """
        index, name, models = self._index, self._name, self._work.models
        if self._store.stage_adapted(index, name):
            self._store.reset_measurements(index, name)
            student = models.after_stage(index)
        else:
            self._store.reset_stage(index, name)
            student = start()
            self._adapt(student)
        with self._work.phase(name, "evaluate"):
            self._work.rows.evaluate(index, name, student, models.fingerprint(index), self._batches)
        with self._work.phase(name, "shift"):
            self._measure_shift(student)
        self._store.finish_stage(index, name)
        return student

    def _components(self) -> Components:
        """Fresh method and modifiers with the state that the stage before left on disk."""
        registry, index, branch = self._work.registry, self._index, self._spec.branch
        if index == 1 or (branch is not None and index == branch.stage + 1 and not branch.carried):
            return Components.of(self._spec, registry)
        previous = planned_stages(self._spec)[index - 2][0]
        return Components.of(self._spec, registry, load_state(self._store.stage_dir(index - 1, previous), _STATE))

    def _adapt(self, student: ChatModel) -> None:
        components = self._components()
        # Under a temporary name in the run: a process that was killed leaves gigabytes, which the next one removes.
        scratch = temporary_name(self._store.stage_dir(self._index, self._name) / _SCRATCH)
        scratch.mkdir(parents=True)
        context = self._context(student, components, scratch)
        try:
            with self._work.phase(self._name, "adapt"):
                adaptation, stage = components.adapt(student, self._stage, context)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        self._keep(stage, student, adaptation, self._work.spent(f"{self._name}/adapt"), context)
        save_state(self._store.stage_dir(self._index, self._name), _STATE, components.states())
        self._store.mark_adapted(self._index, self._name)

    def _context(self, student: ChatModel, components: Components, scratch: Path) -> RunContext:
        work, execution, index, name = self._work, self._work.execution, self._index, self._name
        return RunContext(
            self._spec,
            name,
            execution.device,
            previous=lambda: work.models.after_stage(index - 1, frozen=True),
            original=lambda: work.models.after_stage(0, frozen=True),
            checkpoints=self._store.mid_checkpoints(
                index, name, execution.checkpoint_every_seconds, execution.checkpoint_every_steps
            ),
            cache=work.cache,
            progress=work.progress,
            scratch=scratch,
            modifiers=components.modifiers,
            batches=self._batches,
            after_step=lambda step: self._within(student, step),
        )

    def _within(self, student: ChatModel, step: int) -> None:
        every = self._spec.eval_every
        if every is not None and step % every == 0:
            self._work.rows.within(self._index, self._name, student, step)

    def _keep(
        self, stage: Stage, student: ChatModel, adaptation: Adaptation, seconds: float, context: RunContext
    ) -> None:
        found = self._work.items.overlap(training_rows(stage, context.ledger))
        adaptation.warnings += contamination_scores.overlap_warnings(found)
        document = {"schema_version": SCHEMA_VERSION, **asdict(adaptation), "seconds": round(seconds, 3)}
        self._store.write_json(f"{self._folder}/{ADAPTATION}", document, schema="adaptation")
        contamination_scores.write_stage(self._store, self._folder, found)
        self._store.write_json(f"{self._folder}/data/rows.json", [example.id for example in stage.examples])
        if len(context.ledger):
            self._store.write_jsonl(f"{self._folder}/data/generated.jsonl", context.ledger)
        self._store.write_jsonl(f"{self._folder}/{_TRAINED}", context.ledger.trained)
        self._work.models.save(student, self._store.stage_dir(self._index, self._name) / CHECKPOINT)

    def _measure_shift(self, student: ChatModel) -> None:
        models, index = self._work.models, self._index
        base = models.after_stage(0, frozen=True)
        previous = base if index == 1 else models.after_stage(index - 1, frozen=True)
        trained = [trained_row(row) for row in self._store.read_jsonl(f"{self._folder}/{_TRAINED}")]
        shift = self._work.shift.measure(index, base, previous, student, trained, self._batches)
        self._store.write_json(f"{self._folder}/{SHIFT}", shift, schema="shift")
