"""A run directory held by one process at a time; the lock goes with the process."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from cl_bench.harness.errors import StoreError
from cl_bench.harness.files import naming

_TRIES, _WAIT_SECONDS = 20, 0.02


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold a lock file, which names the process, until the block ends.

    Raises:
        StoreError: Another process on this host holds it, or the file system has no locks.
    """
    # A link put here since the directory was looked through is not followed.
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644), "r+") as stream:
        if not _taken(stream, path):
            stream.seek(0)
            raise StoreError(
                f"another process works on {path.parent}",
                f"process {stream.read().strip() or 'unknown'} holds its lock",
                "wait for it, or stop it",
            )
        with naming(path):
            stream.truncate(0)
            stream.write(str(os.getpid()))
            stream.flush()
        yield


def is_held(path: Path) -> bool:
    """Whether a process on this host holds a lock file; one that cannot be looked at counts as held."""
    import fcntl

    try:
        with path.open("rb") as stream:
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def _taken(stream: TextIO, path: Path) -> bool:
    import fcntl

    for _ in range(_TRIES):
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            # Who only looks whether somebody works on the run holds the lock for a moment too.
            time.sleep(_WAIT_SECONDS)
        except OSError as error:
            what, why = f"{path.parent} cannot be locked", f"its file system says: {error.strerror}"
            raise StoreError(what, why, "choose an --output on a file system with flock") from error
        else:
            return True
    return False
