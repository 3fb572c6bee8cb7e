"""A method that moves the weights without training, and a run of two stages with it that takes a moment."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.harness.progress import SilentProgress
from cl_bench.harness.registry import Registry
from cl_bench.harness.request import Request
from cl_bench.harness.resolve import resolve
from cl_bench.harness.run_directory import run_path
from cl_bench.harness.runner import RunResult, run_one
from cl_bench.harness.spec import Execution, RunSpec
from tests.support import tiny_model

_METHOD = '''
import torch

from cl_bench.methods.base import Adaptation, Fidelity, Method, MethodSettings


class Stub(Method):
    """Moves the weights by seeded noise."""

    name = "stub"
    needs = frozenset()
    fidelity = Fidelity.RECONSTRUCTED
    checked = "nothing"
    family = "supervised"
    Settings = MethodSettings

    def __init__(self, settings):
        super().__init__(settings)
        self.stages = 0

    def adapt(self, student, stage, context):
        with torch.no_grad():
            for parameter in student.model.parameters():
                parameter.add_(1e-3 * torch.randn_like(parameter))
        for example in stage.examples:
            context.ledger.append({"id": example.id, "text": f"row of {stage.name}"})
        self.stages += 1
        return Adaptation(steps=1, trained_tokens=1)

    def state_dict(self):
        return {"stages": self.stages}

    def load_state_dict(self, state):
        self.stages = state["stages"]
'''


class StubRun:
    """A specification and where it runs."""

    def __init__(self, folder: Path, chat: ChatModel | None = None) -> None:
        """Write model and method below a folder."""
        chat = chat or tiny_model(0)
        chat.model.save_pretrained(folder / "tiny")
        chat.tokenizer.save_pretrained(folder / "tiny")
        (folder / "own" / "methods").mkdir(parents=True)
        (folder / "own" / "methods" / "stub.py").write_text(_METHOD)
        self._execution = Execution(include_paths=(folder / "own",), threads=1)
        self._registry = Registry(self._execution.include_paths)
        request = Request(
            method="stub",
            sequence="science",
            profile="lab",
            model=str(folder / "tiny"),
            limit=4,
            suite="none",
            settings={"evaluation": {"rows": 2, "ood_rows": 0}},
        )
        (spec,) = resolve(request, self._execution, self._registry, lambda _: None)
        short = spec.sequence.model_copy(update={"stages": spec.sequence.stages[:2]})
        self.spec: RunSpec = spec.model_copy(update={"sequence": short, "tasks": spec.tasks[:2]})

    def directory(self, output: Path) -> Path:
        """The run directory below an output folder."""
        return run_path(output, self.spec)

    def run(self, output: Path) -> RunResult:
        """Run, or go on."""
        return run_one(self.spec, replace(self._execution, output=output), self._registry, SilentProgress(quiet=True))
