"""What the machine refuses, as the libraries really say it: memory and disk, never a fault of the program."""

from __future__ import annotations

import errno
import os
import re
import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from cl_bench.harness.cli_errors import of_the_system
from cl_bench.harness.errors import ClBenchError, writing
from cl_bench.harness.files import append_line, write_bytes
from cl_bench.harness.run_errors import out_of_memory, run_error
from tests.compare.small_runs import spec_of


def raised(call: Callable[[], object]) -> Exception:
    with pytest.raises(Exception) as caught:  # noqa: PT011
        call()
    return caught.value


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Files end at that many bytes, as on a disk that is full there; nothing may be printed meanwhile."""
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def system(number: int) -> None:
    raise OSError(number, "refused")


@pytest.mark.parametrize(
    "call",
    [
        lambda: torch.empty(10**15),
        lambda: bytearray(2**62),
        lambda: system(errno.ENOMEM),
    ],
    ids=["torch on the machine", "python", "system"],
)
def test_memory_that_runs_out_is_told_with_the_sizes_in_use(call: Callable[[], object]) -> None:
    error = raised(call)
    assert out_of_memory(error)
    told = run_error(error, spec_of(), begun=True, resume="")
    assert isinstance(told, ClBenchError)
    assert told.what.startswith("out of memory") and "micro-batch" in told.why and "micro_batch_size" in told.hint


def test_other_faults_are_no_want_of_memory() -> None:
    for error in (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), OSError(errno.ENOSPC, "full"), KeyError()):
        assert not out_of_memory(error)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_disk_that_is_full_is_told_with_what_it_has_left_and_how_to_go_on(number: int, tmp_path: Path) -> None:
    error = OSError(number, os.strerror(number), str(tmp_path / "gone" / "rows.jsonl"))
    told = run_error(error, spec_of(), begun=True, resume="cl-bench resume HERE")
    assert isinstance(told, ClBenchError) and str(tmp_path / "gone" / "rows.jsonl") in told.what
    assert re.fullmatch(rf"{os.strerror(number)}; [\d.]+ [kMG]?B of [\d.]+ [kMG]?B left", told.why)
    assert told.hint.endswith("; then cl-bench resume HERE")


def test_a_place_that_cannot_be_looked_at_is_told_without_its_room() -> None:
    told = of_the_system(OSError(errno.ENOSPC, "full", "/" + "x" * 300))
    assert told is not None and told.why == "full"


@pytest.mark.parametrize("size", [64, 700, 100_000])
@pytest.mark.parametrize("save", [torch.save, save_file])
def test_a_disk_that_is_full_within_a_file_of_weights(
    save: Callable[[object, Path], None], size: int, tmp_path: Path
) -> None:
    def write() -> None:
        with writing(tmp_path / "weights"):
            save({"a": torch.zeros(100_000)}, tmp_path / "weights")

    with largest_file(size):
        error = raised(write)
    told = of_the_system(error)
    assert told is not None and "free some space" in told.hint
    assert told.what == f"cannot write {tmp_path / 'weights'}"


def test_a_write_that_fails_names_its_file(tmp_path: Path) -> None:
    full, path = raised(lambda: append_line(Path("/dev/full"), {})), tmp_path / "rows.jsonl"
    with largest_file(64):
        long = raised(lambda: write_bytes(path, bytes(100)))
    for error, named in ((full, "/dev/full"), (long, str(path))):
        told = of_the_system(error)
        assert told is not None and told.what == f"cannot read or write {named}"
    assert not list(tmp_path.iterdir())
