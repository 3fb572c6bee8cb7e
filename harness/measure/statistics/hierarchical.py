"""Items and seeds at once: a bootstrap of mean differences that holds for other items and other seeds.

Every seed answers the same items, so seeds and items are crossed. Items (within each column) and seeds are resampled
apart and their deviations added: a joint draw of both (the pigeonhole bootstrap) would count the residual variance,
what is neither the item's nor the seed's, three times (Owen 2007, 0712.1111). The part of the seeds' deviations that
the residual explains is taken off, since the items' deviations hold it already; the rest, which comes from few seeds,
is widened as Student's t is wider than their bootstrap (Hesterberg, 1411.5279).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cl_bench.harness.measure.statistics.intervals import LEVEL, RESAMPLES, Interval, expansion, resampled_means

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

HIERARCHICAL_SEEDS = 5
"""Fewest seeds of an interval."""
HIERARCHICAL_ITEMS = 100
"""Fewest items of each column of an interval."""


@dataclass(frozen=True, slots=True)
class Hierarchical:
    """A mean difference over columns, seeds and items.

    Attributes:
        mean: Mean over columns of the mean over seeds and items.
        interval: 95 % interval over items and seeds; None for too few of either, or without spread.
        seeds: Number of seeds.
        items: Number of items by column.
        by_seed: Mean over columns of each seed.
    """

    mean: float
    interval: Interval | None
    seeds: int
    items: Mapping[str, int]
    by_seed: tuple[float, ...]


def item_seed_bootstrap(differences: Mapping[str, Sequence[Sequence[float]]], level: float = LEVEL) -> Hierarchical:
    """Mean difference with an interval over items and seeds; the same numbers give the same interval.

    Args:
        differences: By column, [seeds, items]: a score minus another of the same seed and item (last row minus base,
            one method minus another). All columns have the same seeds in the same order.
        level: Coverage, as a fraction.

    Raises:
        ValueError: No numbers, rows of different lengths, or a number that is not finite.
    """
    import numpy as np

    columns = {name: np.array(rows, dtype=float) for name, rows in differences.items()}
    seeds = {len(array) for array in columns.values()}
    if len(seeds) != 1 or not all(array.ndim == 2 and array.size for array in columns.values()):
        raise ValueError(
            "differences are needed for the same seeds in every column, and for the same items of each seed"
        )
    if not all(np.isfinite(array).all() for array in columns.values()):
        raise ValueError("a difference is no finite number")
    n = seeds.pop()
    by_seed = np.mean([array.mean(axis=1) for array in columns.values()], axis=0)
    items = {name: array.shape[1] for name, array in columns.items()}
    mean = float(by_seed.mean())
    enough = n >= HIERARCHICAL_SEEDS and min(items.values()) >= HIERARCHICAL_ITEMS
    interval = _interval(list(columns.values()), by_seed, level) if enough else None
    return Hierarchical(mean, interval, n, items, tuple(map(float, by_seed)))


def _interval(columns: Sequence[Array], by_seed: Array, level: float) -> Interval | None:
    import numpy as np

    generator, seeds = np.random.default_rng(0), len(by_seed)
    drawn, residual = np.zeros(RESAMPLES), 0.0
    for array in columns:
        of_items = array.mean(axis=0)
        items = len(of_items)
        widened = math.sqrt(items / (items - 1))
        drawn += widened * (resampled_means(of_items, generator) - of_items.mean()) / len(columns)
        left = array - of_items - array.mean(axis=1, keepdims=True) + array.mean()
        residual += (left**2).sum() / ((seeds - 1) * (items - 1)) / (seeds * items) / len(columns) ** 2
    of_seeds = by_seed.var(ddof=1) / seeds
    own = math.sqrt(max(0.0, 1 - residual / of_seeds)) if of_seeds > 0 else 0.0
    drawn += own * expansion(seeds, level) * (resampled_means(by_seed, generator) - by_seed.mean())
    low, high = by_seed.mean() + np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return (float(low), float(high)) if low < high else None
