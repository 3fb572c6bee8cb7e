"""The models of a run, always from its verified files: the untouched one by fingerprint, later ones by checkpoint."""

from __future__ import annotations

from pathlib import Path

from cl_bench.harness.errors import writing
from cl_bench.harness.models.by_name import verified_folder
from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.harness.models.fingerprint import tokenizer_fingerprint, weights_fingerprint
from cl_bench.harness.planned_stages import planned_stages
from cl_bench.harness.run_directory import stage_weights
from cl_bench.harness.store import Store


class RunModels:
    """Loads and saves the student's checkpoints."""

    def __init__(self, store: Store, device: str) -> None:
        """Use a run's directory and a torch device."""
        self._store, self._device = store, device
        self._fingerprints: dict[int, tuple[str, str]] = {}

    def base(self) -> ChatModel:
        """The untouched model, from its own files.

        Raises:
            ModelError: The files are not the ones that the run was planned with.
        """
        spec = self._store.spec.model
        return self._loaded(verified_folder(spec))

    def fingerprint(self, index: int) -> tuple[str, str]:
        """Hashes of weights and tokenizer of the model as it was after a stage (0: untouched), from its files."""
        if index not in self._fingerprints:
            folder = verified_folder(self._store.spec.model) if index == 0 else self._checkpoint(index)
            self._fingerprints[index] = weights_fingerprint(folder), tokenizer_fingerprint(folder)
        return self._fingerprints[index]

    def after_stage(self, index: int, frozen: bool = False) -> ChatModel:
        """A new copy of the model as it was after a stage (0: untouched).

        Raises:
            StoreError: The stage's checkpoint is not there.
        """
        from cl_bench.harness.models.load import freeze

        model = self.base() if index == 0 else self._loaded(self._checkpoint(index))
        return freeze(model) if frozen else model

    def _checkpoint(self, index: int) -> Path:
        name = planned_stages(self._store.spec)[index - 1][0]
        return stage_weights(self._store.stage_dir(index, name), name)

    def _loaded(self, folder: Path) -> ChatModel:
        from cl_bench.harness.models.load import load_folder

        spec = self._store.spec.model
        model = load_folder(folder, spec.name, self._device)
        model.thinking = spec.thinking
        return model

    def save(self, model: ChatModel, folder: Path) -> None:
        """Save weights (fp32 safetensors), configuration and tokenizer."""
        with writing(folder):
            model.model.save_pretrained(folder)
            model.tokenizer.save_pretrained(folder)
