"""Math: one-step word problems."""

from __future__ import annotations

from cl_bench.tasks.lab.domains.arithmetic import (
    ADDENDS,
    DIFFERENCES,
    FACTORS,
    LARGE_ADDENDS,
    QUOTIENTS,
    add,
    divide,
    multiply,
    subtract,
)
from cl_bench.tasks.lab.kinds import Kind, Operands, sample_space

_TWO_STEPS = sample_space(
    300,
    "two-steps",
    [(str(a), str(b), str(c)) for a in range(5, 30) for b in range(2, 30, 3) for c in range(2, 30, 4) if a + b > c],
)


def _two_steps(operands: Operands) -> tuple[str, str]:
    a, b, c = operands
    return f"{a} plus {b} minus {c}", str(int(a) + int(b) - int(c))


_TOTAL = (
    "Tom has {0} pens and gets {1} more. How many has he now?",
    "There are {0} cups here and {1} there. Give the total.",
    "Ann finds {0} eggs, then {1} eggs. How many in all?",
    "Fill in: {0} nuts and {1} nuts make ...",
)

KINDS = (
    Kind("math", "total", "rule", _TOTAL, ADDENDS, add, operation="add", symmetric=True),
    Kind(
        "math",
        "left",
        "rule",
        (
            "Tom has {0} pens and gives away {1}. How many are left?",
            "Of {0} cups {1} break. How many remain?",
            "Ann had {0} eggs and ate {1}. Give the rest.",
            "Fill in: {0} nuts without {1} nuts leave ...",
        ),
        DIFFERENCES,
        subtract,
        operation="sub",
    ),
    Kind(
        "math",
        "first",
        "rule",
        (
            "Tom gets {1} pens and now has {0}. How many had he first?",
            "After adding {1} cups there are {0}. Give the start.",
            "Ann has {0} eggs, {1} of them new. How many were old?",
            "Fill in: ... nuts and {1} nuts make {0}.",
        ),
        DIFFERENCES,
        subtract,
        operation="sub",
    ),
    Kind(
        "math",
        "groups",
        "fact",
        (
            "Tom has {0} bags of {1} pens. How many pens?",
            "There are {0} rows of {1} cups. Give the total.",
            "Ann fills {0} boxes with {1} eggs each. How many eggs?",
            "Find {0} sets of {1} keys. How many keys?",
            "Fill in: {0} lots of {1} nuts make ...",
        ),
        FACTORS,
        multiply,
        operation="mul",
        symmetric=True,
    ),
    Kind(
        "math",
        "share",
        "fact",
        (
            "Tom shares {0} pens among {1}. How many each?",
            "Split {0} cups into {1} rows. How many a row?",
            "Ann puts {0} eggs in {1} boxes. How many a box?",
            "Divide {0} keys by {1}. Give the part.",
            "Fill in: {0} nuts for {1} people are ... each.",
        ),
        QUOTIENTS,
        divide,
        operation="div",
    ),
    Kind("math", "large-total", "rule", _TOTAL, LARGE_ADDENDS, add, ood=True),
    Kind(
        "math",
        "two-steps",
        "rule",
        (
            "Tom has {0} pens, gets {1} more and gives away {2}. How many are left?",
            "Ann had {0} eggs, found {1} and ate {2}. Give the rest.",
        ),
        _TWO_STEPS,
        _two_steps,
        ood=True,
    ),
)
