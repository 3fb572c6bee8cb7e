"""The world of processes: the only module that reads rank and world size."""

from __future__ import annotations

import os


def rank() -> int:
    """Number of this process among all; 0 without a launcher."""
    return int(os.environ.get("RANK", "0"))


def world_size() -> int:
    """Number of processes that work on this run; 1 without a launcher."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def is_main_process() -> bool:
    """Whether this process writes the run directory."""
    return rank() == 0
