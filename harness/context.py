"""The context of one stage of a run: models, sampler, seeds, cache, checkpoints."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path

from cl_bench.harness.cache import Cache
from cl_bench.harness.errors import ModelError
from cl_bench.harness.files import content_hash
from cl_bench.harness.generation.base import Sampler
from cl_bench.harness.generation.batches import BatchLedger
from cl_bench.harness.models.by_name import verified_folder
from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.harness.models.fingerprint import memory_fingerprint
from cl_bench.harness.models.safetensors_header import stored_parameters
from cl_bench.harness.seeds import row_seed
from cl_bench.harness.spec import ModelSpec, RunSpec
from cl_bench.methods.base import Context, Modifier, Precision, Progress, StageCheckpoints
from cl_bench.methods.training.ledger import Ledger

BACKEND = "local"


def backend_version(device: str) -> str:
    """Versions of what computes, and on what kind of device, as they enter cache keys."""
    versions = [f"{name}={_version(name)}" for name in ("torch", "transformers")]
    return " ".join([*versions, platform.machine(), device.split(":")[0]])


@cache
def _version(package: str) -> str:
    return metadata.version(package)  # reads a file each time, and keys are many


def sampler_for(
    model: ChatModel, precision: Precision, batches: BatchLedger | None = None, weights: str | None = None
) -> Sampler:
    """The sampler of a run around a model.

    Args:
        model: The model.
        precision: Numeric formats of the run.
        batches: Where finished batches are kept, or None.
        weights: Hash of the model's weights, which stay as they are; None keeps nothing.
    """
    from cl_bench.harness.generation.local import LocalSampler
    from cl_bench.harness.models.precision import autocast_dtype

    kept = None
    if batches is not None and weights is not None:
        kept = batches.of(
            weights=weights,
            ends=sorted(model.end_ids),
            dtype=precision.generation,
            backend=BACKEND,
            backend_version=backend_version(str(model.model.device)),
        )
    return LocalSampler(model, autocast_dtype(precision.generation), kept)


class RunContext(Context):
    """What the runner offers a method during one stage."""

    def __init__(
        self,
        spec: RunSpec,
        stage: str,
        device: str,
        previous: Callable[[], ChatModel],
        original: Callable[[], ChatModel],
        checkpoints: StageCheckpoints,
        cache: Cache,
        progress: Progress,
        scratch: Path,
        modifiers: Sequence[Modifier],
        batches: BatchLedger | None = None,
        after_step: Callable[[int], None] | None = None,
    ) -> None:
        """Build for one stage.

        Args:
            spec: The run.
            stage: Row name of the stage; part of every row's seed.
            device: Torch device for the aligner.
            previous: Loads the checkpoint of the stage before.
            original: Loads the untouched model.
            checkpoints: Checkpoints within this stage.
            cache: The cache.
            progress: What the user sees.
            scratch: A folder that is removed after the stage.
            modifiers: The run's modifiers.
            batches: Where finished batches of fixed models are kept, or None.
            after_step: Called after every optimizer step.
        """
        self.seed, self.precision = spec.seed, spec.precision
        self.scratch, self.cache, self.progress = scratch, cache, progress
        self.checkpoints, self.modifiers, self.ledger = checkpoints, modifiers, Ledger()
        self.backend, self.backend_version = BACKEND, backend_version(device)
        self._spec, self._stage, self._device, self._batches = spec, stage, device, batches
        self._previous, self._original, self._after_step = previous, original, after_step
        self._aligner: ChatModel | None = None

    def aligner(self) -> ChatModel:
        """The run's aligner, loaded on first use and frozen."""
        from cl_bench.harness.models.load import freeze, load_folder

        if self._aligner is None:
            spec = self._aligner_spec()
            self._aligner = freeze(load_folder(verified_folder(spec), spec.name, self._device))
            self._aligner.thinking = spec.thinking
        return self._aligner

    def aligner_fingerprint(self) -> str:
        """Content hash of the aligner; loads nothing."""
        return self._aligner_spec().fingerprint

    def aligner_parameters(self) -> int:
        """Weights in the aligner's files; loads nothing."""
        return stored_parameters(verified_folder(self._aligner_spec()))

    def scorer_identity(self) -> str:
        """Identity of the run's tasks."""
        return content_hash([task.model_dump(mode="json") for task in self._spec.tasks])

    def original(self) -> ChatModel:
        """A frozen copy of the untouched model."""
        return self._original()

    def task_start(self) -> ChatModel:
        """A frozen copy of the checkpoint of the stage before."""
        return self._previous()

    def sampler(self, model: ChatModel, fixed: bool = False) -> Sampler:
        """The run's sampler around a model; with ``fixed`` its finished batches survive the process."""
        weights = memory_fingerprint(model.model) if fixed and self._batches is not None else None
        return sampler_for(model, self.precision, self._batches, weights)

    def row_seed(self, purpose: str, example_id: str, visit: int = 0, rollout: int = 0) -> int:
        """Seed of one sampled row's generator."""
        return row_seed(self.seed, self._stage, purpose, example_id, visit, rollout)

    def after_step(self, step: int) -> None:
        """Evaluate within the stage where the run asks for it."""
        if self._after_step is not None:
            self._after_step(step)

    def _aligner_spec(self) -> ModelSpec:
        if self._spec.aligner is None:
            raise ModelError("this run has no aligner", hint="name one with --aligner")
        return self._spec.aligner
