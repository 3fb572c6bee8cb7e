"""What forgetting and BWT come to by chance alone: their distribution if nothing had changed after a task was learned.

The best of several noisy scores lies above the last one on average, so forgetting is positive without any. A parametric
bootstrap says by how much: every score of a task from its own stage to the last is drawn anew from a binomial
distribution with that cell's number of items and the true share that the cell of the stage that last trained on the
task tells, k right of n as (k + 1/2) / (n + 1), so that a full score has some noise too. Rows are drawn independently,
though they hold the same items: where two stages answer them alike, less than this happens by chance.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from cl_bench.harness.measure.scores import Measure, Scores, UndefinedMetricError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Draws = NDArray[np.float64]
    OfTask = Callable[[Scores, str, Draws], Draws]

RESAMPLES = 4000


def forgetting_under_no_change(scores: Scores) -> Measure:
    """Expected headline forgetting under no change, with the middle 95 % of it.

    The same matrix gives the same numbers, whatever the order of its columns.

    Args:
        scores: The run; a cell's number of items is its count ``n``.
    """
    return _mean_over_tasks(scores, _forgetting)


def backward_transfer_under_no_change(scores: Scores) -> Measure:
    """Expected absolute value of BWT under no change, with the middle 95 % of it."""
    return _mean_over_tasks(scores, _backward_transfer, absolute=True)


def _mean_over_tasks(scores: Scores, of_task: OfTask, absolute: bool = False) -> Measure:
    import numpy as np

    try:
        tasks = scores.earlier_tasks()
        drawn: Draws = np.mean([of_task(scores, task, _draw(scores, task)) for task in tasks], axis=0)
    except UndefinedMetricError as error:
        return Measure(None, str(error))
    drawn = np.abs(drawn) if absolute else drawn
    low, high = np.quantile(drawn, (0.025, 0.975))
    return Measure(float(drawn.mean()), range=(float(low), float(high)))


def _forgetting(scores: Scores, task: str, drawn: Draws) -> Draws:
    best: Draws = drawn[:, :-1].max(axis=1)
    return best - drawn[:, -1]


def _backward_transfer(scores: Scores, task: str, drawn: Draws) -> Draws:
    return drawn[:, -1] - drawn[:, scores.last_learned(task) - scores.first_learned(task)]


def _draw(scores: Scores, task: str) -> Draws:
    """Scores of the task from its own stage to the last, [RESAMPLES, rows]."""
    import numpy as np

    # By the task's name: neither other tasks nor their order change what is drawn.
    seed = int.from_bytes(hashlib.sha256(task.encode()).digest()[:8], "big")
    generator = np.random.default_rng(seed)
    first = scores.first_learned(task)
    columns = []
    share = 0.0
    for position in range(first, len(scores.stages)):
        right, n = _counts(scores, scores.stages[position], task)
        if position in scores.trained_at(task):
            share = (right + 0.5) / (n + 1)
        columns.append(generator.binomial(n, share, RESAMPLES) / n)
    return np.stack(columns, axis=1)


def _counts(scores: Scores, row: str, task: str) -> tuple[float, int]:
    """Right items (a fraction, where answers are graded) and items of a cell."""
    cell, value = scores.cell(row, task), scores.at(row, task)
    n = int(cell.counts.get("n", 0))
    if n < 1:
        raise UndefinedMetricError(f"{row}/{task}: the number of items is not known")
    if not 0 <= value <= 1:
        raise UndefinedMetricError(f"{row}/{task}: {value:g} is no share of items")
    return value * n, n
