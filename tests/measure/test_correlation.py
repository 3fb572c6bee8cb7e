"""Correlations where the answer is known: clusters, controls, ties, and what has no value."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cl_bench.harness.compare.correlation import PERCENTILE_POINTS
from cl_bench.harness.compare.regression import line_band, within_groups
from cl_bench.harness.measure.correlation import (
    SMALLEST_CLUSTERS,
    cluster_resamples,
    clustered,
    correlate,
    partial_pearson,
    resamples,
)
from cl_bench.harness.measure.scores import UndefinedMetricError


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
    with pytest.raises(UndefinedMetricError, match="needed|variance|finite"):
        correlate(x, y, resamples(max(len(x), 1), 5))


def test_clustered_intervals_come_from_resamples_of_whole_clusters() -> None:
    generator = np.random.default_rng(6)
    clusters = [str(index % 9) for index in range(40)]
    x, y = generator.normal(size=40).tolist(), generator.normal(size=40).tolist()
    found = clustered(x, y, clusters)
    plain = correlate(x, y, cluster_resamples(clusters, 2000)).pearson_interval
    assert found.clusters == 9 and found.pearson is not None and found.spearman is not None
    # The same draws: moved out from the estimate on Fisher's scale, by t of 8 degrees of freedom.
    r, wider = math.atanh(correlate(x, y, resamples(40, 10)).pearson), 2.306004 * math.sqrt(9 / 8) / 1.959964
    expected = [math.tanh(r + wider * (math.atanh(end) - r)) for end in plain]
    assert list(found.pearson) == pytest.approx(expected, abs=1e-3)  # percentiles are interpolated on the other scale


def test_one_cluster_less_than_an_interval_needs_gives_none() -> None:
    x, y = [float(index) for index in range(16)], [float(index % 5) for index in range(16)]
    enough = clustered(x, y, [str(index % SMALLEST_CLUSTERS) for index in range(16)])
    few = clustered(x, y, [str(index % (SMALLEST_CLUSTERS - 1)) for index in range(16)])
    assert enough.pearson is not None and few.pearson is None and "needs 8" in few.reason
    assert line_band(x, y, [str(index % (SMALLEST_CLUSTERS - 1)) for index in range(16)], np.array([1.0])) is None


def test_permuted_labels_give_intervals_that_hold_zero_at_the_stated_rate() -> None:
    generator = np.random.default_rng(7)
    clusters = np.repeat(np.arange(SMALLEST_CLUSTERS), 3)
    names = [str(name) for name in clusters]
    holds = plain = 0
    for _ in range(400):
        centres = generator.normal(size=(SMALLEST_CLUSTERS, 2))
        points = centres[clusters] + 0.7 * generator.normal(size=(len(clusters), 2))
        order = generator.permutation(SMALLEST_CLUSTERS)  # whole clusters change their labels
        y = points[:, 1].reshape(SMALLEST_CLUSTERS, 3)[order].ravel().tolist()
        found = clustered(points[:, 0].tolist(), y, names, count=400).pearson
        assert found is not None
        holds += found[0] <= 0 <= found[1]
        low, high = correlate(points[:, 0].tolist(), y, resamples(len(names), 200)).pearson_interval
        plain += low <= 0 <= high
    assert 0.925 <= holds / 400 <= 0.98  # three standard errors around what 2,000 replications print
    assert plain / 400 < 0.9, "points of a cluster are not independent"


def test_the_plain_percentile_interval_covers_what_it_says_where_it_is_given() -> None:
    generator, drawn = np.random.default_rng(9), resamples(PERCENTILE_POINTS, 500)
    holds = 0
    for _ in range(300):
        x = generator.normal(size=PERCENTILE_POINTS)
        y = 0.6 * x + 0.8 * generator.normal(size=PERCENTILE_POINTS)
        low, high = correlate(x.tolist(), y.tolist(), drawn).pearson_interval
        holds += low <= 0.6 <= high
    assert 0.9 <= holds / 300 <= 0.985  # three standard errors around 93 to 97 %


def test_ranks_of_shift_do_not_move_with_its_scale() -> None:
    generator = np.random.default_rng(10)
    x, y = generator.normal(size=24), generator.normal(size=24)
    names = [str(index % 12) for index in range(24)]
    plain, skewed = (clustered(one.tolist(), y.tolist(), names) for one in (x, np.exp(2 * x)))
    assert plain.spearman == skewed.spearman and plain.pearson != skewed.pearson


def test_the_band_of_the_line_holds_the_true_line_at_the_stated_rate() -> None:
    generator = np.random.default_rng(8)
    names = [str(index) for index in range(SMALLEST_CLUSTERS)]
    at, holds = np.array([0.0, 1.0]), np.zeros(2)
    for _ in range(400):
        x = generator.normal(size=SMALLEST_CLUSTERS)
        band = line_band(x.tolist(), (0.5 * x + generator.normal(size=SMALLEST_CLUSTERS)).tolist(), names, at)
        assert band is not None
        holds += (band[0] <= 0.5 * at) & (0.5 * at <= band[1])
    assert (holds / 400 >= 0.9).all() and (holds / 400 <= 0.98).all()


def test_a_slope_within_groups_is_that_without_their_means() -> None:
    x, y, groups = [0.0, 1.0, 10.0, 11.0], [5.0, 7.0, -3.0, -1.0], ["a", "a", "b", "b"]
    assert within_groups(x, y, groups) == pytest.approx((2, 1))
    with pytest.raises(UndefinedMetricError, match="no group"):
        within_groups(x, y, list("abcd"))
    with pytest.raises(UndefinedMetricError, match="within groups"):
        within_groups([0.0, 0.0, 1.0, 1.0], y, groups)


def test_numbers_that_are_none_and_controls_that_say_it_all_are_reasons() -> None:
    good, control = [1.0, 2.0, 4.0, 3.0, 7.0], [1.0, 3.0, 2.0, 5.0, 4.0]
    for bad in (math.nan, math.inf):
        with pytest.raises(UndefinedMetricError, match="finite"):
            correlate([*good[:4], bad], good, resamples(5, 5))
        with pytest.raises(UndefinedMetricError, match="finite"):
            partial_pearson(good, control, [[*good[:4], bad]])
    with pytest.raises(UndefinedMetricError, match="entirely"):
        partial_pearson(good, [2.0, 1.0, 5.0, 6.0, 6.0], [[2 * value + 1 for value in good]])
    with pytest.raises(UndefinedMetricError, match="too few"):
        partial_pearson(good[:3], control[:3], [[1.0, 0.0, 1.0]])
