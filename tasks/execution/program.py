"""Runs inside the sandbox: executes the parts of a program in order and writes the verdict. Nothing imports this file.

The launcher hands its text to a fresh interpreter (``python -c``), so that nobody's copy of it need be readable there.
Arguments: the descriptor that the verdict goes to, the working folder, and the supervisor's process number where the
audit hook shall fence the program in (0: the kernel does). Standard input holds the job: a line with the secret, a line
with the number of bytes of each part, then the parts in UTF-8.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def _job() -> tuple[bytes, list[str]]:
    chunks = []
    while chunk := os.read(0, 1 << 20):
        chunks.append(chunk)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    secret, sizes, text = b"".join(chunks).split(b"\n", 2)
    parts, start = [], 0
    for size in map(int, sizes.split()):
        parts.append(text[start : start + size].decode("utf-8", "surrogatepass"))
        start += size
    return secret, parts


def fence(folder: str, supervisor: int) -> None:
    """Refuse network, other programs, foreign signals and writes outside the folder, by an audit hook.

    A courtesy to programs that mean no harm: Python code that wants to get around it can.
    """
    network = {"connect", "bind", "sendto", "sendmsg", "getaddrinfo", "gethostbyname", "gethostbyaddr", "getnameinfo"}
    processes = {"os.system", "os.exec", "os.posix_spawn", "os.spawn", "subprocess.Popen", "ctypes.dlopen", "pty.spawn"}
    changes = {"remove", "rename", "mkdir", "rmdir", "link", "symlink", "truncate", "chmod", "chown", "utime", "mkfifo"}
    writing = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
    home, fspath, realpath = os.path.realpath(folder), os.fspath, os.path.realpath
    own = (home, os.path.realpath(os.devnull))

    def outside(path: object) -> bool:
        if not isinstance(path, (str, bytes, os.PathLike)):
            return False
        place = os.fsdecode(realpath(fspath(path)))
        return place not in own and not place.startswith(home + os.sep)

    def refused(event: str, arguments: tuple[object, ...]) -> bool:
        kind, _, name = event.rpartition(".")
        if event == "open":
            flags = arguments[2]
            return isinstance(flags, int) and bool(flags & writing) and outside(arguments[0])
        if kind == "os" and name in changes:
            return any(map(outside, arguments))
        if kind == "socket" and name in network:
            return not (len(arguments) > 1 and isinstance(arguments[1], (str, bytes)) and name in ("connect", "bind"))
        if event in ("os.kill", "os.killpg"):
            target = arguments[0]
            return isinstance(target, int) and (target <= 1 or target == supervisor)
        return event in processes

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if refused(event, arguments):
            raise PermissionError(f"not allowed to this program: {event}")

    sys.addaudithook(hook)


def _reason(error: BaseException) -> bytes:
    if isinstance(error, SystemExit):
        return b"ended before the tests were over (SystemExit)"
    if isinstance(error, MemoryError):
        return b"out of memory"
    return b"failed: " + type(error).__name__.encode("utf-8", "replace")[:80]


def _print(report: Callable[..., object], error: BaseException) -> None:
    """Print a traceback; what the program put in place of its error stream may fail in any way."""
    try:
        report(type(error), error, error.__traceback__)
    except BaseException:
        return


def main() -> None:
    """Run the job; the process ends here, whatever threads and exit handlers the program left."""
    verdict, folder, supervisor = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    sys.argv[:] = ["program.py"]
    secret, parts = _job()
    # Not "__main__": what a program does when it is started by hand (asks, prints, times itself) is no part of a test.
    module = type(sys)("program")
    sys.modules["program"] = module
    # Bound before the program can replace them, as it can every name of this module and of builtins.
    write, leave, process, getpid, execute, names = os.write, os._exit, os.getpid(), os.getpid, exec, vars(module)
    translate, describe, report, original = compile, _reason, _print, sys.excepthook
    if supervisor:
        fence(folder, supervisor)
    write(verdict, b"ready\n")
    try:
        for code in [translate(part, "<program>", "exec", dont_inherit=True) for part in parts]:
            execute(code, names)
    except BaseException as error:
        line = b" not " + describe(error)
        report(original, error)
    else:
        line = b" passed"
    if getpid() == process:
        write(verdict, secret + line + b"\n")
    try:
        sys.stdout.flush()
    finally:
        leave(0)


if __name__ == "__main__":
    main()
