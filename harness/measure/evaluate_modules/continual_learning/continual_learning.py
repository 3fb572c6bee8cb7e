"""``evaluate`` module: the matrix metrics of continual learning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import datasets
import evaluate

from cl_bench.harness.measure.metrics import intransigence, measure
from cl_bench.harness.measure.plain_matrix import PlainMatrix
from cl_bench.harness.measure.run_metrics import run_metrics
from cl_bench.harness.measure.scores import Scores

_DESCRIPTION = """
Continual-learning metrics from the scores on every task after every stage: acquisition, gain, retention, average and
average incremental accuracy, backward and forward transfer, forgetting, intransigence; each with a value or a reason.
"""
_INPUTS = """
Args:
    predictions: One row a stage: the scores on every task after it, as fractions; None where one is missing.
    tasks: Names of the tasks, one a score of a row.
    base: Scores of the untouched model on the same tasks.
    learned: The task that each stage trained on, or a list of them; by default stage i trains on task i.
    chance: Score of guessing by task; by default 0.
    items: Number of items by task, for what chance alone gives.
    retention: Scores on benchmarks that are not trained on: name to [base, after stage 1, after stage 2, ...].
    retention_items: Number of items by benchmark.
    joint: Score of joint training by task, for intransigence.
Returns:
    Each metric by name, None where it is undefined, and under ``reasons`` why.
"""
_CITATION = """
Lopez-Paz and Ranzato (2017), Gradient Episodic Memory for Continual Learning, arXiv:1706.08840.
Chaudhry et al. (2018), Riemannian Walk for Incremental Learning, arXiv:1801.10112.
"""


class ContinualLearning(evaluate.Metric):  # type: ignore[misc]  # evaluate has no types
    """The metric that ``evaluate.load`` finds."""

    def _info(self) -> evaluate.MetricInfo:
        features = datasets.Features({"predictions": datasets.Sequence(datasets.Value("float64"))})
        return evaluate.MetricInfo(
            description=_DESCRIPTION, citation=_CITATION, inputs_description=_INPUTS, features=features
        )

    def _compute(
        self,
        predictions: Sequence[Sequence[float | None]],
        tasks: Sequence[str],
        base: Sequence[float | None] | None = None,
        learned: Sequence[str | Sequence[str]] | None = None,
        joint: Mapping[str, float | None] | None = None,
        **columns: Any,
    ) -> dict[str, Any]:
        plain = PlainMatrix.of(predictions, tasks, base, learned, **columns)
        found = run_metrics(plain.matrix, plain.learned)["metrics"]
        if joint is not None:
            scores = Scores(plain.matrix, plain.learned)
            found["intransigence"] = measure(lambda: intransigence(scores, joint)).to_json()
        return {
            **{name: one["value"] for name, one in found.items()},
            "reasons": {name: one["reason"] for name, one in found.items() if "reason" in one},
        }
