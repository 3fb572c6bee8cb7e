"""Items and seeds at once."""

from __future__ import annotations

import numpy as np
import pytest

from cl_bench.harness.measure.statistics.hierarchical import (
    HIERARCHICAL_ITEMS,
    HIERARCHICAL_SEEDS,
    item_seed_bootstrap,
)

GENERATOR = np.random.default_rng(0)
NOISE = GENERATOR.normal(0, 1, (5, 200))
NOISE -= NOISE.mean()


def width(differences: object) -> float:
    interval = item_seed_bootstrap({"a": differences}).interval  # type: ignore[dict-item]
    assert interval is not None
    return interval[1] - interval[0]


def test_mean_over_columns_seeds_and_items() -> None:
    found = item_seed_bootstrap({"a": [[0, 1], [1, 1]], "b": [[0, 0, 0], [0, 0, 3]]})
    assert found.mean == pytest.approx((0.75 + 0.5) / 2)
    assert found.by_seed == pytest.approx(((0.5 + 0) / 2, (1 + 1) / 2))
    assert (found.seeds, found.items, found.interval) == (2, {"a": 2, "b": 3}, None)


def test_seeds_that_move_together_with_all_items_widen_it() -> None:
    shifts = np.array([-1.0, -0.5, 0.0, 0.5, 1.0])[:, None]
    deviation = shifts.std(ddof=1)
    assert width((NOISE + shifts).tolist()) > 4 * width(NOISE.tolist())
    # Nearly all of it is Student's t over five seeds.
    assert width((NOISE * 0.01 + shifts).tolist()) == pytest.approx(2 * 2.7764 * deviation / 5**0.5, rel=0.15)


def test_items_that_all_seeds_move_alike_widen_it() -> None:
    items = np.random.default_rng(1).normal(0, 1, 200)
    shared = np.tile(items, (5, 1)) + 0.01 * NOISE
    assert width(shared.tolist()) == pytest.approx(2 * 1.96 / 200**0.5, rel=0.15)
    assert width(NOISE.tolist()) < width(shared.tolist()), "answers of their own average out over seeds"


def test_the_same_numbers_give_the_same_interval() -> None:
    assert item_seed_bootstrap({"a": NOISE.tolist()}) == item_seed_bootstrap({"a": NOISE.tolist()})


def test_no_interval_below_the_smallest_design_or_without_spread() -> None:
    assert item_seed_bootstrap({"a": NOISE[: HIERARCHICAL_SEEDS - 1].tolist()}).interval is None
    assert item_seed_bootstrap({"a": NOISE[:, : HIERARCHICAL_ITEMS - 1].tolist()}).interval is None
    assert item_seed_bootstrap({"a": [[0.0] * 200] * 5}).interval is None
    assert item_seed_bootstrap({"a": NOISE.tolist(), "b": NOISE[:, :20].tolist()}).interval is None


@pytest.mark.parametrize("wrong", [{}, {"a": []}, {"a": [[]]}, {"a": [[1.0]], "b": [[1.0], [2.0]]},
                                   {"a": [[1.0, 2.0], [1.0]]}, {"a": [[float("nan")]]}])  # fmt: skip
def test_what_is_no_table_of_numbers_is_refused(wrong: dict[str, list[list[float]]]) -> None:
    with pytest.raises(ValueError):
        item_seed_bootstrap(wrong)
