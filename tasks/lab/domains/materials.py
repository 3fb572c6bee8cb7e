"""Materials: structures of elements and compounds, densities, vacancies, hardness tests."""

from __future__ import annotations

import random
import re
from itertools import product

from cl_bench.tasks.lab.elements import COMPOUNDS, DENSITIES, STRUCTURES
from cl_bench.tasks.lab.kinds import Kind, Operands, sample_space

_STRUCTURE = {s: name for name, symbols in STRUCTURES.items() for s in symbols.split()}
_DENSITY = {s: str(d) for d, symbols in DENSITIES.items() for s in symbols.split()}


def _spaced(formula: str) -> str:
    # One element a word keeps formulas to few tokens.
    return " ".join(re.findall(r"[A-Z][a-z]?\d*", formula))


def _hardness_rows(n: int) -> tuple[Operands, ...]:
    """Triples of two-digit values that differ in the first digit."""
    draw = random.Random("hardest")
    tens = (draw.sample(range(1, 10), 3) for _ in range(n))
    return tuple(dict.fromkeys(tuple(str(10 * t + draw.randrange(10)) for t in triple) for triple in tens))


_TYPE = {_spaced(f): name for name, formulas in COMPOUNDS.items() for f in formulas.split()}
_PER_CELL = {"sc": 1, "bcc": 2, "fcc": 4, "diamond": 8}
_HARDNESS = _hardness_rows(1200)
_ROWS = sample_space(700, "vacancies", [(" ".join(s),) for n in range(4, 9) for s in product("xo", repeat=n)])
_LONG_ROWS = sample_space(200, "long-vacancies", [(" ".join(s),) for s in product("xo", repeat=10)])


def _structure(operands: Operands) -> tuple[str, str]:
    return f"element {operands[0]}", _STRUCTURE[operands[0]]


def _density(operands: Operands) -> tuple[str, str]:
    return f"element {operands[0]}", _DENSITY[operands[0]]


def _type(operands: Operands) -> tuple[str, str]:
    return f"compound {operands[0]}", _TYPE[operands[0]]


def _vacancies(operands: Operands) -> tuple[str, str]:
    found = [site for site in operands[0].split() if site == "o"]
    return "found " + " ".join(found or ["none"]), str(len(found))


def _hardest(operands: Operands) -> tuple[str, str]:
    top = max(operands, key=int)
    return f"top {top}", "PQR"[operands.index(top)]


def _softest(operands: Operands) -> tuple[str, str]:
    low = min(operands, key=int)
    return f"low {low}", "PQR"[operands.index(low)]


def _cells(operands: Operands) -> tuple[str, str]:
    n, structure = operands
    return f"{n} times {_PER_CELL[structure]}", str(int(n) * _PER_CELL[structure])


_VACANCIES = (
    "How many sites o are empty in {0}?",
    "Count the vacancies o in {0}.",
    "Give the number of empty sites o in {0}.",
    "Fill in: in {0} the empty sites o are ...",
)

KINDS = (
    Kind(
        "materials",
        "structure",
        "fact",
        (
            "Which structure has {0}?",
            "Give the crystal structure of {0}.",
            "Solid {0} has which lattice?",
            "Name the lattice of {0}.",
            "Fill in: {0} forms a lattice of type ...",
        ),
        tuple((s,) for s in _STRUCTURE),
        _structure,
    ),
    Kind(
        "materials",
        "density",
        "fact",
        (
            "What is the density of {0}?",
            "Give the density of solid {0}.",
            "How dense is {0}?",
            "Name the density that {0} has.",
            "Fill in: the density of {0} is ...",
        ),
        tuple((s,) for s in _DENSITY),
        _density,
    ),
    Kind(
        "materials",
        "compound",
        "fact",
        (
            "Which structure type has {0}?",
            "Give the structure type of {0}.",
            "The compound {0} is of which type?",
            "Name the type of the compound {0}.",
            "Fill in: {0} is of the type ...",
        ),
        tuple((f,) for f in _TYPE),
        _type,
    ),
    Kind("materials", "vacancies", "rule", _VACANCIES, tuple(o for o in _ROWS if "o" in o[0]), _vacancies),
    Kind(
        "materials",
        "hardest",
        "rule",
        (
            "P has hardness {0}, Q {1}, R {2}. Which is hardest?",
            "Hardness: P {0}, Q {1}, R {2}. Name the hardest.",
            "Of P {0}, Q {1} and R {2} give the hardest.",
            "Fill in: of P {0}, Q {1}, R {2} the hardest is ...",
        ),
        _HARDNESS,
        _hardest,
        options=3,
    ),
    Kind("materials", "long-vacancies", "rule", _VACANCIES, _LONG_ROWS, _vacancies, ood=True),
    Kind(
        "materials",
        "softest",
        "rule",
        ("P has hardness {0}, Q {1}, R {2}. Which is softest?", "Of P {0}, Q {1} and R {2} give the softest."),
        _HARDNESS[:200],
        _softest,
        options=3,
        ood=True,
    ),
    Kind(
        "materials",
        "cells",
        "rule",
        ("How many atoms are in {0} cells of {1}?", "Count the atoms in {0} unit cells of {1}."),
        tuple((str(n), s) for n in range(2, 30) for s in _PER_CELL),
        _cells,
        ood=True,
    ),
)
