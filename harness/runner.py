"""One run: row 0, then adapt, checkpoint and evaluate for every stage, then matrix, metrics and report."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cl_bench.harness.allocator import keep_freed_memory
from cl_bench.harness.cache import Cache
from cl_bench.harness.code_leave import check_code_leave
from cl_bench.harness.components import Components
from cl_bench.harness.context import RunContext
from cl_bench.harness.errors import ClBenchError, DivergedError, InterruptedRunError, StoreError, UsageError
from cl_bench.harness.manifest import ManifestRecorder
from cl_bench.harness.measure import contamination_scores
from cl_bench.harness.measure.collapse import shares, signs_of_collapse
from cl_bench.harness.measure.contamination import EvaluatedItems
from cl_bench.harness.measure.matrix import BASE_ROW, Cell, Matrix
from cl_bench.harness.measure.run_cost import evaluation_cost, run_cost
from cl_bench.harness.measure.run_evaluation import RunEvaluator, cell_of
from cl_bench.harness.measure.run_metrics import run_metrics
from cl_bench.harness.measure.shift.contexts import PromptSets
from cl_bench.harness.measure.shift.panel import ShiftMeter
from cl_bench.harness.measure.shift.responses import Responses
from cl_bench.harness.measure.task_result import TaskResult
from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.harness.planned_stages import learned_columns, planned_stages
from cl_bench.harness.progress import SilentProgress
from cl_bench.harness.registry import Registry
from cl_bench.harness.run_directory import (
    ADAPTATION,
    CHECKPOINT,
    COLLAPSE,
    COST,
    DONE,
    EVALUATION_COST,
    MATRIX,
    METRICS,
    REPORT,
    SCHEMA_VERSION,
    SHIFT,
    WITHIN,
    load_run,
    read_matrix,
    stage_folder,
)
from cl_bench.harness.run_models import RunModels
from cl_bench.harness.spec import Execution, RunSpec, StageSpec, data_options
from cl_bench.harness.stage_data import make_stage, training_rows
from cl_bench.harness.state_file import load_state, save_state
from cl_bench.harness.store import State, Store
from cl_bench.methods.base import Adaptation, Progress, Stage
from cl_bench.methods.training.trained import TrainedRow
from cl_bench.tasks.base import Example, Task

_STATE = "state"
_CELLS = "eval/cells.json"


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
    store = Store.open(execution.output, spec)
    with store.lock():
        if store.state() in ("done", "diverged") and _all_intact(store):
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
        self.cache = Cache()
        self.models = RunModels(store, execution.device)
        self.tasks: dict[str, Task] = {}
        self.evaluator: RunEvaluator
        self.items: EvaluatedItems
        self.matrix: Matrix
        self.shift: ShiftMeter

    def _prepare(self) -> None:
        options = data_options(self.spec.data, self.execution)
        self.tasks = {task.name: self.registry.task(task.name, options) for task in self.spec.tasks}
        # A resumed run comes by here alone; what a new one leaves out was said when it was planned.
        check_code_leave(self.tasks.values(), self.spec.suite, self.execution.allow_code, note=lambda _: None)
        self.evaluator = RunEvaluator(self.spec, self.tasks, options, self.cache)
        items = self.evaluator.items()
        self.items = EvaluatedItems(items)
        self.matrix = Matrix(self.evaluator.columns())
        sets = PromptSets(self.spec, self.evaluator.task_columns, items, options, self._stage_rows)
        learned = list(learned_columns(self.spec).values())
        self.shift = ShiftMeter(self.spec, learned, sets, self._responses, self.cache, self.models.fingerprint)

    def carry_out(self) -> RunResult:
        state: State = "failed"
        try:
            self.store.status("running")
            self._prepare()
            self._base_row()
            state = self._stages()
            self._conclude(state)
        except KeyboardInterrupt as error:
            state = "interrupted"
            self.store.status(state)
            raise InterruptedRunError(
                f"interrupted; finished stages are kept in {self.store.directory}",
                hint=f"cl-bench resume {self.store.directory}",
            ) from error
        except Exception as error:
            self.store.status("failed", reason=error.what if isinstance(error, ClBenchError) else repr(error))
            if isinstance(error, UsageError) and self.store.stage_done(0, BASE_ROW):
                # Its exit code says that nothing was done.
                raise ClBenchError(error.what, error.why, error.hint) from error
            raise
        finally:
            self.manifest.end(state)
        return _finished(self.store)

    def _base_row(self) -> None:
        self.matrix.add_row(BASE_ROW)
        if self.store.stage_done(0, BASE_ROW):
            self._read_row(0, BASE_ROW)
            return
        self.store.reset_stage(0, BASE_ROW)
        model = self.models.base()
        self.manifest.prompts(model)
        with self._phase(BASE_ROW, "evaluate"):
            self._evaluate(0, BASE_ROW, model, self.models.fingerprint(0))
        self.store.write_json(self._in_stage(0, BASE_ROW, "model.json"), self.spec.model.model_dump(mode="json"))
        self.store.finish_stage(0, BASE_ROW)
        self.store.write_json(MATRIX, self.matrix.to_json(), schema="matrix")

    def _stages(self) -> State:
        student: ChatModel | None = None
        for index, (name, parts) in enumerate(planned_stages(self.spec), start=1):
            self.matrix.add_row(name)
            if self.store.stage_done(index, name):
                self._read_row(index, name)
                student = None
                continue
            self._refuse_orphans(index, name)
            # After a resume the weights come from the checkpoint; both are fp32, so they are the same bits.
            student = student or self.models.after_stage(index - 1)
            self.manifest.prompts(student)
            try:
                self._stage(index, name, parts, student)
            except DivergedError as error:
                self._diverged(index, name, str(error.what))
                return "diverged"
        return "done"

    def _refuse_orphans(self, index: int, name: str) -> None:
        """A finished stage whose predecessor is trained anew would not come from the weights that stand before it."""
        for later, (other, _) in enumerate(planned_stages(self.spec)[index:], start=index + 1):
            if self.store.exists(self._in_stage(later, other, DONE)):
                raise StoreError(
                    f"stage {other} is finished, but {name} before it is not",
                    f"{self._in_stage(index, name, DONE)} is gone",
                    f"put it back, or remove {stage_folder(later, other)} and the stages after it and resume",
                )

    def _stage(self, index: int, name: str, parts: tuple[StageSpec, ...], student: ChatModel) -> None:
        self.store.reset_stage(index, name)
        components = self._components(index)
        stage = make_stage(self.spec, index, name, parts, self.tasks)
        scratch = Path(tempfile.mkdtemp(prefix="cl-bench-"))
        context = RunContext(
            self.spec,
            name,
            self.execution.device,
            previous=lambda: self.models.after_stage(index - 1, frozen=True),
            original=lambda: self.models.after_stage(0, frozen=True),
            checkpoints=self.store.mid_checkpoints(
                index, name, self.execution.checkpoint_every_seconds, self.execution.checkpoint_every_steps
            ),
            cache=self.cache,
            progress=self.progress,
            scratch=scratch,
            modifiers=components.modifiers,
            after_step=lambda step: self._within(index, name, student, step),
        )
        began = time.monotonic()
        try:
            with self._phase(name, "adapt"):
                adaptation, stage = components.adapt(student, stage, context)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        seconds = time.monotonic() - began
        self._keep_stage(index, name, stage, student, adaptation, seconds, context)
        save_state(self.store.stage_dir(index, name), _STATE, components.states())
        with self._phase(name, "evaluate"):
            self._evaluate(index, name, student, self.models.fingerprint(index))
        with self._phase(name, "shift"):
            self._shift(index, name, student, context.ledger.trained)
        self.store.finish_stage(index, name)
        if self.execution.keep_checkpoints == "last" and index > 1:
            self.store.drop_checkpoint(index - 1, planned_stages(self.spec)[index - 2][0])
        self.store.write_json(MATRIX, self.matrix.to_json(), schema="matrix")

    def _components(self, index: int) -> Components:
        """Fresh method and modifiers with the state that the stage before left on disk."""
        if index == 1:
            return Components.of(self.spec, self.registry)
        previous = planned_stages(self.spec)[index - 2][0]
        return Components.of(self.spec, self.registry, load_state(self.store.stage_dir(index - 1, previous), _STATE))

    def _keep_stage(
        self,
        index: int,
        name: str,
        stage: Stage,
        student: ChatModel,
        adaptation: Adaptation,
        seconds: float,
        context: RunContext,
    ) -> None:
        found = self.items.overlap(training_rows(stage, context.ledger))
        adaptation.warnings += contamination_scores.overlap_warnings(found)
        document = {"schema_version": SCHEMA_VERSION, **asdict(adaptation), "seconds": round(seconds, 3)}
        self.store.write_json(self._in_stage(index, name, ADAPTATION), document, schema="adaptation")
        contamination_scores.write_stage(self.store, stage_folder(index, name), found)
        self.store.write_json(self._in_stage(index, name, "data/rows.json"), [e.id for e in stage.examples])
        if len(context.ledger):
            self.store.write_jsonl(self._in_stage(index, name, "data/generated.jsonl"), context.ledger)
        self.models.save(student, self.store.stage_dir(index, name) / CHECKPOINT)

    def _evaluate(self, index: int, name: str, model: ChatModel, fingerprint: tuple[str, str]) -> None:
        results = self.evaluator.evaluate(model, self.progress, fingerprint)
        for column, result in results.items():
            self._write_cell(self._in_stage(index, name, f"eval/{column}"), result)
            self.matrix.set(name, column, cell_of(result))
        # A stage's row lies in the stage itself, so that the matrix can always be put together again.
        cells = {column: asdict(self.matrix.cell(name, column)) for column in results}
        self.store.write_json(self._in_stage(index, name, _CELLS), cells)
        cost = evaluation_cost(results.values(), model.parameter_count())
        self.store.write_json(self._in_stage(index, name, EVALUATION_COST), cost)
        self._flag_collapse(index, name, {column: shares(result.samples) for column, result in results.items()})

    def _flag_collapse(self, index: int, name: str, now: dict[str, dict[str, float]]) -> None:
        signs: list[str] = []
        if index:
            before = self.store.read_json(self._in_stage(0, BASE_ROW, COLLAPSE))["shares"]
            signs = signs_of_collapse(now, before, learned_columns(self.spec)[name])
        self.store.write_json(self._in_stage(index, name, COLLAPSE), {"shares": now, "signs": signs})
        for sign in signs:
            self.store.event("collapse", stage=name, sign=sign)
            self.progress.note(f"{name}: {sign}")

    def _within(self, index: int, name: str, student: ChatModel, step: int) -> None:
        if self.spec.eval_every is None or step % self.spec.eval_every:
            return
        # The bar on show counts optimizer steps, not columns.
        results = self.evaluator.evaluate(student, SilentProgress(quiet=True))
        for column, result in results.items():
            self._write_cell(self._in_stage(index, name, f"{WITHIN}/step-{step:06d}/{column}"), result)

    def _write_cell(self, folder: str, result: TaskResult) -> None:
        self.store.write_json(f"{folder}/results.json", result.results_json())
        self.store.write_jsonl(f"{folder}/samples.jsonl", result.samples)

    def _shift(self, index: int, name: str, student: ChatModel, trained: Sequence[TrainedRow]) -> None:
        base = self.models.after_stage(0, frozen=True)
        previous = base if index == 1 else self.models.after_stage(index - 1, frozen=True)
        shift = self.shift.measure(index, base, previous, student, trained)
        self.store.write_json(self._in_stage(index, name, SHIFT), shift, schema="shift")

    def _stage_rows(self, index: int) -> Sequence[Example]:
        name, parts = planned_stages(self.spec)[index - 1]
        return make_stage(self.spec, index, name, parts, self.tasks).examples

    def _responses(self, index: int) -> Responses:
        name = (BASE_ROW, *learned_columns(self.spec))[index]
        folder = self._in_stage(index, name, "eval")
        return {c.name: self.store.read_jsonl(f"{folder}/{c.name}/samples.jsonl") for c in self.matrix.columns}

    def _read_row(self, index: int, name: str) -> None:
        for column, cell in self.store.read_json(self._in_stage(index, name, _CELLS)).items():
            self.matrix.set(name, column, Cell(**cell))

    def _diverged(self, index: int, name: str, why: str) -> None:
        stages = planned_stages(self.spec)
        for later, _ in stages[index:]:
            self.matrix.add_row(later)
        for row, _ in stages[index - 1 :]:
            for column in self.matrix.columns:
                self.matrix.set(row, column.name, Cell(None, f"diverged in stage {name}: {why}"))
        self.store.event("diverged", stage=name, reason=why)

    def _conclude(self, state: State) -> None:
        from cl_bench.reports.plots import HEATMAP, heatmap
        from cl_bench.reports.report import render_report

        self.store.write_json(MATRIX, self.matrix.to_json(), schema="matrix")
        metrics = run_metrics(self.matrix, learned_columns(self.spec))
        self.store.write_json(METRICS, metrics, schema="metrics")
        contamination_scores.write_run(self.store)
        cost = run_cost(load_run(self.store.directory, verify=False), metrics)
        self.store.write_json(COST, cost, schema="cost")
        self.store.status(state, stage=None, phase=None)
        with self._phase("", "report"):
            self.store.write_bytes(HEATMAP, heatmap(self.store.directory))
            self.store.write_text(REPORT, render_report(self.store.directory))

    def _in_stage(self, index: int, name: str, relative: str) -> str:
        return f"{stage_folder(index, name)}/{relative}"

    @contextmanager
    def _phase(self, stage: str, phase: str) -> Iterator[None]:
        self.store.status("running", stage=stage or None, phase=phase) if phase != "report" else None
        self.store.event("phase", stage=stage, phase=phase)
        if phase == "evaluate":
            self.progress.phase(f"evaluate {stage}", len(self.matrix.columns))
        elif phase != "adapt":
            self.progress.phase(f"{phase} {stage}".strip())
        with self.manifest.phase(f"{stage}/{phase}".lstrip("/")):
            yield


def _all_intact(store: Store) -> bool:
    """Whether every stage of a concluded run verifies; a diverged run has those before the divergence."""
    names = [BASE_ROW, *(name for name, _ in planned_stages(store.spec))]
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
