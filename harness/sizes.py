"""Sizes in words, and the room that a disk has left."""

from __future__ import annotations

import shutil
from pathlib import Path


def size_text(count: int) -> str:
    """Bytes in the unit that suits them: ``1.5 GB``."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            return f"{count / scale:.1f} {unit}"
    return f"{count} B"


def room_left(place: Path) -> str:
    """What the disk of a place, or of the nearest folder around it that is there, has left; empty where unknown."""
    try:
        around = next(path for path in (place, *place.absolute().parents) if path.exists())
        disk = shutil.disk_usage(around)
    except (OSError, StopIteration):
        return ""
    return f"{size_text(disk.free)} of {size_text(disk.total)} left"
