"""Coding: the values of small Python expressions."""

from __future__ import annotations

from cl_bench.tasks.lab.domains.arithmetic import ADDENDS, add
from cl_bench.tasks.lab.kinds import Kind, Operands, unit

_FRAMES = ("What does print({code}) show?", "Give the value of {code}.", "Run print({code}).", "Fill in: {code} is ...")


def _frames(code: str) -> tuple[str, ...]:
    return tuple(frame.format(code=code) for frame in _FRAMES)


def _lists(seed: str, low: int, high: int, n: int, distinct: bool = True) -> tuple[Operands, ...]:
    """Pseudo-random digit lists as one comma-separated operand each."""
    found: dict[Operands, None] = {}
    serial = 0
    while len(found) < n:
        length = low + int(unit("length", seed, str(serial)) * (high - low + 1))
        digits = [str(int(unit("digit", seed, str(serial), str(i)) * 10)) for i in range(length)]
        if not distinct or len(set(digits)) == length:
            found[(",".join(digits),)] = None
        serial += 1
    return tuple(found)


def _index(operands: Operands) -> tuple[str, str]:
    return f"place {operands[1]}", operands[0].split(",")[int(operands[1])]


def _largest(operands: Operands) -> tuple[str, str]:
    return "scan all", max(operands[0].split(","))


def _smallest(operands: Operands) -> tuple[str, str]:
    return "scan all", min(operands[0].split(","))


def _reverse(operands: Operands) -> tuple[str, str]:
    return "from the back", ",".join(reversed(operands[0].split(",")))


def _repeat(operands: Operands) -> tuple[str, str]:
    return f"{operands[1]} copies", ",".join([operands[0]] * int(operands[1]))


_INDEXED = tuple((digits, str(i)) for (digits,) in _lists("index", 3, 5, 500) for i in range(3))[:1200]
_REPEATED = tuple((digits, n) for (digits,) in _lists("repeat", 2, 3, 450) for n in ("2", "3"))

KINDS = (
    Kind("coding", "index", "rule", _frames("[{0}][{1}]"), _INDEXED, _index),
    Kind("coding", "sum", "rule", _frames("{0} + {1}"), ADDENDS, add, operation="add", symmetric=True),
    Kind("coding", "largest", "rule", _frames("max([{0}])"), _lists("max", 3, 5, 1200), _largest),
    Kind("coding", "reverse", "rule", _frames("[{0}][::-1]"), _lists("reverse", 3, 5, 1200), _reverse),
    Kind("coding", "repeat", "rule", _frames("[{0}] * {1}"), _REPEATED, _repeat),
    Kind("coding", "smallest", "rule", _frames("min([{0}])"), _lists("min", 3, 5, 200), _smallest, ood=True),
    Kind("coding", "long-reverse", "rule", _frames("[{0}][::-1]"), _lists("long", 7, 8, 200), _reverse, ood=True),
)
