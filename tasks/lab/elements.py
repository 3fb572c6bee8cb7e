"""Facts about the elements that the lab asks for: groups, families, densities, structures near room temperature."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Element:
    """One element.

    Attributes:
        symbol: Chemical symbol.
        number: Atomic number.
        group: IUPAC group, 1 to 18; 0 for the lanthanides, which have none.
        period: Row of the periodic table.
        family: Customary family name.
    """

    symbol: str
    number: int
    group: int
    period: int
    family: str


_TABLE = """
H 1 1 1 nonmetal|He 2 18 1 noble|Li 3 1 2 alkali|Be 4 2 2 alkaline|B 5 13 2 metalloid|C 6 14 2 nonmetal
N 7 15 2 nonmetal|O 8 16 2 nonmetal|F 9 17 2 halogen|Ne 10 18 2 noble|Na 11 1 3 alkali|Mg 12 2 3 alkaline
Al 13 13 3 post|Si 14 14 3 metalloid|P 15 15 3 nonmetal|S 16 16 3 nonmetal|Cl 17 17 3 halogen|Ar 18 18 3 noble
K 19 1 4 alkali|Ca 20 2 4 alkaline|Sc 21 3 4 transition|Ti 22 4 4 transition|V 23 5 4 transition
Cr 24 6 4 transition|Mn 25 7 4 transition|Fe 26 8 4 transition|Co 27 9 4 transition|Ni 28 10 4 transition
Cu 29 11 4 transition|Zn 30 12 4 transition|Ga 31 13 4 post|Ge 32 14 4 metalloid|As 33 15 4 metalloid
Se 34 16 4 nonmetal|Br 35 17 4 halogen|Kr 36 18 4 noble|Rb 37 1 5 alkali|Sr 38 2 5 alkaline|Y 39 3 5 transition
Zr 40 4 5 transition|Nb 41 5 5 transition|Mo 42 6 5 transition|Tc 43 7 5 transition|Ru 44 8 5 transition
Rh 45 9 5 transition|Pd 46 10 5 transition|Ag 47 11 5 transition|Cd 48 12 5 transition|In 49 13 5 post
Sn 50 14 5 post|Sb 51 15 5 metalloid|Te 52 16 5 metalloid|I 53 17 5 halogen|Xe 54 18 5 noble|Cs 55 1 6 alkali
Ba 56 2 6 alkaline|Hf 72 4 6 transition|Ta 73 5 6 transition|W 74 6 6 transition|Re 75 7 6 transition
Os 76 8 6 transition|Ir 77 9 6 transition|Pt 78 10 6 transition|Au 79 11 6 transition|Hg 80 12 6 transition
Tl 81 13 6 post|Pb 82 14 6 post|Bi 83 15 6 post|Rn 86 18 6 noble
"""


def _parse(table: str) -> tuple[Element, ...]:
    rows = (entry.split() for line in table.strip().splitlines() for entry in line.split("|"))
    return tuple(Element(s, int(z), int(g), int(p), family) for s, z, g, p, family in rows)


ELEMENTS = _parse(_TABLE)
"""The elements that questions ask about."""

METALS = {
    1: ("Li", "Na", "K", "Rb", "Cs", "Ag"),
    2: ("Be", "Mg", "Ca", "Sr", "Ba", "Zn", "Cd", "Ni"),
    3: ("B", "Al", "Ga", "In", "Sc", "Y", "Bi"),
    4: ("Si", "Ge", "Ti", "Zr", "Hf", "Sn"),
}
"""Electropositive elements by the valence that formula questions use."""

NONMETALS = {1: ("F", "Cl", "Br", "I"), 2: ("O", "S", "Se", "Te"), 3: ("N", "P", "As")}
"""Electronegative elements by the valence that formula questions use."""

STRUCTURES = {
    "bcc": "Li Na K V Cr Fe Rb Nb Mo Cs Ba Ta W Eu Ra",
    "fcc": "Al Ca Ni Cu Sr Rh Pd Ag Yb Ir Pt Au Pb Th Ce Ac",
    "hcp": "Be Mg Sc Ti Co Zn Y Zr Ru Cd Gd Tb Dy Ho Er Tm Lu Hf Re Os Tl Tc",
    "diamond": "Si Ge",
    "trigonal": "As Sb Bi",
    "tetragonal": "In Sn",
}
"""Crystal structure of the solid element near room temperature, to its elements."""

DENSITIES = {
    1: "Li Na K",
    2: "Be B Mg Si Ca Rb Cs",
    3: "Al Sc Sr",
    4: "Y Ba",
    5: "Ti Ge Se I Eu",
    6: "V Ga As Te La",
    7: "Cr Mn Zn Zr In Sn Sb Ce Pr Nd Yb",
    8: "Fe Sm Gd Tb",
    9: "Co Ni Cu Nb Cd Dy Ho Er Tm",
    10: "Mo Ag Lu Bi",
    11: "Pb",
    12: "Ru Rh Pd Tl Th",
    13: "Hf",
    14: "Hg",
    17: "Ta",
    19: "W Au U",
    21: "Re Pt",
    23: "Os Ir",
}
"""Density in grams per cubic centimetre, rounded to a whole number, to the elements that have it."""

COMPOUNDS = {
    "rocksalt": "NaCl KCl LiF MgO CaO NiO FeO MnO TiC TiN PbS AgCl",
    "fluorite": "CaF2 BaF2 SrF2 UO2 CeO2 ThO2 PbF2 CdF2",
    "zincblende": "ZnS GaAs InP GaP InSb AlAs CuCl HgTe CdTe",
    "wurtzite": "ZnO AlN GaN InN CdSe BeO AgI",
    "rutile": "TiO2 SnO2 MnO2 RuO2 PbO2 MgF2 VO2 CrO2",
    "perovskite": "SrTiO3 BaTiO3 CaTiO3 PbTiO3 KNbO3 LaAlO3",
    "spinel": "MgAl2O4 ZnAl2O4 FeCr2O4 CoAl2O4 Fe3O4 Mn3O4",
}
"""Structure type of common compounds, to the compounds that have it."""
