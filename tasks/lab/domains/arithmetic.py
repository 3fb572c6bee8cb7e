"""Operand spaces and solvers of the arithmetic that several domains put into their own words."""

from __future__ import annotations

from cl_bench.tasks.lab.kinds import Operands, sample_space


def pairs(low: int, high: int) -> list[Operands]:
    """Unordered pairs of whole numbers, bounds included."""
    return [(str(a), str(b)) for a in range(low, high + 1) for b in range(a, high + 1)]


ADDENDS = sample_space(2400, "add", pairs(2, 79))
"""Operands of additions."""
DIFFERENCES = sample_space(2400, "sub", [(str(a), str(b)) for a in range(5, 99) for b in range(2, a)])
"""Minuend and subtrahend of subtractions."""
FACTORS = tuple(pairs(2, 12))
"""Factors of the times table, a table of facts."""
TRIPLES = sample_space(
    400, "add3", [(str(a), str(b), str(c)) for a in range(2, 30) for b in range(2, 30, 3) for c in range(2, 30, 4)]
)
"""Three addends, for the out-of-distribution split."""
LARGE_ADDENDS = sample_space(400, "add-large", [(str(a), str(b)) for a in range(80, 200, 3) for b in range(80, 200)])
"""Addends longer than any in training."""
QUOTIENTS = tuple((str(a * b), str(a)) for a in range(2, 13) for b in range(2, 13))
"""Dividend and divisor with a whole quotient."""


def add(operands: Operands) -> tuple[str, str]:
    """Sum of all operands."""
    return " plus ".join(operands), str(sum(map(int, operands)))


def subtract(operands: Operands) -> tuple[str, str]:
    """First operand less the second."""
    a, b = operands
    return f"{a} minus {b}", str(int(a) - int(b))


def multiply(operands: Operands) -> tuple[str, str]:
    """Product of two operands."""
    a, b = operands
    return f"{a} times {b}", str(int(a) * int(b))


def divide(operands: Operands) -> tuple[str, str]:
    """First operand over the second."""
    a, b = operands
    return f"{a} over {b}", str(int(a) // int(b))
