"""The rows of a run's matrix: evaluated, written with their answers, and read back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from cl_bench.harness.generation.batches import BatchLedger
from cl_bench.harness.measure.collapse import shares, signs_of_collapse
from cl_bench.harness.measure.matrix import BASE_ROW, Cell, Matrix
from cl_bench.harness.measure.run_cost import evaluation_cost
from cl_bench.harness.measure.run_evaluation import RunEvaluator, cell_of
from cl_bench.harness.measure.shift.responses import Responses
from cl_bench.harness.measure.task_result import TaskResult
from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.harness.planned_stages import learned_columns
from cl_bench.harness.progress import SilentProgress
from cl_bench.harness.run_directory import COLLAPSE, EVALUATION_COST, WITHIN, stage_folder
from cl_bench.harness.store import Store
from cl_bench.methods.base import Progress

_CELLS = "eval/cells.json"


class RunRows:
    """One row a stage, the untouched model's first; a row lies in its stage's folder."""

    def __init__(self, store: Store, evaluator: RunEvaluator, progress: Progress) -> None:
        """Start with a matrix without rows."""
        self._store, self._evaluator, self._progress = store, evaluator, progress
        self._learned = learned_columns(store.spec)
        self.matrix = Matrix(evaluator.columns())

    def evaluate(
        self, index: int, name: str, model: ChatModel, fingerprint: tuple[str, str], batches: BatchLedger
    ) -> None:
        """Measure a row and write it.

        Args:
            index: Place of the stage in the run; 0 is the untouched model.
            name: The row.
            model: The model after the stage.
            fingerprint: Hashes of its weights and tokenizer.
            batches: Where finished batches are kept until the stage counts.
        """
        results = self._evaluator.evaluate(model, self._progress, fingerprint, batches)
        folder = stage_folder(index, name)
        for column, result in results.items():
            self._write_cell(f"{folder}/eval/{column}", result)
            self.matrix.set(name, column, cell_of(result))
        # A stage's row lies in the stage itself, so that the matrix can always be put together again.
        cells = {column: asdict(self.matrix.cell(name, column)) for column in results}
        self._store.write_json(f"{folder}/{_CELLS}", cells)
        cost = evaluation_cost(results.values(), model.parameter_count())
        self._store.write_json(f"{folder}/{EVALUATION_COST}", cost)
        self._flag_collapse(index, name, {column: shares(result.samples) for column, result in results.items()})

    def within(self, index: int, name: str, model: ChatModel, step: int) -> None:
        """Measure a row in the middle of its stage; it enters no matrix."""
        # The bar on show counts optimizer steps, not columns.
        results = self._evaluator.evaluate(model, SilentProgress(quiet=True))
        for column, result in results.items():
            self._write_cell(f"{stage_folder(index, name)}/{WITHIN}/step-{step:06d}/{column}", result)

    def read(self, index: int, name: str) -> None:
        """Take a finished row over from its stage."""
        for column, cell in self._store.read_json(f"{stage_folder(index, name)}/{_CELLS}").items():
            self.matrix.set(name, column, Cell(**cell))

    def responses(self, index: int) -> Responses:
        """The stored answers of a row by column, by its place in the run."""
        name = (BASE_ROW, *self._learned)[index]
        folder = f"{stage_folder(index, name)}/eval"
        return {c.name: self._store.read_jsonl(f"{folder}/{c.name}/samples.jsonl") for c in self.matrix.columns}

    def diverged(self, index: int, why: str) -> None:
        """Give the row of a stage and all after it cells without values but with the reason."""
        names = list(self._learned)
        for later in names[index:]:
            self.matrix.add_row(later)
        for row in names[index - 1 :]:
            for column in self.matrix.columns:
                self.matrix.set(row, column.name, Cell(None, f"diverged in stage {names[index - 1]}: {why}"))

    def _flag_collapse(self, index: int, name: str, now: Mapping[str, dict[str, float]]) -> None:
        signs: list[str] = []
        if index:
            before = self._store.read_json(f"{stage_folder(0, BASE_ROW)}/{COLLAPSE}")["shares"]
            signs = signs_of_collapse(now, before, self._learned[name])
        self._store.write_json(f"{stage_folder(index, name)}/{COLLAPSE}", {"shares": now, "signs": signs})
        for sign in signs:
            self._store.event("collapse", stage=name, sign=sign)
            self._progress.note(f"{name}: {sign}")

    def _write_cell(self, folder: str, result: TaskResult) -> None:
        self._store.write_json(f"{folder}/results.json", result.results_json())
        self._store.write_jsonl(f"{folder}/samples.jsonl", result.samples)
