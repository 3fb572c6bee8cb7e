"""Chemistry: the periodic table, formulas from valences, atoms in a formula."""

from __future__ import annotations

from math import gcd

from cl_bench.tasks.lab.domains.arithmetic import TRIPLES, add, subtract
from cl_bench.tasks.lab.elements import ELEMENTS, METALS, NONMETALS
from cl_bench.tasks.lab.kinds import Kind, Operands, sample_space

_BY_SYMBOL = {e.symbol: e for e in ELEMENTS}
_BY_NUMBER = {str(e.number): e for e in ELEMENTS}
_VALENCE = {s: v for table in (METALS, NONMETALS) for v, symbols in table.items() for s in symbols}
_SYMBOLS: tuple[Operands, ...] = tuple((e.symbol,) for e in ELEMENTS)
_BINARY = sample_space(
    700,
    "atoms",
    [
        (x, str(a), y, str(b))
        for x in ("C", "N", "S", "P")
        for y in ("H", "O", "F", "Cl")
        for a in range(2, 10)
        for b in range(2, 25)
    ],
)


def _formula(operands: Operands) -> tuple[str, str]:
    metal, nonmetal = operands
    p, q = _VALENCE[metal], _VALENCE[nonmetal]
    g = gcd(p, q)
    parts = [s + (str(n) if n > 1 else "") for s, n in ((metal, q // g), (nonmetal, p // g))]
    return f"valence {p} and {q}", " ".join(parts)


def _number(operands: Operands) -> tuple[str, str]:
    element = _BY_NUMBER[operands[0]]
    return f"number {element.number}", element.symbol


def _group(operands: Operands) -> tuple[str, str]:
    element = _BY_SYMBOL[operands[0]]
    return f"element {element.symbol}", str(element.group)


def _family(operands: Operands) -> tuple[str, str]:
    element = _BY_SYMBOL[operands[0]]
    return f"element {element.symbol}", element.family


def _atoms(operands: Operands) -> tuple[str, str]:
    return add((operands[1], operands[3]))


KINDS = (
    Kind(
        "chemistry",
        "element",
        "fact",
        (
            "Which element has atomic number {0}?",
            "Name the element with {0} protons.",
            "Atomic number {0} belongs to which element?",
            "The element with number {0} is what?",
            "Give the symbol for atomic number {0}.",
        ),
        tuple((str(e.number),) for e in ELEMENTS),
        _number,
    ),
    Kind(
        "chemistry",
        "group",
        "fact",
        (
            "Which group is {0} in?",
            "Give the group of {0}.",
            "In the periodic table {0} is in which group?",
            "Name the group number of element {0}.",
            "Fill in: {0} is in group ...",
        ),
        tuple(o for o in _SYMBOLS if _BY_SYMBOL[o[0]].group),
        _group,
    ),
    Kind(
        "chemistry",
        "family",
        "fact",
        (
            "Which family does {0} belong to?",
            "Give the family of {0}.",
            "Element {0} is of which family?",
            "Name the family of element {0}.",
            "Fill in: {0} is of the family ...",
        ),
        _SYMBOLS,
        _family,
    ),
    Kind(
        "chemistry",
        "formula",
        "rule",
        (
            "What is the formula of {0} with {1}?",
            "Give the compound of {0} and {1}.",
            "Write the formula that {0} and {1} form.",
            "Fill in: {0} and {1} form the compound ...",
        ),
        tuple((m, x) for ms in METALS.values() for m in ms for xs in NONMETALS.values() for x in xs),
        _formula,
    ),
    Kind(
        "chemistry",
        "atoms",
        "rule",
        (
            "How many atoms are in {0}{1} {2}{3}?",
            "Count the atoms of {0}{1} {2}{3}.",
            "Give the number of atoms in {0}{1} {2}{3}.",
            "Fill in: the atoms in {0}{1} {2}{3} are ...",
        ),
        _BINARY,
        _atoms,
    ),
    Kind(
        "chemistry",
        "atoms-of-three",
        "rule",
        ("How many atoms are in C{0} H{1} O{2}?", "Count the atoms of C{0} H{1} O{2}."),
        TRIPLES,
        add,
        ood=True,
    ),
    Kind(
        "chemistry",
        "neutrons",
        "rule",
        ("How many neutrons has an atom of mass {0} and number {1}?", "Mass {0}, number {1}: give the neutrons."),
        tuple((str(2 * z + d), str(z)) for z in range(10, 50) for d in (2, 5, 8)),
        subtract,
        ood=True,
    ),
)
