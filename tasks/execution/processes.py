"""The processes below this one: found, weighed and ended through ``/proc``."""

from __future__ import annotations

import os
import time

_KILL, _STOP = 9, 19
_ROUNDS_S = 5.0
"""Seconds after which ending what keeps forking is given up."""
_REAP_S = 0.5
"""Seconds to wait for killed processes before looking for more: one may have forked while it was being stopped."""

Table = dict[int, tuple[int, int, int]]
"""Process number: number of its parent, threads, resident bytes."""


def process_table() -> Table:
    """Every process that ``/proc`` shows."""
    page = os.sysconf("SC_PAGE_SIZE")
    table: Table = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    # The name in brackets may hold spaces and brackets of its own.
                    fields = file.read().rpartition(b")")[2].split()
            except OSError:
                continue
            table[int(name)] = (int(fields[1]), int(fields[17]), int(fields[21]) * page)
    return table


def descendants(table: Table, root: int) -> set[int]:
    """Numbers of the processes below ``root``."""
    children: dict[int, list[int]] = {}
    for number, (parent, _, _) in table.items():
        children.setdefault(parent, []).append(number)
    found: set[int] = set()
    waiting = [root]
    while waiting:
        new = children.get(waiting.pop(), [])
        found.update(new)
        waiting += new
    return found


def memory_of(number: int, resident: int) -> int:
    """Bytes of a process, what it shares with others divided among them; the resident bytes where that is not known."""
    try:
        with open(f"/proc/{number}/smaps_rollup", "rb") as file:
            for line in file:
                if line.startswith(b"Pss:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        return resident
    return resident


def excess(table: Table, numbers: set[int], processes: int, memory: int) -> str:
    """Which limit the processes break together: "processes", "memory" or none ("")."""
    if sum(table[number][1] for number in numbers) > processes:
        return "processes"
    if sum(table[number][2] for number in numbers) <= memory:
        return ""
    used = sum(memory_of(number, table[number][2]) for number in numbers)
    return "memory" if used > memory else ""


def threads_of_user(table: Table, user: int) -> int:
    """Threads of all processes of a user, as RLIMIT_NPROC counts them."""
    total = 0
    for number, (_, threads, _) in table.items():
        try:
            total += threads if os.stat(f"/proc/{number}").st_uid == user else 0
        except OSError:
            continue
    return total


def end_namespace() -> None:
    """As first process of a PID namespace: kill and reap all others. The kernel lets none fork past it."""
    _signal({-1}, _KILL)
    _reap_all()


def end_descendants() -> bool:
    """Kill and reap every process below this one, which adopts orphans; False if some are left.

    They are stopped first: a stopped process does not fork while the others are being found.
    """
    give_up = time.monotonic() + _ROUNDS_S
    while time.monotonic() < give_up:
        stopped: set[int] = set()
        while new := descendants(process_table(), os.getpid()) - stopped:
            _signal(new, _STOP)
            stopped |= new
        if not stopped:
            return True
        _signal(stopped, _KILL)
        _reap_for(_REAP_S)
    return False


def end_group(number: int) -> None:
    """Kill a process group and reap its children of this process; what left the group is not found."""
    _signal({-number}, _KILL)
    _reap_all()


def _signal(numbers: set[int], signal: int) -> None:
    for number in numbers:
        try:
            os.kill(number, signal)
        except (ProcessLookupError, PermissionError):
            continue


def _reap_all() -> None:
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _reap_for(seconds: float) -> None:
    give_up = time.monotonic() + seconds
    while time.monotonic() < give_up:
        try:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                time.sleep(0.001)
        except ChildProcessError:
            return
