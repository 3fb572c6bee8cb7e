"""Coverage of the intervals of a correlation and of its line, at the smallest design that they are printed for.

    python benchmarks/correlation_coverage.py [REPLICATIONS]

Shift and outcome are drawn from two normal distributions with a given correlation, for eight clusters of one point
(runs with one adaptation each) and eight of three points that share half of their variance. A correlation of 0 is what
permuted labels give. "Outside": a shift whose logarithm is normal, so that the relation is no line and r no summary of
it. The plain percentile interval over points is recorded for comparison from 100 independent points on; eight and
thirty are outside.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator

import numpy as np
from interval_coverage import HIGHEST, LOWEST, REPLICATIONS, Array, Case, coverage

from cl_bench.harness.compare.correlation import PERCENTILE_POINTS
from cl_bench.harness.compare.regression import line_band
from cl_bench.harness.measure.correlation import SMALLEST_CLUSTERS, ClusterIntervals, clustered, correlate, resamples
from cl_bench.harness.measure.statistics.intervals import Interval

SHARED = 0.5
"""Share of the variance of points in one cluster that they have in common."""


def drawn(
    generator: np.random.Generator, r: float, points: int, clusters: int = SMALLEST_CLUSTERS
) -> tuple[Array, Array]:
    """Shift and outcome of clusters of so many points, correlated within and between."""
    mixing = np.linalg.cholesky(np.array([[1, r], [r, 1]])).T
    own = generator.normal(size=(clusters, points, 2)) @ mixing
    if points > 1:
        common = generator.normal(size=(clusters, 1, 2)) @ mixing
        own = math.sqrt(SHARED) * common + math.sqrt(1 - SHARED) * own
    return own[..., 0].ravel(), own[..., 1].ravel()


def names(points: int) -> list[str]:
    return [str(cluster) for cluster in range(SMALLEST_CLUSTERS) for _ in range(points)]


def design(points: int) -> str:
    return f"{SMALLEST_CLUSTERS} clusters of {points} point{'s' * (points > 1)}"


def clustered_case(rank: bool, r: float, points: int, skewed: bool = False) -> Case:
    def draw(generator: np.random.Generator) -> Interval | None:
        x, y = drawn(generator, r, points)
        found: ClusterIntervals = clustered((np.exp(x) if skewed else x).tolist(), y.tolist(), names(points))
        return found.spearman if rank else found.pearson

    true = 6 / math.pi * math.asin(r / 2) if rank else r / math.sqrt(math.e - 1) if skewed else r
    truth = f"correlation {r:g}" + (", shift log-normal" if skewed else "")
    kind = f"cluster bootstrap, {'Spearman' if rank else 'Pearson'}"
    return Case(kind, design(points), truth, true, draw, skewed)


def percentile_case(r: float, points: int) -> Case:
    def draw(generator: np.random.Generator) -> Interval:
        x, y = drawn(generator, r, 1, points)
        return correlate(x.tolist(), y.tolist(), resamples(len(x))).pearson_interval

    outside = points < PERCENTILE_POINTS
    return Case("plain percentile, Pearson", f"{points} points", f"correlation {r:g}", r, draw, outside)


def band_case(r: float, points: int, at: float) -> Case:
    def draw(generator: np.random.Generator) -> Interval | None:
        x, y = drawn(generator, r, points)
        band = line_band(x.tolist(), y.tolist(), names(points), np.array([at]))
        return None if band is None else (float(band[0][0]), float(band[1][0]))

    truth = f"correlation {r:g}, {at:g} sd from the mean"
    return Case("jackknife over clusters, line", design(points), truth, r * at, draw)


def cases() -> Iterator[Case]:
    """Every interval type with the truths that it is judged by."""
    for points in (1, 3):
        for r in (0.0, 0.5, -0.9):
            yield from (clustered_case(rank, r, points) for rank in (False, True))
            yield from (band_case(r, points, at) for at in (0.0, 1.0))
    yield from (clustered_case(False, r, 1, skewed=True) for r in (0.0, 0.5, -0.9))
    for points in (SMALLEST_CLUSTERS, 30, PERCENTILE_POINTS):
        yield from (percentile_case(r, points) for r in (0.0, 0.5, -0.9))


def main(replications: int = REPLICATIONS) -> int:
    """Print the table; 1 where a truth in its range is not covered as often as it should be."""
    print(f"| interval | smallest design | truth | coverage of 95 %, {replications} replications |")
    print("|---|---|---|---|")
    failed = 0
    for case in cases():
        share = coverage(case, replications)
        good = LOWEST <= share <= HIGHEST
        failed += not (good or case.outside)
        remark = " (outside)" if case.outside else "" if good else " FAILS"
        print(f"| {case.interval} | {case.design} | {case.truth} | {100 * share:.1f}{remark} |", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
