"""One run: row 0, then adapt, checkpoint and evaluate for every stage, then matrix, metrics and report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from cl_bench.harness.allocator import keep_freed_memory
from cl_bench.harness.branching import take_over
from cl_bench.harness.cache import Cache
from cl_bench.harness.code_leave import check_code_leave
from cl_bench.harness.disk import bytes_to_come, check_room
from cl_bench.harness.errors import DivergedError, InterruptedRunError, StoreError
from cl_bench.harness.manifest import ManifestRecorder
from cl_bench.harness.measure import contamination_scores
from cl_bench.harness.measure.contamination import EvaluatedItems
from cl_bench.harness.measure.matrix import BASE_ROW, Matrix
from cl_bench.harness.measure.run_cost import run_cost
from cl_bench.harness.measure.run_evaluation import RunEvaluator
from cl_bench.harness.measure.run_metrics import run_metrics
from cl_bench.harness.measure.shift.contexts import PromptSets
from cl_bench.harness.measure.shift.panel import ShiftMeter
from cl_bench.harness.memory import resident_bytes
from cl_bench.harness.models.by_name import verified_folder
from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.harness.models.safetensors_header import stored_parameters
from cl_bench.harness.planned_stages import learned_columns, planned_rows, planned_stages
from cl_bench.harness.redaction import redacted
from cl_bench.harness.registry import Registry
from cl_bench.harness.run_directory import (
    COST,
    DONE,
    ENDED,
    MATRIX,
    METRICS,
    REPORT,
    load_run,
    read_matrix,
    stage_folder,
)
from cl_bench.harness.run_errors import reason_of, run_error
from cl_bench.harness.run_models import RunModels
from cl_bench.harness.run_rows import RunRows
from cl_bench.harness.run_status import RunStatus
from cl_bench.harness.spec import Execution, RunSpec, data_options
from cl_bench.harness.stage_data import make_stage
from cl_bench.harness.stage_run import StageRun, StageWork
from cl_bench.harness.store import State, Store
from cl_bench.methods.base import Progress
from cl_bench.tasks.base import Example, Task


@dataclass(frozen=True, slots=True)
class RunResult:
    """Where a run is and what it measured.

    Attributes:
        directory: The run directory.
        status: "done" or "diverged".
        matrix: Rows and columns.
        metrics: Content of ``metrics.json``.
    """

    directory: Path
    status: State
    matrix: Matrix
    metrics: dict[str, Any]


def run_one(spec: RunSpec, execution: Execution, registry: Registry, progress: Progress) -> RunResult:
    """Carry out one run, or what is left of it; a finished one is read back and no work is redone.

    Starts from fresh objects, so several runs in one process equal the same runs in separate ones.

    Raises:
        ClBenchError: What went wrong, with what to try; finished stages are kept.
        InterruptedRunError: The user stopped it; finished stages and the newest checkpoint are kept.
    """
    store = Store.open(execution.output, spec, execution.attempt)
    with store.lock():
        if store.state() in ENDED and _all_intact(store):
            progress.note(f"{store.directory} has come to its end already; nothing was done")
            return _finished(store)
        return _Run(store, execution, registry, progress).carry_out()


class _Run:
    """The objects of one run."""

    def __init__(self, store: Store, execution: Execution, registry: Registry, progress: Progress) -> None:
        self.store, self.spec, self.execution = store, store.spec, execution
        self.registry, self.progress = registry, progress
        _quiet_libraries()
        keep_freed_memory()
        if execution.threads is not None:
            import torch

            torch.set_num_threads(execution.threads)
        self.manifest = ManifestRecorder(store, execution)
        self.models = RunModels(store, execution.device)
        self.status = RunStatus(store)
        self.work: StageWork

    def _prepare(self) -> StageWork:
        options, cache = data_options(self.spec.data, self.execution), Cache(self.execution.cache)
        tasks = {task.name: self.registry.task(task.name, options) for task in self.spec.tasks}
        # A resumed run comes by here alone; what a new one leaves out was said when it was planned.
        check_code_leave(tasks.values(), self.spec.suite, self.execution.allow_code, note=lambda _: None)
        evaluator = RunEvaluator(self.spec, tasks, options, cache)
        items = evaluator.items()
        rows = RunRows(self.store, evaluator, self.progress)
        sets = PromptSets(self.spec, evaluator.task_columns, items, options, partial(_stage_rows, self.spec, tasks))
        learned = list(learned_columns(self.spec).values())
        return StageWork(
            store=self.store,
            execution=self.execution,
            registry=self.registry,
            models=self.models,
            cache=cache,
            progress=self.progress,
            phase=self._phase,
            spent=self.manifest.spent,
            tasks=tasks,
            items=EvaluatedItems(items),
            rows=rows,
            shift=ShiftMeter(self.spec, learned, sets, rows.responses, cache, self.models.fingerprint),
        )

    def carry_out(self) -> RunResult:
        try:
            self.status.set("running")
            with self.status.beating(self.manifest.beat):
                self._check_room()
                if self.spec.branch is not None:
                    take_over(self.store, self.execution.branch_from)
                self.work = self._prepare()
                self._base_row()
                state = self._stages()
                self._conclude(state)
        except KeyboardInterrupt as error:
            self._ended("interrupted")
            raise InterruptedRunError(
                f"interrupted; finished stages are kept in {self.store.directory}",
                hint=self._resume(),
            ) from error
        except Exception as error:
            begun = self.store.exists(f"{stage_folder(0, BASE_ROW)}/{DONE}")
            found = run_error(error, self.spec, begun, self._resume())
            self._ended("failed", reason=redacted(reason_of(found)))
            if found is error:
                raise
            raise found from error
        self.manifest.end(state)
        return _finished(self.store)

    def _resume(self) -> str:
        """The command that goes on; a run directory does not say where plug-ins are to be taken from."""
        folders = "".join(f" --include-path {path.resolve()}" for path in self.execution.include_paths)
        return f"cl-bench resume {self.store.directory}{folders}"

    def _check_room(self) -> None:
        parameters = stored_parameters(verified_folder(self.spec.model)) if planned_stages(self.spec) else 0
        check_room(self.store.directory, bytes_to_come(self.store, self.execution, parameters))

    def _ended(self, state: State, **fields: Any) -> None:
        """Write how the run ended, where that can be written: what stopped it is to be reported all the same."""
        with suppress(OSError, StoreError):
            self.status.end(state, **fields)
        with suppress(OSError, StoreError):
            self.manifest.end(state)

    def _base_row(self) -> None:
        rows = self.work.rows
        rows.matrix.add_row(BASE_ROW)
        if self.store.stage_done(0, BASE_ROW):
            rows.read(0, BASE_ROW)
            return
        self.store.reset_stage(0, BASE_ROW)
        model = self.models.base()
        self.manifest.prompts(model)
        with self._phase(BASE_ROW, "evaluate"):
            rows.evaluate(0, BASE_ROW, model, self.models.fingerprint(0), self.store.batches(0, BASE_ROW))
        document = self.spec.model.model_dump(mode="json")
        self.store.write_json(f"{stage_folder(0, BASE_ROW)}/model.json", document)
        self.store.finish_stage(0, BASE_ROW)
        self._write_matrix()

    def _stages(self) -> State:
        student: ChatModel | None = None
        stages = planned_stages(self.spec)
        for index, (name, parts) in enumerate(stages, start=1):
            self.work.rows.matrix.add_row(name)
            if self.store.stage_done(index, name):
                self.work.rows.read(index, name)
                student = None
                continue
            self._refuse_orphans(index, name)
            try:
                student = StageRun(self.work, index, name, parts).carry_out(partial(self._start, index, student))
                self.manifest.prompts(student)
            except DivergedError as error:
                self.work.rows.diverged(index, str(error.what))
                self.store.event("diverged", stage=name, reason=str(error.what))
                return "diverged"
            _drop_checkpoints(self.store, self.execution, finished=index)
            self._write_matrix()
        _drop_checkpoints(self.store, self.execution, finished=len(stages))
        return "done"

    def _start(self, index: int, student: ChatModel | None) -> ChatModel:
        """The student before a stage."""
        # After a resume the weights come from the checkpoint; both are fp32, so they are the same bits.
        model = student or self.models.after_stage(index - 1)
        self.manifest.prompts(model)
        return model

    def _refuse_orphans(self, index: int, name: str) -> None:
        """A finished stage whose predecessor is trained anew would not come from the weights that stand before it."""
        for later, (other, _) in enumerate(planned_stages(self.spec)[index:], start=index + 1):
            if self.store.exists(f"{stage_folder(later, other)}/{DONE}"):
                raise StoreError(
                    f"stage {other} is finished, but {name} before it is not",
                    f"{stage_folder(index, name)}/{DONE} is gone",
                    f"put it back, or remove {stage_folder(later, other)} and the stages after it and resume",
                )

    def _conclude(self, state: State) -> None:
        from cl_bench.reports.plots import HEATMAP, heatmap
        from cl_bench.reports.report import render_report

        self._write_matrix()
        metrics = run_metrics(self.work.rows.matrix, learned_columns(self.spec))
        self.store.write_json(METRICS, metrics, schema="metrics")
        contamination_scores.write_run(self.store)
        cost = run_cost(load_run(self.store.directory, verify=False), metrics)
        self.store.write_json(COST, cost, schema="cost")
        self.status.set(state, stage=None, phase=None)
        with self._phase("", "report"):
            self.store.write_bytes(HEATMAP, heatmap(self.store.directory))
            self.store.write_text(REPORT, render_report(self.store.directory))

    def _write_matrix(self) -> None:
        self.store.write_json(MATRIX, self.work.rows.matrix.to_json(), schema="matrix")

    @contextmanager
    def _phase(self, stage: str, phase: str) -> Iterator[None]:
        self.status.set("running", stage=stage or None, phase=phase) if phase != "report" else None
        self.store.event("phase", stage=stage, phase=phase, resident_bytes=resident_bytes())
        if phase == "evaluate":
            self.progress.phase(f"evaluate {stage}", len(self.work.rows.matrix.columns))
        elif phase != "adapt":
            self.progress.phase(f"{phase} {stage}".strip())
        with self.manifest.phase(f"{stage}/{phase}".lstrip("/")):
            yield


def _stage_rows(spec: RunSpec, tasks: Mapping[str, Task], index: int) -> Sequence[Example]:
    name, parts = planned_stages(spec)[index - 1]
    return make_stage(spec, index, name, parts, tasks).examples


def _drop_checkpoints(store: Store, execution: Execution, finished: int) -> None:
    """Remove the weights that are not to be kept once that many stages are finished, an earlier process's too."""
    stages = planned_stages(store.spec)
    all_done = finished == len(stages)
    kept = {"all": finished, "last": 1, "none": 0 if all_done else 1}[execution.keep_checkpoints]
    for index, (name, _) in enumerate(stages[: max(0, finished - kept)], start=1):
        store.drop_checkpoint(index, name)


def _all_intact(store: Store) -> bool:
    """Whether every stage of a concluded run verifies; a diverged run has those before the divergence."""
    names = planned_rows(store.spec)
    done = [store.stage_done(index, name) for index, name in enumerate(names)]
    written = all(store.exists(name) for name in (MATRIX, METRICS, REPORT))
    return (all(done) or store.state() == "diverged") and written


def _finished(store: Store) -> RunResult:
    state = store.state()
    matrix = read_matrix(store.path(MATRIX))
    result_state: State = "diverged" if state == "diverged" else "done"
    return RunResult(store.directory, result_state, matrix, store.read_json(METRICS))


def _quiet_libraries() -> None:
    """Libraries' own bars and advice would stand between ours."""
    import logging
    import warnings

    from transformers.utils import logging as transformers_logging

    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    logging.getLogger("datasets").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", category=FutureWarning, module="transformers")
