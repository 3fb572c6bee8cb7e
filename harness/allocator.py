"""Memory allocation on a CPU: freed blocks are kept, so that each step does not fetch its memory anew."""

from __future__ import annotations

import ctypes
import platform

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3
"""Numbers of glibc's ``mallopt`` parameters (malloc.h)."""
_KEPT_BYTES = 1 << 30
_PAD_BYTES = 64 << 20
_LARGEST_MAPPED_BYTES = 32 << 20
"""The highest value that glibc accepts; larger blocks are still mapped and returned."""


def keep_freed_memory() -> bool:
    """Let glibc keep up to 1 GiB of freed memory instead of returning it block by block.

    Small models spend up to a tenth of their time on page faults otherwise: every activation is a new mapping that the
    kernel fills with zeros. Numbers do not change.

    Returns:
        Whether the settings were made; False with another C library, where nothing happens.
    """
    if platform.libc_ver()[0] != "glibc":
        return False
    libc = ctypes.CDLL(None)
    settings = ((_MMAP_THRESHOLD, _LARGEST_MAPPED_BYTES), (_TRIM_THRESHOLD, _KEPT_BYTES), (_TOP_PAD, _PAD_BYTES))
    return all([bool(libc.mallopt(name, value)) for name, value in settings])
