"""What a model scored on one task or benchmark, and how its rows are counted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cl_bench.harness.generation.base import Completion
from cl_bench.harness.measure.sampled import SampledRow, Sampling, sampled_values
from cl_bench.harness.measure.statistics.intervals import Interval
from cl_bench.tasks.base import Score

_LM_EVAL_NAMES = {"accuracy": "acc"}
_COUNTS = ("n", "correct", "strict", "parsed", "truncated", "skipped", "unreliable")


@dataclass(slots=True)
class TaskResult:
    """What a model scored on one task.

    Attributes:
        task: Name of the task or benchmark.
        metric: Name of the primary metric.
        value: Primary metric as a fraction, or None.
        reason: Why ``value`` is None, else None.
        chance: Value of guessing, as a fraction.
        counts: ``n`` (rows scored), ``correct``, ``strict``, ``parsed``, ``truncated``, ``skipped``, ``unreliable``.
        values: Further metrics by name.
        intervals: 95 % intervals of metrics, by name.
        samples: One row per item: ``task, id, prompt_hash, response | loglikelihoods, correct, parsed, format_ok,
            tokens, ended``, and ``sampled`` where several answers were drawn.
        group: Group of a retention benchmark, or None.
        version: Version of the task's data and scorer.
        tokens: Tokens generated.
        computed_tokens: Tokens that went through the model: prompts, continuations and answers, sampled ones too.
        seconds: Wall-clock seconds.
        settings: What else decided the numbers (shots, chat template, generation), as JSON.
        harness: Further metrics under lm-eval's own keys.
    """

    task: str
    metric: str
    value: float | None
    reason: str | None
    chance: float
    counts: dict[str, int] = field(default_factory=dict)
    values: dict[str, float] = field(default_factory=dict)
    intervals: dict[str, Interval] = field(default_factory=dict)
    samples: list[dict[str, Any]] = field(default_factory=list)
    group: str | None = None
    version: str = "1"
    tokens: int = 0
    computed_tokens: int = 0
    seconds: float = 0.0
    settings: dict[str, Any] = field(default_factory=dict)
    harness: dict[str, Any] = field(default_factory=dict)

    def results_json(self) -> dict[str, Any]:
        """Content of ``results.json``, with the keys of lm-eval's result files."""
        own = {name if "," in name else f"{_LM_EVAL_NAMES.get(name, name)},none": v for name, v in self.values.items()}
        scores: dict[str, Any] = {"alias": self.task, **own, **self.harness}
        n, skipped = self.counts.get("n", 0), self.counts.get("skipped", 0)
        return {
            "results": {self.task: scores},
            "versions": {self.task: self.version},
            "n-samples": {self.task: {"original": n + skipped, "effective": n}},
            "higher_is_better": {self.task: {self.metric: True}},
            "config": {**self.settings, "metric": self.metric, "chance": self.chance},
            "counts": dict(self.counts),
            "tokens": {"generated": self.tokens, "computed": self.computed_tokens},
            "intervals": {name: list(interval) for name, interval in self.intervals.items()},
            "reason": self.reason,
        }

    def add_sampled(
        self, answers: Sequence[Sequence[SampledRow] | None], sampling: Sampling, votes: bool = True
    ) -> None:
        """Put sampled answers and their scores beside the greedy ones.

        Args:
            answers: The answers to each row of ``samples``, ``sampling.n`` each; None for a row that was skipped.
            sampling: Number and temperature.
            votes: Whether answers can be equal, so that the most frequent one is worth counting.
        """
        for row, drawn in zip(self.samples, answers, strict=True):
            if drawn is not None:
                row["sampled"] = list(drawn)
                self.tokens += sum(answer["tokens"] for answer in drawn)
        kept = [drawn for drawn in answers if drawn is not None]
        self.settings |= {"samples": sampling.n, "sampling_temperature": sampling.temperature}
        if any(answer["correct"] is None for drawn in kept for answer in drawn):
            return  # a share of each row, which is neither right nor wrong
        values, intervals = sampled_values(kept, votes)
        self.values |= values
        self.intervals |= intervals


def answer_row(completion: Completion, score: Score) -> dict[str, Any]:
    """An answer as it is stored; one that was cut off has no good form."""
    row = {
        "response": completion.text,
        "correct": score.correct,
        "parsed": score.parsed,
        "format_ok": score.format_ok and completion.ended != "length",
        "tokens": len(completion.ids),
        "ended": completion.ended,
    }
    return row | ({"unreliable": score.unreliable} if score.unreliable else {})


def counts_of(rows: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """The counts of a result from its rows: ``n`` (rows scored) and those of them that have each property."""
    counts = dict.fromkeys(_COUNTS, 0)
    for row in rows:
        if row["ended"] == "skipped":
            counts["skipped"] += 1
            continue
        counts["n"] += 1
        counts["correct"] += bool(row["correct"])
        counts["strict"] += bool(row["correct"]) and bool(row["format_ok"])
        counts["parsed"] += row["parsed"] is not None
        counts["truncated"] += row["ended"] == "length"
        counts["unreliable"] += "unreliable" in row
    return counts
