"""Correlations where the answer is known: clusters, controls, ties, and what has no value."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cl_bench.harness.measure.correlation import cluster_resamples, correlate, partial_pearson, resamples


def test_a_line_correlates_fully_with_an_interval_of_no_width() -> None:
    found = correlate([0, 1, 2, 3], [5, 3, 1, -1], resamples(4, 200))
    assert found.pearson == pytest.approx(-1) and found.spearman == pytest.approx(-1)
    assert [found.slope, found.intercept] == pytest.approx([-2, 5])
    assert list(found.pearson_interval) == pytest.approx([-1, -1])
    assert 0 < found.resamples <= 200


def test_spearman_sees_any_order_and_pearson_the_line_alone() -> None:
    x = [1.0, 2.0, 3.0, 4.0, 5.0]
    found = correlate(x, [math.exp(3 * value) for value in x], resamples(5, 50))
    assert found.spearman == pytest.approx(1) and found.pearson < 0.95


def test_clusters_are_drawn_whole() -> None:
    clusters = ["a", "a", "a", "b", "c", "c"]
    drawn = cluster_resamples(clusters, count=300, seed=1)
    sizes = {len(row) for row in drawn}
    assert sizes <= {n for n in range(3, 10)} and len(sizes) > 1
    for row in drawn:
        counts = np.bincount(row, minlength=6)
        assert counts[0] == counts[1] == counts[2] and counts[4] == counts[5]
        assert counts[0] + counts[3] + counts[4] == 3


def test_points_that_share_a_cluster_make_the_interval_wider() -> None:
    generator = np.random.default_rng(0)
    centres = generator.normal(size=(6, 2))
    x = np.repeat(centres[:, 0], 8) + 0.01 * generator.normal(size=48)
    y = np.repeat(centres[:, 1], 8) + 0.01 * generator.normal(size=48)
    clusters = [str(index // 8) for index in range(48)]

    def width(indices: object) -> float:
        low, high = correlate(x.tolist(), y.tolist(), indices).pearson_interval  # type: ignore[arg-type]
        return high - low

    assert width(cluster_resamples(clusters, 500)) > 1.5 * width(resamples(48, 500))


def test_what_both_owe_to_a_control_is_no_partial_correlation() -> None:
    generator = np.random.default_rng(2)
    control = generator.normal(size=400)
    x, y = control + 0.3 * generator.normal(size=400), control + 0.3 * generator.normal(size=400)
    plain = correlate(x.tolist(), y.tolist(), resamples(400, 10)).pearson
    assert plain > 0.8 and abs(partial_pearson(x.tolist(), y.tolist(), [control.tolist()])) < 0.15


def test_a_partial_correlation_is_that_of_the_textbook_formula() -> None:
    x, y, z = [1.0, 2.0, 4.0, 3.0, 7.0], [2.0, 1.0, 5.0, 6.0, 6.0], [1.0, 3.0, 2.0, 5.0, 4.0]
    xy, xz, yz = (float(np.corrcoef(a, b)[0, 1]) for a, b in ((x, y), (x, z), (y, z)))
    expected = (xy - xz * yz) / math.sqrt((1 - xz**2) * (1 - yz**2))
    assert partial_pearson(x, y, [z]) == pytest.approx(expected)


@pytest.mark.parametrize(("x", "y"), [([1.0], [2.0]), ([1.0, 2.0], [1.0]), ([1.0, 1.0], [1.0, 2.0])])
def test_what_has_no_correlation_is_refused(x: list[float], y: list[float]) -> None:
    with pytest.raises(ValueError, match="needed|variance"):
        correlate(x, y, resamples(max(len(x), 1), 5))
