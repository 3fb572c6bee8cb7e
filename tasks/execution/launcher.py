"""Starts one untrusted program behind every fence that the system allows, and reports how it ended.

Runs as a process of its own, started by ``cl_bench.tasks.code_execution`` with the working folder, 1 or 0 (with or
without namespaces) and the limits as arguments. Standard input holds the job, which only the program's process reads;
standard output takes the report, a Python literal. Exit code 3: namespaces are refused here. Exit code 4: without them
the program would run as root, whom no limit on processes holds.
"""

from __future__ import annotations

import os
import resource
import sys

from cl_bench.tasks.execution import kernel, seccomp
from cl_bench.tasks.execution.processes import process_table, threads_of_user
from cl_bench.tasks.execution.supervisor import Supervisor

REFUSED, UNSAFE = 3, 4
LIMITS = ("seconds", "cpu", "memory", "file", "processes", "output")
_OPEN_FILES = 256
_NAMESPACED_PROCESS_LIMIT = (5, 14)
"""Linux version from which RLIMIT_NPROC counts a user's processes within the user namespace."""
_SLACK = 4
"""Elsewhere that limit counts all processes of the user: only a last wall, so many times the program's own limit."""
_LINUX = sys.platform == "linux"


def main() -> None:
    """See the module."""
    folder, namespaces, *values = sys.argv[1:]
    limits = dict(zip(LIMITS, map(float, values), strict=True))
    needed = (sys.executable, os.path.dirname(sys.executable), os.path.dirname(os.__file__))
    # Read while it certainly can be.
    with open(os.path.join(os.path.dirname(__file__), "program.py"), encoding="utf-8") as file:
        text = file.read()
    nobody = _LINUX and kernel.drop_root(folder, needed)
    if namespaces == "0":
        if os.geteuid() == 0:
            sys.exit(UNSAFE)
        _supervise(folder, limits, text, nobody, "descendants" if kernel.adopt_orphans() else "group", _LINUX)
        return
    try:
        kernel.enter_namespaces(folder, int(limits["file"]), needed)
    except OSError as error:
        print(error, file=sys.stderr)
        sys.exit(REFUSED)
    first = os.fork()
    if first:
        _, status = os.waitpid(first, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    kernel.die_with_parent()
    _supervise(folder, limits, text, nobody, "namespace", kernel.mount_processes())
    os._exit(0)


def _supervise(folder: str, limits: dict[str, float], text: str, nobody: bool, scope: str, looks: bool) -> None:
    verdict, verdict_end = os.pipe()
    output, output_end = os.pipe()
    supervisor = os.getpid()
    program = os.fork()
    if program == 0:
        try:
            fence_by = 0 if scope == "namespace" else supervisor
            _become_program(folder, limits, text, fence_by, verdict_end, output_end)
        except BaseException as error:
            os.write(output_end, str(error).encode())
        finally:
            os._exit(1)
    os.close(verdict_end)
    os.close(output_end)
    report = Supervisor(limits, scope, looks).watch(program, verdict, output)
    report["isolation"] = _isolation(nobody, scope, looks)
    os.write(1, repr(report).encode())


def _become_program(folder: str, limits: dict[str, float], text: str, fence_by: int, verdict: int, output: int) -> None:
    os.setsid()
    os.chdir(folder)
    for kind, value in _resource_limits(limits, fence_by != 0):
        _, highest = resource.getrlimit(kind)
        highest = sys.maxsize if highest == resource.RLIM_INFINITY else highest
        value = min(value, highest)
        try:
            # The signal of the processor limit can be caught; a second later the hard limit kills.
            resource.setrlimit(kind, (value, min(value + 1, highest) if kind == resource.RLIMIT_CPU else value))
        except (OSError, ValueError):
            continue
    if _LINUX:
        kernel.give_up_privileges()
        seccomp.refuse_system_calls()
    if fence_by and (version := kernel.landlock_version()):
        kernel.landlock(folder, version)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.set_inheritable(verdict, True)
    # Without site and user packages; the hash seed is fixed so that a verdict does not depend on the order of a set.
    options = ["-s", "-P", "-S", "-B", "-X", "utf8"]
    arguments = [str(verdict), folder, str(fence_by)]
    os.execve(sys.executable, [sys.executable, *options, "-c", text, *arguments], _environment(folder))


def _environment(folder: str) -> dict[str, str]:
    # The caller gave this process nothing but the search paths of shared libraries.
    return dict(os.environ) | {
        "PATH": "/usr/bin:/bin",
        "HOME": folder,
        "TMPDIR": folder,
        "LANG": "C.UTF-8",
        "PYTHONHASHSEED": "0",
    }


def _resource_limits(limits: dict[str, float], fenced: bool) -> list[tuple[int, int]]:
    seconds, memory, file, processes = (int(limits[name]) for name in LIMITS[1:5])
    if fenced or _kernel_version() < _NAMESPACED_PROCESS_LIMIT:
        others = threads_of_user(process_table(), os.getuid()) if _LINUX else None
        processes = -1 if others is None else others + _SLACK * processes
    found = [
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_FSIZE, file),
        (resource.RLIMIT_NOFILE, _OPEN_FILES),
        (resource.RLIMIT_CORE, 0),
    ]
    return found + ([(resource.RLIMIT_NPROC, processes)] if processes >= 0 else [])


def _kernel_version() -> tuple[int, ...]:
    return tuple(int("".join(filter(str.isdigit, part)) or 0) for part in os.uname().release.split(".")[:2])


def _isolation(nobody: bool, scope: str, looks: bool) -> dict[str, str]:
    """What was in force, in words."""
    user = "nobody" if nobody else "the caller's, without capabilities"
    memory = "limited for each process and for all together" if looks else "limited for each process"
    if scope == "namespace":
        return {
            "processes": "ended with their own PID namespace",
            "network": "none (network namespace)",
            "files": "all read-only but its own folder in memory (mount namespace)",
            "user": user,
            "memory": memory,
        }
    version = kernel.landlock_version()
    asked = "an audit hook refuses it, which is no security boundary"
    ended = "one by one, found below the supervisor" if scope == "descendants" else "with their group, not beyond it"
    return {
        "processes": f"ended {ended}",
        "network": f"no TCP (Landlock {version}); for the rest {asked}" if version >= 4 else asked,
        "files": f"nothing written outside its own folder (Landlock {version})" if version else asked,
        "user": user if _LINUX else "the caller's",
        "memory": memory if _LINUX else "limited for each process, as far as the system enforces it",
    }
