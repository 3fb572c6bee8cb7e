"""Where and how commands work: the execution from options, the environment of the libraries, output to stdout."""

from __future__ import annotations

import json as json_module
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any, TextIO, cast

from cl_bench.harness.errors import UsageError
from cl_bench.harness.escaping import VisibleStream
from cl_bench.harness.spec import Execution

# What the libraries read when they are imported; a value that the user has set stays.
_QUIET = {
    "TOKENIZERS_PARALLELISM": "false",
    "TRANSFORMERS_VERBOSITY": "error",
    "DATASETS_VERBOSITY": "error",
    "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "TRL_EXPERIMENTAL_SILENCE": "1",
}
_OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_EVALUATE_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}


def execution_of(
    *,
    output: Path = Path("runs"),
    data_root: Path | None = None,
    gold_ids: Path | None = None,
    include_paths: Sequence[Path] = (),
    device: str = "cpu",
    threads: int | None = None,
    offline: bool = False,
    progress: bool = True,
    checkpoint_every: str = "60s",
    keep_checkpoints: str = "all",
    allow_code: bool | None = None,
    branch_from: Path | None = None,
) -> Execution:
    """Check the options and build an ``Execution``.

    Raises:
        UsageError: A folder is absent, or a value is of another form.
    """
    if data_root is not None and not data_root.is_dir():
        raise UsageError(f"--data-root {data_root} is not a folder")
    if output.exists() and not output.is_dir():
        raise UsageError(f"--output {output} is not a folder")
    if gold_ids is not None and not gold_ids.is_file():
        raise UsageError(f"--gold-ids {gold_ids} is not a file")
    if keep_checkpoints not in ("all", "last", "none"):
        raise UsageError(f"--keep-checkpoints {keep_checkpoints}: expected all, last or none")
    seconds, steps = _interval(checkpoint_every)
    return Execution(
        output=output,
        data_root=data_root,
        gold_ids=gold_ids,
        include_paths=tuple(include_paths),
        device=device,
        threads=threads,
        offline=offline,
        progress=progress,
        checkpoint_every_seconds=seconds,
        checkpoint_every_steps=steps,
        keep_checkpoints=cast(Any, keep_checkpoints),
        allow_code=allow_code,
        branch_from=branch_from.resolve() if branch_from is not None else None,
    )


@contextmanager
def talking_on_stderr() -> Iterator[None]:
    """Libraries and remarks print on stderr, with what they quote from data made visible; stdout is for results."""
    with redirect_stdout(cast(TextIO, VisibleStream(sys.stderr))):
        yield


def prepare_libraries(execution: Execution) -> None:
    """Set the libraries' environment variables; call before any of them is imported."""
    wanted = _QUIET | (_OFFLINE if execution.offline else {})
    for name, value in wanted.items():
        os.environ.setdefault(name, value)
    if execution.offline:
        os.environ.update(_OFFLINE)
    if execution.threads is not None:
        os.environ["OMP_NUM_THREADS"] = str(execution.threads)


def check_device(device: str) -> None:
    """Check that tensors can be put on a device, before anything is read or written.

    Raises:
        UsageError: torch does not know it, or it is not there.
    """
    if device == "cpu":  # torch is imported late where nothing needs it early
        return
    import torch

    try:
        torch.zeros(1, device=device)
    except Exception as error:  # torch raises several kinds, by device
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UsageError(f"--device {device} cannot be used", why, "--device cpu works everywhere") from error


def print_json(content: Any) -> None:
    """The one line of ``--json``."""
    print(json_module.dumps(content, sort_keys=False, default=str), file=sys.stdout, flush=True)


def _interval(text: str) -> tuple[float | None, int | None]:
    if text == "never":
        return None, None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|seconds)?", text)
    if match:
        return float(match[1]), None
    match = re.fullmatch(r"(\d+)\s*steps?", text)
    if match and int(match[1]) > 0:
        return None, int(match[1])
    raise UsageError(f"--checkpoint-every {text}: cannot be read", hint="for example 60s, 200steps or never")
