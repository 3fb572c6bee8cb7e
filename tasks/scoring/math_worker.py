"""The process that runs math-verify: one JSON object a line on stdin, one verdict a line on stdout.

math-verify does not return on some inputs (a tower of powers), takes all memory on others, and its own time limit works
in a main thread only. So it runs here, in a process of its own that ends itself when a comparison takes too long, and
that ``math_checker`` kills if it does not.
"""

from __future__ import annotations

import contextlib
import json
import logging
import signal
import sys
from typing import Any

MEMORY_LIMIT = 2 * 1024**3
"""Address space of the process in bytes; ten times what math-verify needs once it is loaded."""


def _limit_memory() -> None:
    try:
        import resource
    except ImportError:  # not a POSIX system
        return
    # Some systems refuse the limit; then the time limit alone protects.
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))


def _limit_time(seconds: float) -> None:
    # Without a handler the signal ends the process, even inside native code. Processor time, so that the verdict does
    # not depend on what else the machine does.
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, seconds)


def check(request: dict[str, str]) -> dict[str, Any]:
    """Whether two LaTeX expressions without dollars agree, or the error that math-verify met."""
    from math_verify import parse, verify

    try:
        gold, answer = (parse(f"${request[name]}$", parsing_timeout=None) for name in ("gold", "answer"))
        # An inequality may stand for the interval that gold is: x > 2 for (2, oo).
        return {"equal": bool(verify(gold, answer, timeout_seconds=None, allow_set_relation_comp=True))}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:200]}


def main(limit_s: float) -> None:
    """Answer until stdin ends, within that many processor seconds each. The first line: the libraries are loaded."""
    _limit_memory()
    logging.disable(logging.CRITICAL)
    replies, sys.stdout = sys.stdout, sys.stderr  # what a library prints is no reply
    check({"gold": "1", "answer": "1"})
    print(json.dumps({"ready": True}), file=replies, flush=True)
    for line in sys.stdin:
        _limit_time(limit_s)
        reply = check(json.loads(line))
        _limit_time(0)
        print(json.dumps(reply), file=replies, flush=True)


if __name__ == "__main__":
    main(float(sys.argv[1]))
