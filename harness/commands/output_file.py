"""The file that a command was told to write: refused before the work where it cannot be, and never one that is read."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from cl_bench.harness.errors import ClBenchError, UsageError
from cl_bench.harness.files import temporary_name, write_bytes


def check_output(
    path: Path, read: Iterable[Path] = (), holding: Iterable[Path] = (), fixed: Path | None = None
) -> None:
    """Check that a file can be written and is none of a command's inputs.

    Args:
        path: The file.
        read: Files that the command reads.
        holding: Folders whose files it may read; none that is there is overwritten.
        fixed: A folder into which nothing is written, or None.

    Raises:
        UsageError: It must not or cannot be written; nothing was changed.
    """
    place = path.resolve()
    if any(place == other.resolve() for other in read):
        raise UsageError(f"--output {path} is a file that is read", hint="name another file")
    if fixed is not None and place.is_relative_to(fixed.resolve()):
        raise UsageError(f"--output {path} is in {fixed}, in which nothing is changed", hint="name a file elsewhere")
    if path.exists() and any(place.is_relative_to(folder.resolve()) for folder in holding):
        raise UsageError(f"--output {path} would overwrite a file among the data", hint="name a file elsewhere")
    if path.exists() and not path.is_file():
        raise UsageError(f"--output {path} is no regular file", "it is a folder, a pipe or a device", "name a file")
    trial = temporary_name(path)
    try:
        trial.touch(exist_ok=False)
        trial.unlink()
    except OSError as error:
        hint = "make the folder, or name a file elsewhere" if not path.parent.is_dir() else "name a file elsewhere"
        raise UsageError(f"--output {path} cannot be written", error.strerror or str(error), hint) from error


def write_output(path: Path, text: str) -> None:
    """Write the file, whole or not at all; halves of surrogate pairs become the escapes that JSON has for them.

    Raises:
        ClBenchError: The system refused, for example because the disk is full.
    """
    try:
        write_bytes(path, text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise ClBenchError(f"--output {path} cannot be written", error.strerror or str(error)) from error
