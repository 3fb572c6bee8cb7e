"""How methods are told apart in figures: a colour, a marker and what fills it, the same in every figure of a page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

COLOURS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#5A4B00", "#0000FF", "#FF005A",
    "#5AD24B", "#3C1E96", "#D2B496", "#E12DFF", "#78002D", "#C30096",
)  # fmt: skip
"""First those of Okabe and Ito, which people with any colour vision tell apart; then, one after another, the colour
farthest from all before it, as seen with all three cones and without the middle one."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*", "h")
"""As many as have no common divisor with the colours: no pair of the two comes twice among 176."""


@dataclass(frozen=True, slots=True)
class Style:
    """A method's marks.

    Attributes:
        colour: Of edges, error bars and, unless hollow, of the inside.
        marker: Matplotlib's name of it.
        fill: The colour, or ``none``: where markers come again they are hollow, then filled, in turn.
    """

    colour: str
    marker: str
    fill: str


def style(number: int) -> Style:
    """Marks of the method of this number, from 0."""
    colour = COLOURS[number % len(COLOURS)]
    hollow = number // len(MARKERS) % 2 == 1
    return Style(colour, MARKERS[number % len(MARKERS)], "none" if hollow else colour)


def styles(methods: Iterable[str]) -> Mapping[str, Style]:
    """Marks by method, in the order of the methods; each method counts once."""
    return {method: style(number) for number, method in enumerate(dict.fromkeys(methods))}
