"""How much memory this process has and can still have."""

from __future__ import annotations

from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")


def resident_bytes() -> int:
    """Resident set of this process, in bytes."""
    import psutil

    return int(psutil.Process().memory_info().rss)


def available_bytes(cgroup: Path = _CGROUP) -> int:
    """Memory that can still be had without swapping, in bytes: the machine's, or less where a container has a limit.

    Args:
        cgroup: Folder of the container's limits (version 2).
    """
    import psutil

    available = int(psutil.virtual_memory().available)
    limit, used = _number(cgroup / "memory.max"), _number(cgroup / "memory.current")
    if limit is None or used is None:
        return available
    return max(0, min(available, limit - used + _reclaimable(cgroup / "memory.stat")))


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):  # no such file, or "max"
        return None


def _reclaimable(path: Path) -> int:
    """File pages that the kernel gives back under pressure."""
    try:
        lines = path.read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("inactive_file "))
