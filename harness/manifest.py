"""The manifest of a run: which machine, which versions, how long, how much memory. Nothing here enters the hash."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cl_bench.harness.distributed import world_size
from cl_bench.harness.errors import StoreError
from cl_bench.harness.files import plain, read_object
from cl_bench.harness.redaction import redacted
from cl_bench.harness.run_directory import MANIFEST
from cl_bench.harness.spec import Execution
from cl_bench.harness.store import State, Store
from cl_bench.tasks.code_execution import available_isolation

if TYPE_CHECKING:
    from cl_bench.harness.models.chat_model import ChatModel

MANIFEST_VERSION = 1
PACKAGES = (
    "cl-bench", "torch", "transformers", "trl", "peft", "datasets", "lm_eval", "evaluate", "accelerate", "safetensors",
    "tokenizers", "numpy", "scipy", "pydantic", "math-verify", "nltk",
)  # fmt: skip
"""Packages whose versions can change numbers."""


class ManifestRecorder:
    """Records one process's work on a run; a resumed run has one session per process."""

    def __init__(self, store: Store, execution: Execution) -> None:
        """Begin a session and write it, so that a killed process leaves its traces too.

        Raises:
            StoreError: The manifest of earlier sessions is damaged.
        """
        self._store = store
        earlier = read_object(store.path(MANIFEST)).get("sessions") if store.exists(MANIFEST) else []
        if not isinstance(earlier, list):
            what = f"{store.path(MANIFEST)} is damaged"
            raise StoreError(what, "it lists no sessions", "remove the file and resume the run")
        self._sessions: list[dict[str, Any]] = list(earlier)
        self._started = time.monotonic()
        self._open: dict[str, float] = {}
        self._lock = threading.Lock()
        self._session: dict[str, Any] = {
            "started": _now(),
            "ended": None,
            "state": "running",
            "seconds": 0.0,
            "phase_seconds": {},
            "peak_memory_bytes": 0,
            "process": os.getpid(),
            "command": [redacted(part) for part in sys.argv],
            "execution": plain(_placed(execution)),
            "environment": environment(),
            "prompts": None,
            "code_isolation": asdict(available_isolation()) if execution.allow_code else None,
        }
        self._sessions.append(self._session)
        self._write()

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the time spent inside to the phase's wall seconds, and write them: a report or a kill may follow."""
        before = self._session["phase_seconds"].get(name, 0.0)
        with self._lock:
            self._open[name] = time.monotonic() - before
        try:
            yield
        except BaseException:
            with suppress(OSError, StoreError):  # what stopped the phase is to be reported, and not this
                self._close(name)
            raise
        self._close(name)

    def _close(self, name: str) -> None:
        with self._lock:
            try:
                self._write()
            finally:
                self._open.pop(name, None)

    def beat(self) -> None:
        """Write the time spent so far, so that a process that is killed leaves it."""
        with self._lock:
            self._write()

    def spent(self, phase: str) -> float:
        """Wall seconds of a phase over all processes that worked on the run."""
        seconds: list[float] = [session["phase_seconds"].get(phase, 0.0) for session in self._sessions]
        return round(sum(seconds), 3)

    def prompts(self, model: ChatModel) -> None:
        """Record what renders prompts: hash of the chat template, reasoning switch, start token, end tokens."""
        template = str(model.tokenizer.chat_template)
        self._session["prompts"] = {
            "chat_template_sha256": hashlib.sha256(template.encode()).hexdigest(),
            "thinking": model.thinking,
            "start_token": model.tokenizer.bos_token if model.begins_prompts else None,
            "end_ids": sorted(model.end_ids),
        }

    def end(self, state: State) -> None:
        """Close the session and write it."""
        with self._lock:
            self._session["ended"], self._session["state"] = _now(), state
            self._write()

    def _write(self) -> None:
        now = time.monotonic()
        self._session["seconds"] = round(now - self._started, 3)
        self._session["phase_seconds"] |= {name: round(now - begun, 3) for name, begun in self._open.items()}
        self._session["peak_memory_bytes"] = peak_memory_bytes()
        self._session["environment"]["threads"] = threads()  # torch may be loaded later than the session begins
        self._store.write_manifest({"schema_version": MANIFEST_VERSION, "sessions": self._sessions})


def _placed(execution: Execution) -> Execution:
    """The execution with places that are found from any folder."""
    root, ids = execution.data_root, execution.gold_ids
    return replace(
        execution,
        data_root=root.resolve() if root is not None else None,
        gold_ids=ids.resolve() if ids is not None else None,
        include_paths=tuple(path.resolve() for path in execution.include_paths),
    )


def environment() -> dict[str, Any]:
    """Python, platform, package versions, threads and commit: what may explain a difference between machines."""
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        "threads": threads(),
        "world_size": world_size(),
        "packages": package_versions(),
        "git_commit": git_commit(),
        "git_diff_sha256": git_diff_hash(),
        "hardware": hardware(),
    }


def hardware() -> dict[str, Any]:
    """Processor, memory and accelerators of this machine; names as the system gives them."""
    import psutil

    torch: Any = sys.modules.get("torch")
    there = torch is not None and torch.cuda.is_available()
    devices = [torch.cuda.get_device_name(place) for place in range(torch.cuda.device_count())] if there else []
    return {
        "processor": _processor(),
        "cores": psutil.cpu_count(logical=False),
        "memory_bytes": int(psutil.virtual_memory().total),
        "accelerators": devices,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def git_diff_hash() -> str | None:
    """SHA-256 of what is changed against the commit in the checkout this package runs from; None without changes."""
    folder = Path(__file__).resolve().parent
    try:
        tracked = _git(folder, "ls-files", "--error-unmatch", Path(__file__).name)
        changes = _git(folder, "diff", "HEAD") if tracked else ""
    except (OSError, subprocess.SubprocessError):
        return None
    return hashlib.sha256(changes.encode()).hexdigest() if changes else None


def package_versions() -> dict[str, str | None]:
    """Installed versions of ``PACKAGES``; None where one is not installed."""
    versions: dict[str, str | None] = {}
    for name in PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = None
    return versions


def threads() -> int | None:
    """Threads of torch's CPU kernels, or None where torch is not loaded."""
    torch = sys.modules.get("torch")
    return int(torch.get_num_threads()) if torch is not None else None


def git_commit() -> str | None:
    """Commit of the source checkout this package runs from, with ``+changes`` for a changed one; None elsewhere."""
    folder = Path(__file__).resolve().parent
    try:
        tracked = _git(folder, "ls-files", "--error-unmatch", Path(__file__).name)
        commit = _git(folder, "rev-parse", "HEAD") if tracked else ""
        changed = _git(folder, "status", "--porcelain", "--untracked-files=no") if commit else ""
    except (OSError, subprocess.SubprocessError):
        return None
    return f"{commit}{'+changes' if changed else ''}" or None


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()


def peak_memory_bytes() -> int:
    """Largest resident set of this process so far, in bytes; 0 where the system does not tell."""
    try:
        import resource
    except ImportError:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
