"""Physics: forces, circuits, units."""

from __future__ import annotations

from cl_bench.tasks.lab.domains.arithmetic import (
    ADDENDS,
    DIFFERENCES,
    FACTORS,
    QUOTIENTS,
    TRIPLES,
    add,
    divide,
    multiply,
    subtract,
)
from cl_bench.tasks.lab.kinds import Kind, Operands

_UNITS = {
    "force": "N",
    "energy": "J",
    "work": "J",
    "heat": "J",
    "power": "W",
    "pressure": "Pa",
    "stress": "Pa",
    "charge": "C",
    "voltage": "V",
    "current": "A",
    "resistance": "ohm",
    "frequency": "Hz",
    "capacitance": "F",
    "mass": "kg",
    "length": "m",
    "distance": "m",
    "height": "m",
    "time": "s",
    "temperature": "K",
    "speed": "m per s",
    "momentum": "kg m per s",
    "area": "m m",
    "volume": "m m m",
    "flux": "Wb",
    "inductance": "H",
    "dose": "Gy",
}


def _unit(operands: Operands) -> tuple[str, str]:
    return f"quantity {operands[0]}", _UNITS[operands[0]]


KINDS = (
    Kind(
        "physics",
        "force",
        "fact",
        (
            "What force gives mass {0} the acceleration {1}?",
            "Mass {0}, acceleration {1}: give the force.",
            "Find the force for mass {0} and acceleration {1}.",
            "A mass {0} has acceleration {1}. Name the force.",
            "Fill in: mass {0} at acceleration {1} needs the force ...",
        ),
        FACTORS,
        multiply,
        operation="mul",
        symmetric=True,
    ),
    Kind(
        "physics",
        "voltage",
        "fact",
        (
            "What voltage drives current {0} through resistance {1}?",
            "Current {0}, resistance {1}: give the voltage.",
            "Find the voltage for current {0} and resistance {1}.",
            "A current {0} meets resistance {1}. Name the voltage.",
            "Fill in: current {0} in resistance {1} needs the voltage ...",
        ),
        FACTORS,
        multiply,
        operation="mul",
        symmetric=True,
    ),
    Kind(
        "physics",
        "unit",
        "fact",
        (
            "What is the unit of {0}?",
            "Give the unit of {0}.",
            "In which unit is {0} measured?",
            "Name the SI unit for {0}.",
            "Fill in: {0} is measured in ...",
        ),
        tuple((q,) for q in _UNITS),
        _unit,
    ),
    Kind(
        "physics",
        "series",
        "rule",
        (
            "What is the resistance of {0} and {1} in series?",
            "Resistors {0} and {1} in series: give the total.",
            "Find the series resistance of {0} and {1}.",
            "Fill in: {0} in series with {1} gives ...",
        ),
        ADDENDS,
        add,
        operation="add",
        symmetric=True,
    ),
    Kind(
        "physics",
        "net",
        "rule",
        (
            "What is the net force of {0} against {1}?",
            "Forces {0} and {1} are opposed: give the net force.",
            "Find the net force of {0} with {1} opposed.",
            "Fill in: {0} against {1} leaves the net force ...",
        ),
        DIFFERENCES,
        subtract,
        operation="sub",
    ),
    Kind(
        "physics",
        "series-of-three",
        "rule",
        ("What is the resistance of {0}, {1} and {2} in series?", "Find the series resistance of {0}, {1} and {2}."),
        TRIPLES,
        add,
        ood=True,
    ),
    Kind(
        "physics",
        "speed",
        "rule",
        ("What speed covers distance {0} in time {1}?", "Distance {0}, time {1}: give the speed."),
        QUOTIENTS,
        divide,
        ood=True,
    ),
)
