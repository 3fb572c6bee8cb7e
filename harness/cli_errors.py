"""How the command line ends: every error becomes a message on stderr and an exit code."""

from __future__ import annotations

import errno
import re
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cl_bench.harness.errors import (
    EXIT_DONE,
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_USAGE,
    ClBenchError,
    blamed,
    words_of,
    written,
)
from cl_bench.harness.escaping import visible
from cl_bench.harness.redaction import redacted

_NOT_OURS = frozenset(
    {
        errno.EACCES, errno.EDQUOT, errno.EEXIST, errno.EFBIG, errno.EIO, errno.EISDIR, errno.EMFILE,
        errno.ENAMETOOLONG, errno.ENOENT, errno.ENOSPC, errno.ENOTDIR, errno.EPERM, errno.EROFS,
    }
)  # fmt: skip
"""What the file system refuses: the user can do something about it, and no trace helps."""
_TORCH_CANNOT_WRITE = re.compile(r"PytorchStreamWriter failed writing|inline_container\S* ?\. unexpected pos")


def exit_code(call: Callable[[], Any], json: bool) -> int:
    """Call a command and return its exit code; errors are printed, not raised.

    Args:
        call: Parses and runs; its integer result is the exit code.
        json: Print errors to stdout too, as one line of JSON.
    """
    try:
        result = call()
    except ClBenchError as error:
        return _fail(error, json)
    except KeyboardInterrupt:
        return _interrupted(json)
    except BrokenPipeError:
        sys.stdout = None  # nobody reads; a flush at exit would fail again
        return EXIT_FAILED
    except Exception as error:
        return _other(error, json)
    code = result if isinstance(result, int) else EXIT_DONE
    return _interrupted(json) if code == EXIT_INTERRUPTED else code


def _other(error: Exception, json: bool) -> int:
    if hasattr(error, "format_message"):
        return _parser_error(error, json)
    refused = of_the_system(error)
    return _unexpected(error, json) if refused is None else _fail(refused, json)


def of_the_system(error: Exception) -> ClBenchError | None:
    """What the file system refused, as an error for people; None where the error is another."""
    hint = "free some space, check the rights, or name another folder (--output, --data-root, CL_BENCH_CACHE)"
    if isinstance(error, OSError):
        if error.errno not in _NOT_OURS:
            return None
        where = error.filename if error.filename is not None else "a file"
        why = error.strerror or str(error)
        return ClBenchError(f"cannot read or write {where}", _with_room(why, error.errno, error.filename), hint)
    # The libraries that write weights have exceptions of their own, with the system's error in the text.
    code = re.search(r"\(os error (\d+)\)", str(error))
    if (code and int(code[1]) in _NOT_OURS) or _TORCH_CANNOT_WRITE.search(str(error)):
        number, where = int(code[1]) if code else errno.ENOSPC, written(error)
        why = _with_room(str(error).splitlines()[0], number, where)
        return ClBenchError(f"cannot write {where or 'weights'}", why, hint)
    return None


def _with_room(why: str, number: int | None, place: Any) -> str:
    """The reason, of a full disk with what it has left: a quota may be used up where it has much."""
    from cl_bench.harness.sizes import room_left

    if number not in (errno.ENOSPC, errno.EDQUOT) or not isinstance(place, str | Path) or not place:
        return why
    room = room_left(Path(place))
    return f"{why}; {room}" if room else why


def _fail(error: ClBenchError, json: bool) -> int:
    print(f"error: {visible(redacted(str(error)), layout=True)}", file=sys.stderr)
    if json:
        _print_error(error.what, error.why, error.hint, error.exit_code)
    return error.exit_code


def _parser_error(error: Any, json: bool) -> int:
    # The parser's own exceptions live in different modules in different versions of typer.
    error.show()
    if json:
        _print_error(str(error.format_message()), "", "cl-bench --help", EXIT_USAGE)
    return EXIT_USAGE


def _unexpected(error: Exception, json: bool) -> int:
    # An exception's text, and the trace with it, can hold anything: rows of data, addresses, settings.
    print(visible(redacted("".join(traceback.format_exception(error))), layout=True), end="", file=sys.stderr)
    what = redacted(words_of(error))
    why = blamed(error) or "this is a fault of cl-bench or of an extension"
    print(f"error: {visible(what)}\n  why: {visible(why)}; the trace is above", file=sys.stderr)
    if json:
        _print_error(what, why, "", EXIT_FAILED)
    return EXIT_FAILED


def _interrupted(json: bool) -> int:
    hint = "cl-bench resume RUN_DIR goes on from there"
    print(f"interrupted: finished stages and the last checkpoint are kept\n  try: {hint}", file=sys.stderr)
    if json:
        _print_error("interrupted", "", hint, EXIT_INTERRUPTED)
    return EXIT_INTERRUPTED


def _print_error(what: str, why: str, hint: str, code: int) -> None:
    from json import dumps

    told = {"what": redacted(what), "why": redacted(why), "try": redacted(hint)}
    print(dumps({"error": told, "exit_code": code}), flush=True)
