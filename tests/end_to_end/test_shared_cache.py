"""A second identical run in another folder computes nothing that the first one left in the cache."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file, save_file

from cl_bench.harness.cache import Cache
from cl_bench.harness.generation.local import LocalSampler
from cl_bench.harness.measure import lm_eval_model
from cl_bench.harness.measure.loglikelihood import loglikelihoods
from cl_bench.harness.measure.run_evaluation import RunEvaluator
from cl_bench.harness.measure.task_result import TaskResult
from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.harness.models.fingerprint import tokenizer_fingerprint, weights_fingerprint
from cl_bench.harness.models.load import load_folder
from cl_bench.harness.progress import SilentProgress
from cl_bench.harness.registry import Registry
from cl_bench.harness.run_directory import load_run
from cl_bench.tasks.sources.base import DataOptions
from tests.end_to_end.compare import only_run, results_of
from tests.end_to_end.conftest import SMALL, call

pytestmark = pytest.mark.end_to_end
TASKS = ("chemistry", "biology", "materials", "physics")
COMMAND = ["run", "--method", "sft", "--sequence", "science", *SMALL]


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a cache and the run that filled it."""
    folder = tmp_path_factory.mktemp("first")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CL_BENCH_CACHE", str(folder / "cache"))
        assert call(*COMMAND, "--output", "first", cwd=folder).returncode == 0
    return folder


@pytest.fixture()
def decoded(monkeypatch: pytest.MonkeyPatch, first: Path) -> list[int]:
    """Numbers of prompts of every call that decodes answers; the cache is the first run's."""
    monkeypatch.setenv("CL_BENCH_CACHE", str(first / "cache"))
    found: list[int] = []
    real = LocalSampler.generate

    def counted(self: LocalSampler, prompts: Sequence[Any], *rest: Any, **named: Any) -> Any:
        found.append(len(prompts))
        return real(self, prompts, *rest, **named)

    monkeypatch.setattr(LocalSampler, "generate", counted)
    return found


@pytest.fixture()
def scored(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Numbers of requests of every call that computes log-likelihoods."""
    found: list[int] = []
    real = loglikelihoods

    def counted(model: ChatModel, requests: Sequence[Any], *rest: Any, **named: Any) -> Any:
        found.append(len(requests))
        return real(model, requests, *rest, **named)

    monkeypatch.setattr(lm_eval_model, "loglikelihoods", counted)
    return found


def test_a_second_identical_run_generates_and_evaluates_nothing(
    first: Path, decoded: list[int], scored: list[int], tmp_path: Path
) -> None:
    done = call(*COMMAND, "--output", "second", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (decoded, scored) == ([], [])
    assert results_of(only_run(tmp_path / "second")) == results_of(only_run(first / "first"))


def test_one_changed_tensor_recomputes_exactly_its_cells(
    first: Path, decoded: list[int], scored: list[int], tmp_path: Path
) -> None:
    directory, changed = only_run(first / "first"), tmp_path / "changed"
    checkpoints = [path / "checkpoint" for path in sorted(directory.glob("stages/0[1-4]-*"))]
    shutil.copytree(checkpoints[1], changed)
    before = rows_of(directory, changed)
    assert (decoded, scored) == ([], [])
    nudge(changed / "model.safetensors")
    after = rows_of(directory, changed)
    assert before.keys() == after.keys()
    generated = sum(len(result.samples) for name, result in after.items() if name in TASKS)
    assert sum(decoded) >= generated, "every row of the tasks is decoded again"
    assert scored, "and the benchmarks of the suite are scored again"
    decoded.clear()
    scored.clear()
    for folder in [*checkpoints, changed]:
        rows_of(directory, folder)
    assert (decoded, scored) == ([], [])


def nudge(weights: Path) -> None:
    """Change one number of one tensor."""
    tensors = load_file(weights)
    name = sorted(tensors)[0]
    tensors[name].view(-1)[0] += 1e-3
    save_file(tensors, weights, metadata={"format": "pt"})


def rows_of(directory: Path, checkpoint: Path) -> dict[str, TaskResult]:
    """A checkpoint's results on the columns of a run."""
    spec = load_run(directory).spec
    options = DataOptions(source="lab")
    registry = Registry()
    tasks = {task.name: registry.task(task.name, options) for task in spec.tasks}
    evaluator = RunEvaluator(spec, tasks, options, Cache())
    model = load_folder(checkpoint, "checked", "cpu")
    fingerprint = weights_fingerprint(checkpoint), tokenizer_fingerprint(checkpoint)
    return evaluator.evaluate(model, SilentProgress(quiet=True), fingerprint)
