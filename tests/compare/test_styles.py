"""Methods in figures: no two look alike, and one looks the same in every figure."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from cl_bench.harness.compare.comparison import compare_runs
from cl_bench.reports import compare_plots
from cl_bench.reports.compare_plots import tradeoff
from cl_bench.reports.compare_styles import COLOURS, MARKERS, Style, style, styles
from tests.compare.small_runs import make_run

APART = 25.0
"""Distance in CIE L*a*b* at which two small marks beside each other are still told apart; 2.3 is just visible."""


def lab(colour: str) -> tuple[float, float, float]:
    """CIE L*a*b* of an sRGB colour, white point D65."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    x = (0.4124564 * red + 0.3575761 * green + 0.1804375 * blue) / 0.95047
    y = 0.2126729 * red + 0.7151522 * green + 0.0721750 * blue
    z = (0.0193339 * red + 0.1191920 * green + 0.9503041 * blue) / 1.08883
    fx, fy, fz = (value ** (1 / 3) if value > 0.008856 else 7.787 * value + 16 / 116 for value in (x, y, z))
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


def distance(one: str, other: str) -> float:
    return math.dist(lab(one), lab(other))


@pytest.mark.parametrize(("one", "other"), itertools.combinations(COLOURS, 2))
def test_colours_are_told_apart(one: str, other: str) -> None:
    assert distance(one, other) > APART


def test_colours_that_are_nearly_the_same_would_be_found() -> None:
    assert distance("#CC79A7", "#CC79B0") < APART and distance("#000000", "#FFFFFF") == pytest.approx(100, abs=0.1)


def test_no_two_of_many_methods_look_alike() -> None:
    many = [style(number) for number in range(len(COLOURS) * len(MARKERS))]
    assert len(set(many)) == len(many)
    shapes = [(one.marker, one.fill == "none") for one in many[: 2 * len(MARKERS)]]
    assert len(set(shapes)) == len(shapes)  # in print without colours too
    assert len({one.colour for one in many[: len(COLOURS)]}) == len(COLOURS)


def test_a_method_looks_the_same_in_every_panel(tmp_path: Path) -> None:
    for method in ("asft", "dft", "sft"):
        make_run(tmp_path, method)
    for method in ("dft", "sft"):
        values = {"base": (0.2, 0.6, 0.8), "chemistry": (0.9, 0.5, 0.7)}
        make_run(tmp_path, method, values=values, stages=("chemistry",))
    panels = compare_runs([str(tmp_path)]).panels
    marks = styles(row.label for panel in panels for row in panel.rows)
    from matplotlib.container import ErrorbarContainer

    seen = []
    for panel in panels:
        figure = tradeoff(panel, marks)
        assert figure is not None
        drawn = [one for one in figure.axes[0].containers if isinstance(one, ErrorbarContainer)]
        seen.append({str(one.get_label()): one.lines[0].get_color() for one in drawn})
    assert len(seen) == 2 and {len(found) for found in seen} == {2, 3}
    assert all(seen[0][name] == seen[1][name] == marks[name].colour for name in ("dft", "sft"))


def test_all_figures_of_a_comparison_are_drawn_with_the_same_marks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for method in ("asft", "dft"):
        for seed in (0, 1):
            make_run(tmp_path, method, seed)
    asked: list[list[str]] = []

    def recorded(methods: Iterable[str]) -> Mapping[str, Style]:
        asked.append(list(methods))
        return styles(asked[-1])

    monkeypatch.setattr(compare_plots, "styles", recorded)
    assert len(compare_plots.figures(compare_runs([str(tmp_path)]))) == 5 and asked == [["asft", "dft"]]
