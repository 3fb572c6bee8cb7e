"""Smallest detectable effects: against simulations and against closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from cl_bench.harness.measure.statistics.paired import exact_p
from cl_bench.harness.measure.statistics.power import (
    detectable_between_checkpoints,
    detectable_change,
    detectable_over_seeds,
    mcnemar_power,
    t_power,
)


def test_normal_effect_is_2_8_deviations() -> None:
    assert detectable_change(1.0) == pytest.approx(2.8016, abs=1e-4)


@pytest.mark.parametrize(("difference", "discordance", "n"), [(0.0682, 0.1318, 220), (0.1, 0.3, 100), (0.0, 0.2, 150)])
def test_power_of_mcnemar_by_simulation(difference: float, discordance: float, n: int) -> None:
    generator = np.random.default_rng(2)
    shares = [(discordance + difference) / 2, (discordance - difference) / 2, 1 - discordance]
    counts = generator.multinomial(n, shares, 1500)
    found = [exact_p(int(b), int(c)) <= 0.05 for b, c, _ in counts]
    assert mcnemar_power(difference, discordance, n) == pytest.approx(sum(found) / 1500, abs=0.04)


def test_detectable_difference_has_the_power_and_shrinks_with_items() -> None:
    found = [detectable_between_checkpoints(n, 0.2) for n in (100, 400, 1600)]
    assert all(one is not None for one in found)
    assert mcnemar_power(found[0] or 0, 0.2, 100) == pytest.approx(0.8, abs=1e-3)
    # Connor's normal approximation: (1.96 sqrt(d) + .84 sqrt(d - e^2)) / sqrt(n) for large n.
    assert found[2] == pytest.approx(2.8 * (0.2 / 1600) ** 0.5, rel=0.06)
    assert (found[0] or 0) > (found[1] or 0) > (found[2] or 0)


def test_too_few_items_find_nothing() -> None:
    assert detectable_between_checkpoints(10, 0.2) is None


@pytest.mark.parametrize(("n", "discordance"), [(0, 0.1), (10, 0.0), (10, 1.5)])
def test_impossible_designs_are_refused(n: int, discordance: float) -> None:
    with pytest.raises(ValueError, match="no such design"):
        detectable_between_checkpoints(n, discordance)


def test_seeds_by_simulation() -> None:
    effect = detectable_over_seeds(0.02, 5)
    assert effect is not None and t_power(effect / 0.02, 5) == pytest.approx(0.8, abs=1e-3)
    draws = np.random.default_rng(3).normal(effect, 0.02, (4000, 5))
    assert np.mean(ttest_1samp(draws, 0, axis=1).pvalue <= 0.05) == pytest.approx(0.8, abs=0.025)


def test_seeds_that_make_no_claim_detect_nothing() -> None:
    assert detectable_over_seeds(0.02, 4) is None
    for no_spread in (0.0, 1e-17):
        assert detectable_over_seeds(no_spread, 5) is None, "equal differences have no test that finds anything"
    ten, five = detectable_over_seeds(0.02, 10), detectable_over_seeds(0.02, 5)
    assert ten is not None and five is not None and ten < five
    thousand = detectable_over_seeds(0.02, 1000)
    assert thousand == pytest.approx(detectable_change(0.02 / 1000**0.5), rel=0.01)
    with pytest.raises(ValueError, match="standard deviation"):
        detectable_over_seeds(float("nan"), 5)
