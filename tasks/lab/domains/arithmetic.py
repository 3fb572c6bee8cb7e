"""Operand spaces and solvers of the arithmetic that several domains put into their own words."""

from __future__ import annotations

from cl_bench.tasks.lab.kinds import Operands, sample_space


def pairs(low: int, high: int) -> list[Operands]:
    """Unordered pairs of whole numbers, bounds included."""
    return [(str(a), str(b)) for a in range(low, high + 1) for b in range(a, high + 1)]


ADDENDS = sample_space(1700, "add", pairs(2, 59))
"""Operands of additions."""
DIFFERENCES = sample_space(1700, "sub", [(str(a), str(b)) for a in range(5, 64) for b in range(2, a)])
"""Minuend and subtrahend of subtractions."""
FACTORS = tuple(pairs(2, 12))
"""Factors of the times table, a table of facts."""
TRIPLES = sample_space(
    400, "add3", [(str(a), str(b), str(c)) for a in range(2, 30) for b in range(2, 30, 3) for c in range(2, 30, 4)]
)
"""Three addends, for the out-of-distribution split."""
LARGE_ADDENDS = sample_space(400, "add-large", [(str(a), str(b)) for a in range(60, 200, 3) for b in range(a, 200)])
"""Addends longer than any in training."""
QUOTIENTS = tuple((str(a * b), str(a)) for a in range(2, 13) for b in range(2, 13))
"""Dividend and divisor with a whole quotient."""


def add(operands: Operands) -> tuple[str, str]:
    """Sum of all operands; of two, the sums of their ones and of their tens are the intermediate step."""
    total, shown = str(sum(map(int, operands))), " plus ".join(operands)
    if len(operands) != 2:
        return shown, total
    a, b = map(int, operands)
    return f"{shown} ones {a % 10 + b % 10} tens {a // 10 + b // 10}", total


def subtract(operands: Operands) -> tuple[str, str]:
    """First operand less the second, with the ones and the tens of the result as the intermediate step."""
    a, b = operands
    left = int(a) - int(b)
    return f"{a} minus {b} ones {left % 10} tens {left // 10}", str(left)


def multiply(operands: Operands) -> tuple[str, str]:
    """Product of two operands."""
    a, b = operands
    return f"{a} times {b}", str(int(a) * int(b))


def divide(operands: Operands) -> tuple[str, str]:
    """First operand over the second."""
    a, b = operands
    return f"{a} over {b}", str(int(a) // int(b))
