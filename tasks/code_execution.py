"""Runs programs that nobody has read: each in an interpreter of its own, behind every fence the system allows.

What a program can do and what it cannot depends on the system; ``available_isolation`` says it in words. With Linux
namespaces (user, mount, PID, network, IPC) a program sees no network, writes nothing but a folder in memory, and none
of its processes outlives it. Without them (some containers) Landlock keeps its writes in its folder, where the kernel
has it, and its processes are hunted down; elsewhere (macOS) the process group is killed and an audit hook asks for the
rest. What no system here gives: a program can read the files that its user can read, and connect to the sockets in the
file system that this user may use. To run code whose author means harm, put the whole benchmark into a virtual machine.

The verdict comes from the code that runs the tests, over a pipe of its own and with a secret drawn for the run: ending
early, printing, replacing functions or exit handlers does not forge it. A program and its tests share one interpreter,
as in HumanEval's own checker (Chen et al. 2021, arXiv 2107.03374): a program that searches the interpreter for the
secret, or returns objects that claim to equal everything, can pass. Look at what a policy writes before you reward it.
"""

from __future__ import annotations

import ast
import functools
import os
import secrets
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cl_bench.harness.errors import ClBenchError, UsageError

_REFUSED, _UNSAFE = 3, 4
"""The launcher's exit codes: namespaces are refused; without them a program would run as root."""
_GRACE_S = 60.0
"""Seconds beyond the program's limit after which the supervisor itself is given up (it allows 30 for the start)."""
_PASSED = "passed"
_UNFINISHED = "ended before the tests were over"
_LEAST_MEMORY = 64 << 20
_PACKAGE = Path(__file__).parent / "execution"

# Gives the launcher its own package under its full name, without importing cl_bench and what that needs.
_START = f"""
import sys
for name in ("cl_bench", "cl_bench.tasks", "cl_bench.tasks.execution"):
    sys.modules[name] = type(sys)(name)
    sys.modules[name].__path__ = [{str(_PACKAGE)!r}]
from cl_bench.tasks.execution.launcher import main
main()
"""


class CodeExecutionError(ClBenchError):
    """The checker itself failed, whatever the program: it could not start, or its report is missing."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one program may use.

    Attributes:
        seconds: Wall-clock seconds, without the interpreter's start (few HumanEval or MBPP programs take 0.1).
        cpu_seconds: Processor seconds of each process.
        memory_bytes: Address space of each process, and memory of all together.
        file_bytes: Size of a file, and of the working folder where it is kept in memory.
        processes: Processes and threads at one time.
        output_bytes: How much of standard output and standard error is kept; the rest is read and dropped.
    """

    seconds: float = 10.0
    cpu_seconds: int = 10
    memory_bytes: int = 1 << 30
    file_bytes: int = 16 << 20
    processes: int = 64
    output_bytes: int = 16 << 10

    def __post_init__(self) -> None:
        """Raises UsageError for limits under which no interpreter starts."""
        for name, value in asdict(self).items():
            if value <= 0:
                raise UsageError(f"{name} must be positive, not {value}")
        if self.memory_bytes < _LEAST_MEMORY:
            raise UsageError(f"memory_bytes must be at least {_LEAST_MEMORY} (an interpreter), not {self.memory_bytes}")


@dataclass(frozen=True, slots=True)
class Isolation:
    """Which protections were in force, each in words: what ends the processes, network, files, user, memory."""

    processes: str
    network: str
    files: str
    user: str
    memory: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a program ended.

    Attributes:
        passed: Every part ran to its end.
        reason: "passed", "failed: AssertionError", "timed out after 10 s", "out of memory", ...
        seconds: Wall-clock seconds, without the interpreter's start.
        isolation: Which protections were in force.
        output: The first bytes of standard output and standard error, as text.
    """

    passed: bool
    reason: str
    seconds: float
    isolation: Isolation
    output: str = ""


def run_program(source: str | Sequence[str], limits: Limits = Limits(), namespaces: bool | None = None) -> Outcome:
    """Run a program to its end or to a limit; leaves no process and no file behind.

    Args:
        source: Python source, or parts of it: each is compiled on its own, so that no part can swallow the next, and
            they run in order in one module, named "program". Only the standard library is there.
        limits: What it may use.
        namespaces: Use Linux namespaces; None: where the system allows them.

    Raises:
        CodeExecutionError: The checker failed; nothing that a program does leads here.
        UsageError: This system cannot run programs safely (Windows).
    """
    if os.name != "posix":
        raise UsageError(
            "programs are not executed on this system",
            why="it has neither resource limits nor process groups",
            hint="Linux, macOS, or the Windows Subsystem for Linux",
        )
    if namespaces is None:
        namespaces = _namespaces_allowed()
    parts = [source] if isinstance(source, str) else list(source)
    secret = secrets.token_hex(16).encode()
    try:
        report = _launch(_job(secret, parts), limits, namespaces)
    except OSError as error:
        raise CodeExecutionError("the supervisor of a program could not be started", why=str(error)) from error
    if not report["verdict"].startswith(b"ready\n"):
        raise CodeExecutionError(
            "the interpreter of a program did not start", why=report["output"].decode("utf-8", "replace")[-500:]
        )
    reason = _reason(report, secret, limits)
    output = report["output"].decode("utf-8", "replace")
    return Outcome(reason == _PASSED, reason, report["seconds"], Isolation(**report["isolation"]), output)


def run_programs(
    sources: Iterable[str | Sequence[str]], limits: Limits = Limits(), workers: int | None = None
) -> list[Outcome]:
    """Outcomes of many programs in their order, ``workers`` of them at a time (default: two, or as many as CPUs)."""
    with ThreadPoolExecutor(workers or min(2, os.cpu_count() or 1)) as pool:
        return list(pool.map(lambda source: run_program(source, limits), sources))


@functools.cache
def available_isolation() -> Isolation:
    """Which protections this system allows, found by running an empty program. Raises as ``run_program`` does."""
    return run_program("").isolation


@functools.cache
def _namespaces_allowed() -> bool:
    if sys.platform != "linux":
        return False
    try:
        _launch(_job(b"", [""]), Limits(), True)
    except _NamespacesRefusedError:
        return False
    return True


class _NamespacesRefusedError(CodeExecutionError):
    pass


def _job(secret: bytes, parts: Sequence[str]) -> bytes:
    texts = [part.encode("utf-8", "surrogatepass") for part in parts]
    return b"\n".join((secret, b" ".join(str(len(text)).encode() for text in texts), b"".join(texts)))


def _launch(job: bytes, limits: Limits, namespaces: bool) -> Mapping[str, Any]:
    with _working_folder() as folder:
        # In the order of the launcher's LIMITS.
        values = [str(value) for value in asdict(limits).values()]
        arguments = [os.path.realpath(folder), str(int(namespaces)), *values]
        options = ["-I", "-S", *(["-B"] if sys.dont_write_bytecode else []), "-X", "utf8"]
        command = [sys.executable, *options, "-c", _START, *arguments]
        code, report, complaint = _communicate(command, job, limits.seconds + _GRACE_S)
    why = complaint.decode("utf-8", "replace").strip()[-500:]
    if code == _REFUSED:
        raise _NamespacesRefusedError("this system refuses Linux namespaces", why=why)
    if code == _UNSAFE:
        raise UsageError(
            "programs are not executed as root here",
            why="without namespaces nothing stops root from forking, and the user nobody cannot read the interpreter",
            hint="run as an ordinary user, or with an interpreter outside of root's home",
        )
    if code != 0 or not report:
        raise CodeExecutionError(f"the supervisor of a program ended with exit code {code}", why=why)
    found: Mapping[str, Any] = ast.literal_eval(report.decode())
    return found


@contextmanager
def _working_folder() -> Iterator[str]:
    """An empty folder; what a program left in it goes, however deep or closed."""
    folder = tempfile.mkdtemp(prefix="cl-bench-program-")
    try:
        yield os.path.realpath(folder)
    finally:
        try:
            os.rmdir(folder)
        except FileNotFoundError:
            pass
        except OSError:
            # A tree can be deeper than Python's own functions climb.
            for command in (["chmod", "-R", "u+rwX", folder], ["rm", "-rf", folder]):
                subprocess.run(command, check=False, capture_output=True)


def _communicate(command: Sequence[str], job: bytes, seconds: float) -> tuple[int, bytes, bytes]:
    pipe = subprocess.PIPE
    # Where interpreters find their shared libraries; nothing else of the caller's environment.
    shared = {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH") if name in os.environ}
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=shared, start_new_session=True) as process:
        try:
            report, complaint = process.communicate(job, timeout=seconds)
        except BaseException as error:
            _abandon(process)
            if isinstance(error, subprocess.TimeoutExpired):
                raise CodeExecutionError(f"the supervisor of a program did not answer within {seconds:g} s") from error
            raise
    return process.returncode, report, complaint


def _abandon(process: subprocess.Popen[bytes]) -> None:
    """Let the supervisor see that nobody waits for it: it then ends the program; kill it only if it does not."""
    for stream in (process.stdout, process.stdin):
        if stream is not None:
            stream.close()
    try:
        process.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        process.kill()


def _reason(report: Mapping[str, Any], secret: bytes, limits: Limits) -> str:
    if not report["gone"]:
        return "left processes that could not be ended"
    broken = {
        "time": f"timed out after {limits.seconds:g} s",
        "memory": "out of memory",
        "processes": f"more than {limits.processes} processes",
        "abandoned": "nobody waited for it",
    }
    if report["end"]:
        return broken[report["end"]]
    for line in report["verdict"].split(b"\n"):
        if line == secret + b" passed":
            return _PASSED
        if line.startswith(secret + b" not "):
            reason: str = line[len(secret) + 5 :].decode("utf-8", "replace")
            return reason if reason != _PASSED else _UNFINISHED
    code = os.waitstatus_to_exitcode(report["status"])
    if code == -signal.SIGXCPU:
        return f"timed out after {limits.cpu_seconds} s of processor time"
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    return f"{_UNFINISHED} ({how})"
