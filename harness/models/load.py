"""Finding and loading models: the lab's, fetched ones, local folders and the hub. Weights are loaded to fp32."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cl_bench.harness.errors import ModelError, UnknownNameError
from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.harness.models.fingerprint import model_fingerprint

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True, slots=True)
class ResolvedModel:
    """A model found on disk.

    Attributes:
        name: Name for people and for the run directory.
        path: Folder with config, safetensors and tokenizer.
        fingerprint: Content hash (weights, configuration, tokenizer).
    """

    name: str
    path: Path
    fingerprint: str


def resolve_model(name: str, *, offline: bool = False) -> ResolvedModel:
    """Find a model by lab name, fetched name, folder or hub id, without loading its weights.

    Raises:
        UnknownNameError: A name that is neither a lab model, nor fetched, nor a folder, nor shaped like a hub id.
        ModelError: The folder or hub repository cannot be used.
    """
    from cl_bench.harness.models.fetch import FETCHABLE, fetched_path
    from cl_bench.harness.models.lab import LAB_MODELS, lab_path

    if name in LAB_MODELS:
        return _resolved(name, lab_path(name))
    if name in FETCHABLE:
        path = fetched_path(name)
        if path is None:
            raise ModelError(f"model {name} has not been fetched yet", hint=f"cl-bench models fetch {name}")
        return _resolved(name, path)
    folder = Path(name).expanduser()
    if folder.is_dir():
        return _resolved(folder.resolve().name, folder.resolve())
    if name.count("/") != 1 or name.startswith((".", "/", "~")):
        raise UnknownNameError("model", name, [*LAB_MODELS, *FETCHABLE])
    return _resolved(name.replace("/", "--"), _from_hub(name, offline))


def _resolved(name: str, path: Path) -> ResolvedModel:
    if not (path / "config.json").exists():
        raise ModelError(f"{path} is not a model folder", why="it holds no config.json", hint="name the folder itself")
    if not any(path.glob("*.safetensors")):
        raise ModelError(f"{path} holds no safetensors weights", hint="save the model with safe_serialization=True")
    return ResolvedModel(name, path, model_fingerprint(path))


def _from_hub(name: str, offline: bool) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    patterns = ["*.safetensors", "*.json", "*.txt", "*.jinja", "tokenizer.model"]
    try:
        return Path(snapshot_download(name, allow_patterns=patterns, local_files_only=offline))
    except (LocalEntryNotFoundError, HfHubHTTPError, OSError) as error:
        raise ModelError(
            f"cannot get {name} from the hub",
            why=str(error).splitlines()[0] if str(error) else type(error).__name__,
            hint="pass a local folder to --model, or drop --offline where the hub can be reached",
        ) from error


def load_tokenizer(path: Path) -> PreTrainedTokenizerBase:
    """The tokenizer of a model folder. Raises ``ModelError`` where it has no chat template or no end token."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(path, local_files_only=True, trust_remote_code=False)
    if tokenizer.chat_template is None:
        raise ModelError(
            f"the tokenizer of {path.name} has no chat template",
            why="prompts are rendered through it",
            hint="use the Instruct version of the model, or add chat_template.jinja to the folder",
        )
    if tokenizer.eos_token_id is None:
        raise ModelError(f"the tokenizer of {path.name} declares no end token", hint="set eos_token in its config")
    return tokenizer


def load_chat_model(resolved: ResolvedModel, device: str = "cpu") -> ChatModel:
    """Load weights to fp32 with their tokenizer, in evaluation mode."""
    return load_folder(resolved.path, resolved.name, device)


def load_folder(path: Path, name: str, device: str = "cpu", tokenizer_path: Path | None = None) -> ChatModel:
    """Load a model folder to fp32; the tokenizer may lie elsewhere (checkpoints hold weights and configuration)."""
    import torch
    from transformers import AutoModelForCausalLM

    loaded: Any = AutoModelForCausalLM.from_pretrained(
        path, dtype=torch.float32, local_files_only=True, trust_remote_code=False
    )
    model = loaded.to(device)
    model.eval()
    return ChatModel(model, load_tokenizer(tokenizer_path or path), name)


def freeze(model: ChatModel) -> ChatModel:
    """Take the gradients off a model's parameters and put it in evaluation mode; returns it."""
    model.model.requires_grad_(False)
    model.model.eval()
    return model
