"""Coverage of every interval type at the smallest design that it is printed for, as a Markdown table.

    python benchmarks/interval_coverage.py [REPLICATIONS]

A line is one truth: the share of replications (2,000 unless told otherwise, from a fixed seed) whose interval holds the
true value. An interval type passes where every truth of its range is covered 93 to 97 % of the time; truths marked
"outside" show what happens beyond the range and do not count. The exit status is 1 where a type does not pass.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cl_bench.harness.measure.statistics.hierarchical import (
    HIERARCHICAL_ITEMS,
    HIERARCHICAL_SEEDS,
    item_seed_bootstrap,
)
from cl_bench.harness.measure.statistics.intervals import (
    BOOTSTRAP_ITEMS,
    WILSON_ITEMS,
    Interval,
    bootstrap_mean,
    wilson,
)
from cl_bench.harness.measure.statistics.paired import PAIRED_ITEMS, paired_bootstrap
from cl_bench.harness.measure.statistics.seeds import SMALLEST_SEEDS, mean_interval, paired_difference

REPLICATIONS = 2000
LOWEST, HIGHEST = 0.93, 0.97
Array = NDArray[np.float64]
Draw = Callable[[np.random.Generator], Interval | None]


@dataclass(frozen=True)
class Case:
    """One truth of one interval type.

    Attributes:
        interval: The interval type.
        design: The smallest design that it is printed for.
        truth: What the numbers are drawn from.
        value: The true value.
        draw: Draws numbers and gives their interval.
        outside: Whether the truth lies outside the range that the interval is meant for.
    """

    interval: str
    design: str
    truth: str
    value: float
    draw: Draw
    outside: bool = False


def wilson_case(share: float, outside: bool = False) -> Case:
    def draw(generator: np.random.Generator) -> Interval | None:
        return wilson(int(generator.binomial(WILSON_ITEMS, share)), WILSON_ITEMS)

    return Case("Wilson, share of right items", f"{WILSON_ITEMS} items", f"share {share:g}", share, draw, outside)


def bootstrap_case(a: float, b: float) -> Case:
    """Four answers an item, right with a probability that is beta(a, b) over items."""

    def draw(generator: np.random.Generator) -> Interval | None:
        return bootstrap_mean(list(generator.binomial(4, generator.beta(a, b, BOOTSTRAP_ITEMS)) / 4))

    truth = f"share right of 4 answers, beta({a:g}, {b:g}) over items"
    return Case("bootstrap, mean over items", f"{BOOTSTRAP_ITEMS} items", truth, a / (a + b), draw)


def paired_case(discordance: float, difference: float, outside: bool = False) -> Case:
    """Right or wrong items of two checkpoints."""
    shares = [(discordance + difference) / 2, (discordance - difference) / 2, 1 - discordance]

    def draw(generator: np.random.Generator) -> Interval | None:
        kinds = generator.choice(3, PAIRED_ITEMS, p=shares)
        return paired_bootstrap(list(kinds == 0), list(kinds == 1)).interval

    truth = f"difference {difference:g}, {100 * discordance:g} % of items differ"
    return Case("paired bootstrap, items", f"{PAIRED_ITEMS} items", truth, difference, draw, outside)


def graded_case(deviation: float) -> Case:
    """Graded answers of two checkpoints, a normal change of each item."""

    def draw(generator: np.random.Generator) -> Interval | None:
        first = generator.random(PAIRED_ITEMS)
        return paired_bootstrap(list(first + generator.normal(0.05, deviation, PAIRED_ITEMS)), list(first)).interval

    truth = f"graded, each item moves by normal(.05, {deviation:g})"
    return Case("paired bootstrap, items", f"{PAIRED_ITEMS} items", truth, 0.05, draw)


def over_seeds(generator: np.random.Generator, deviation: float, items: int) -> Array:
    """Scores of a method by seed: its true accuracy moves with the seed, and the items are sampled."""
    true = np.clip(generator.normal(0.6, deviation, SMALLEST_SEEDS), 0, 1)
    scores: Array = generator.binomial(items, true) / items
    return scores


def mean_case(deviation: float, items: int) -> Case:
    def draw(generator: np.random.Generator) -> Interval | None:
        return mean_interval(list(over_seeds(generator, deviation, items)))

    truth = f"accuracy .6, sd over seeds {deviation:g}, {items} items"
    return Case("t, mean over seeds", f"{SMALLEST_SEEDS} seeds", truth, 0.6, draw)


def difference_case(deviation: float, items: int) -> Case:
    def draw(generator: np.random.Generator) -> Interval | None:
        first, second = (dict(enumerate(over_seeds(generator, deviation, items))) for _ in range(2))
        return paired_difference(first, second).interval

    truth = f"two equal methods, sd over seeds {deviation:g}, {items} items"
    return Case("t, differences paired by seed", f"{SMALLEST_SEEDS} seeds", truth, 0.0, draw)


def hierarchical_case(columns: int, of_items: float, of_seeds: float) -> Case:
    """Final answer minus base answer: the chance of a right final answer moves with item and seed."""

    def final(base: Array, items: Array, seeds: Array) -> Array:
        chance: Array = np.where(base == 1, 0.75, 0.25) + items + seeds
        return chance

    def draw(generator: np.random.Generator) -> Interval | None:
        seeds = generator.uniform(-of_seeds, of_seeds, (HIERARCHICAL_SEEDS, 1))
        differences = {}
        for column in range(columns):
            base = (generator.random(HIERARCHICAL_ITEMS) < 0.6).astype(float)
            chance = final(base, generator.uniform(-of_items, of_items, HIERARCHICAL_ITEMS), seeds)
            differences[str(column)] = ((generator.random(chance.shape) < chance) - base).tolist()
        return item_seed_bootstrap(differences).interval

    truth = f"{columns} column{'s' * (columns > 1)}, items move by {of_items:g}, seeds by {of_seeds:g} at most"
    design = f"{HIERARCHICAL_SEEDS} seeds x {HIERARCHICAL_ITEMS} items"
    return Case("item x seed bootstrap", design, truth, 0.6 * 0.75 + 0.4 * 0.25 - 0.6, draw)


def cases() -> Iterator[Case]:
    """Every interval type with the truths that it is judged by."""
    yield from (wilson_case(share) for share in (0.1, 0.25, 0.5, 0.75, 0.9))
    yield from (wilson_case(share, outside=True) for share in (0.0025, 0.02, 0.05, 0.98, 0.9975))
    yield from (bootstrap_case(a, b) for a, b in ((1, 1), (0.5, 2), (2, 0.5), (5, 5)))
    yield from (paired_case(0.1, difference) for difference in (0.0, 0.05, 0.09))
    yield from (paired_case(discordance, 0.1) for discordance in (0.2, 0.5))
    yield from (paired_case(0.03, difference, outside=True) for difference in (0.0, 0.02))
    yield from (graded_case(deviation) for deviation in (0.1, 0.3))
    for deviation, items in ((0.0, 100), (0.02, 100), (0.05, 100), (0.02, 1000)):
        yield mean_case(deviation, items)
        yield difference_case(deviation, items)
    for columns in (1, 8):
        yield from (
            hierarchical_case(columns, *sizes) for sizes in ((0, 0), (0.2, 0), (0, 0.2), (0.1, 0.05), (0.1, 0.15))
        )


def coverage(case: Case, replications: int) -> float:
    """Share of replications whose interval holds the true value; where none is printed, none is counted."""
    # By the case's own name: the numbers stay the same when cases are added.
    name = f"{case.interval}|{case.design}|{case.truth}"
    generator = np.random.default_rng(int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big"))
    found = [interval for _ in range(replications) if (interval := case.draw(generator)) is not None]
    return sum(low <= case.value <= high for low, high in found) / len(found)


def main(replications: int = REPLICATIONS) -> int:
    """Print the table; 1 where a truth in its range is not covered as often as it should be."""
    print(f"| interval | smallest design | truth | coverage of 95 %, {replications} replications |")
    print("|---|---|---|---|")
    failed = 0
    for case in cases():
        share = coverage(case, replications)
        good = LOWEST <= share <= HIGHEST
        remark = " (outside)" if case.outside else "" if good else " FAILS"
        failed += not (good or case.outside)
        print(f"| {case.interval} | {case.design} | {case.truth} | {100 * share:.1f}{remark} |", flush=True)
    print(f"\n{failed} truths in range outside {100 * LOWEST:.0f} to {100 * HIGHEST:.0f} %")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
