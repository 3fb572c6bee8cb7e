"""Recovery probes on a finished row of a run: its checkpoint, its data, and the untouched model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cl_bench.harness.errors import StoreError, UnknownNameError, UsageError
from cl_bench.harness.files import plain
from cl_bench.harness.measure.items.ledger import Reader, column_ledger, last_row, never_right, reader
from cl_bench.harness.measure.items.probed import ProbedColumn, ProbeInput
from cl_bench.harness.measure.items.recovery import ColumnRecovery, probes, recover_column
from cl_bench.harness.measure.items.recovery_file import evidence
from cl_bench.harness.measure.items.relearning import Relearning
from cl_bench.harness.measure.matrix import BASE_ROW
from cl_bench.harness.planned_stages import learned_columns
from cl_bench.harness.run_directory import RunView, stage_weights, verify_stage
from cl_bench.harness.spec import Execution, RunSpec, data_options

if TYPE_CHECKING:
    from cl_bench.harness.measure.run_evaluation import TaskColumn
    from cl_bench.harness.models.chat_model import ChatModel
    from cl_bench.harness.registry import Registry
    from cl_bench.harness.run_models import RunModels
    from cl_bench.methods.base import Progress


def chosen_row(view: RunView, row: str | None) -> str:
    """The row to probe; the last finished one where none is named.

    Raises:
        UnknownNameError: No such finished stage.
        UsageError: The untouched model has forgotten nothing.
        StoreError: The stage's weights are gone or damaged.
    """
    row = row or last_row(view)
    if row == BASE_ROW:
        raise UsageError(
            "recovery is measured after a stage", f"{view.directory} has no finished one, or base was named"
        )
    if row not in view.stages:
        raise UnknownNameError("row", row, [name for name in view.stages if name != BASE_ROW])
    folder = view.stages[row]
    stage_weights(folder, row)
    verify_stage(folder, weights=True)
    return row


def relearning_settings(spec: RunSpec) -> Relearning:
    """How copies are trained: with the learning rate of the run's recipe, the same for every method."""
    from cl_bench.harness.profile_files import load_recipe
    from cl_bench.methods.training.settings import TrainingSettings

    try:
        rate = load_recipe(spec.recipe).defaults.get("learning_rate")
    except UsageError:  # a recipe file of the user's own that is no longer there
        rate = None
    if rate is None:
        rate = TrainingSettings.model_fields["learning_rate"].default
    return Relearning(learning_rate=float(rate), micro_batch_size=spec.precision.micro_batch_size)


class RunRecovery:
    """Probes columns of one row; models and data are loaded once."""

    def __init__(self, view: RunView, row: str, models: RunModels, execution: Execution, registry: Registry) -> None:
        """Prepare.

        Args:
            view: The run.
            row: The row (``chosen_row``).
            models: Loads the run's models.
            execution: Where its data are, and whether programs may be run.
            registry: Its tasks.
        """
        self._view, self._row, self._models = view, row, models
        self._options = data_options(view.spec.data, execution)
        self._registry = registry
        self._read: Reader = reader(view)
        self.settings = relearning_settings(view.spec)
        self._loaded: dict[str, ChatModel] = {}
        self._tasks: list[TaskColumn] | None = None

    def columns(self, names: Sequence[str]) -> list[str]:
        """The named columns; all of the matrix where none is named. Raises ``UnknownNameError``."""
        known = [column.name for column in self._view.matrix.columns]
        for name in names:
            if name not in known:
                raise UnknownNameError("column", name, known)
        return list(dict.fromkeys(names)) or known

    def recover(self, columns: Sequence[str], progress: Progress) -> list[ColumnRecovery]:
        """Probe columns one after another.

        Raises:
            DataError: The data are not those that the run evaluated.
        """
        found = []
        for name in columns:
            found.append(self._column(name))
            progress.advance()
        return found

    def document(self, found: Sequence[ColumnRecovery]) -> dict[str, Any]:
        """The row's part of ``recovery.json``."""
        return {
            "before": BASE_ROW,
            "evidence": evidence(self._view, self._row),
            "settings": plain(self.settings),
            "columns": {column.column: column.to_json() for column in found},
        }

    def _column(self, name: str) -> ColumnRecovery:
        ledger = column_ledger(self._view, name, BASE_ROW, self._row, self._read)
        if ledger.reason is not None:
            return ColumnRecovery(name, ledger.reason)
        forgotten = {item.id: item.cause for item in ledger.of("forgotten") if item.cause is not None}
        if not forgotten:
            return ColumnRecovery(name, "nothing was forgotten")
        column, samples = self._probed(name), self._read(BASE_ROW, name)
        column.check(self._model(), samples)

        def given(ids: Sequence[str]) -> ProbeInput:
            return ProbeInput(column, self._model(), self._base, samples, ids)

        return recover_column(
            given, name, forgotten, never_right(self._view, ledger, self._read), probes(self.settings)
        )

    def _probed(self, name: str) -> ProbedColumn:
        from cl_bench.harness.measure.items.benchmark_column import probed_benchmark
        from cl_bench.harness.measure.items.task_column import probed_task

        found = probed_task(self._view.spec, self._task_columns(), name)
        column = found or probed_benchmark(self._view.spec, self._options, name)
        if column is None:
            raise StoreError(f"column {name} of {self._view.directory} comes from no task and no benchmark of its spec")
        return column

    def _task_columns(self) -> list[TaskColumn]:
        from cl_bench.harness.measure.run_evaluation import task_columns

        if self._tasks is None:
            tasks = {task.name: self._registry.task(task.name, self._options) for task in self._view.spec.tasks}
            self._tasks = list(task_columns(self._view.spec, tasks))
        return self._tasks

    def _model(self) -> ChatModel:
        if self._row not in self._loaded:
            index = 1 + list(learned_columns(self._view.spec)).index(self._row)
            self._loaded[self._row] = self._models.after_stage(index, frozen=True)
        return self._loaded[self._row]

    def _base(self) -> ChatModel:
        if BASE_ROW not in self._loaded:
            self._loaded[BASE_ROW] = self._models.after_stage(0, frozen=True)
        return self._loaded[BASE_ROW]
