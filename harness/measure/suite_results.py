"""From lm-eval's samples to the rows and counts that every other task has."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from cl_bench.harness.measure.lm_eval_model import RowRecord
from cl_bench.harness.measure.sampled import Sampling
from cl_bench.harness.measure.statistics.intervals import Interval, bootstrap_mean, wilson
from cl_bench.harness.measure.task_result import TaskResult, counts_of
from cl_bench.tasks.retention.benchmarks import Benchmark
from cl_bench.tasks.retention.definitions import lm_eval_version
from cl_bench.tasks.retention.suites import SuiteEntry

_INVALID = "[invalid]"
"""What lm-eval's regular-expression filters answer where they find nothing."""
_ANSWER = ("response", "correct", "parsed", "format_ok", "tokens", "ended", "unreliable")
_SHARES = {"parsed_rate": "parsed", "truncated_rate": "truncated"}


def task_result(
    benchmark: Benchmark,
    chosen: Sequence[int],
    logged: Sequence[Mapping[str, Any]],
    scores: Mapping[str, Any],
    records: Mapping[tuple[str | None, int | None], RowRecord],
    seconds: float,
) -> TaskResult:
    """Turn lm-eval's samples and scores of one benchmark into our result; skipped rows are left out of every mean.

    Args:
        benchmark: The benchmark.
        chosen: Indices of the evaluated rows, ascending.
        logged: lm-eval's samples, one per row and filter.
        scores: lm-eval's aggregated numbers.
        records: What the model class noted, by (benchmark, place among the chosen rows).
        seconds: Wall-clock seconds to report.
    """
    entry = benchmark.entry
    metric, _, primary = entry.metric.partition(",")
    filters: dict[str, dict[int, Mapping[str, Any]]] = {}
    for sample in logged:
        filters.setdefault(sample["filter"], {})[sample["doc_id"]] = sample
    main = filters[primary or next(iter(filters))]
    samples: list[dict[str, Any]] = []
    kept: list[int] = []
    computed = 0
    for place, index in enumerate(chosen):
        record = records.get((entry.name, place), RowRecord())
        row = _row(benchmark, main[index], filters.get("strict-match", {}).get(index), metric, record)
        samples.append(row)
        computed += record.computed
        if record.ended != "skipped":
            kept.append(index)
    counts = counts_of(samples)
    means = _means(filters, kept) if counts["skipped"] else _numbers(scores)
    value = means.get(f"{metric},{primary or 'none'}")
    return TaskResult(
        task=entry.name,
        metric=entry.metric,
        value=value,
        reason=_reason(counts, value),
        chance=entry.chance,
        counts=counts,
        values=_values(entry, value, counts),
        intervals=_intervals(benchmark, value, counts, samples),
        samples=samples,
        group=entry.group,
        version=str(benchmark.task.VERSION),
        tokens=sum(row["tokens"] for row in samples),
        computed_tokens=computed,
        seconds=seconds,
        settings=_settings(benchmark, [main[index] for index in chosen]),
        harness=means,
    )


def add_sampled(
    results: Mapping[str, TaskResult],
    drawn: Iterable[Mapping[str, TaskResult]],
    sampling: Sampling,
    without_votes: Collection[str] = (),
) -> None:
    """Put sampled answers and their scores beside the greedy ones.

    Args:
        results: Greedy results by benchmark; changed in place.
        drawn: Results of each sampled pass, for the benchmarks whose answers are generated.
        sampling: Number and temperature.
        without_votes: Benchmarks whose answers are whole texts, which are never equal.
    """
    passes = list(drawn)
    for name in passes[0] if passes else ():
        rows = zip(*(one[name].samples for one in passes), strict=True)
        answers = [_answers(drawn) for drawn in rows]
        results[name].add_sampled(answers, sampling, votes=name not in without_votes)
        results[name].seconds += sum(one[name].seconds for one in passes)
        results[name].computed_tokens += sum(one[name].computed_tokens for one in passes)


def _answers(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]] | None:
    """What the passes drew for one row, without what names it; None where it was skipped."""
    if rows[0]["ended"] == "skipped":
        return None
    return [{key: row[key] for key in _ANSWER if key in row} for row in rows]


def _values(entry: SuiteEntry, value: float | None, counts: Mapping[str, int]) -> dict[str, float]:
    """The primary metric, the same above guessing, and how many answers could be read at all."""
    if value is None:
        return {}
    shares = {name: counts[count] / counts["n"] for name, count in _SHARES.items()}
    return {entry.metric: value, "above_chance": (value - entry.chance) / (1 - entry.chance), **shares}


def _intervals(
    benchmark: Benchmark, value: float | None, counts: Mapping[str, int], samples: Sequence[Mapping[str, Any]]
) -> dict[str, Interval]:
    """Wilson's interval where rows are right or wrong, a bootstrap over rows where each has a share."""
    if value is None:
        return {}
    scores = [row["score"] for row in samples if "score" in row]
    interval = bootstrap_mean(scores) if benchmark.graded else wilson(counts["correct"], counts["n"])
    return {} if interval is None else {benchmark.entry.metric: interval}


def _settings(benchmark: Benchmark, samples: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What decided the numbers: the entry, the worked examples there really were, and every prompt in one hash."""
    prompts = hashlib.sha256()
    for sample in samples:
        for context, *_ in sample["arguments"]:
            prompts.update(hashlib.sha256(context.encode(errors="surrogatepass")).digest())
    settings = benchmark.entry.to_dict() | {"shots": benchmark.shots, "prompts_sha256": prompts.hexdigest()}
    if benchmark.shots_reason is not None:
        settings["shots_reason"] = benchmark.shots_reason
    return settings | ({"lm_eval": lm_eval_version()} if benchmark.entry.source == "lm-eval" else {})


def _reason(counts: Mapping[str, int], value: float | None) -> str | None:
    if value is not None:
        return None
    if not counts["n"]:
        return f"all {counts['skipped']} rows are too long for the model's context"
    return "lm-eval gives no such metric, or it cannot be computed without the rows that are too long"


def _row(
    benchmark: Benchmark,
    sample: Mapping[str, Any],
    strict: Mapping[str, Any] | None,
    metric: str,
    record: RowRecord,
) -> dict[str, Any]:
    index = sample["doc_id"]
    row: dict[str, Any] = {
        "task": benchmark.entry.name,
        "id": benchmark.ids[index],
        "prompt_hash": sample["prompt_hash"],
    }
    choices = benchmark.task.OUTPUT_TYPE == "multiple_choice"
    if record.ended == "skipped":
        empty = {"correct": None, "parsed": None, "format_ok": None, "tokens": 0, "ended": "skipped"}
        return row | {"loglikelihoods" if choices else "response": None} | empty
    score = sample.get(metric)
    row |= {"correct": bool(score) if score in (0, 1) and not benchmark.graded else None}
    if row["correct"] is None and isinstance(score, int | float):
        row["score"] = float(score)
    if choices:
        logprobs = [float(response[0][0]) for response in sample["resps"]]
        best = _chosen_option(benchmark.task, sample["doc"], logprobs, metric)
        row |= {"loglikelihoods": logprobs, "parsed": str(best), "format_ok": True, "tokens": 0, "ended": "scored"}
        return row
    text = str(sample["resps"][0][0]) if record.response is None else record.response
    parsed, format_ok, unreliable = _reading(benchmark, index, text, sample, strict)
    if unreliable is not None:
        row["unreliable"] = unreliable
    row |= {
        "response": text,
        "parsed": parsed,
        "format_ok": format_ok and record.ended != "length",
        "tokens": record.tokens,
        "ended": record.ended,
    }
    return row


def _chosen_option(task: Any, document: Any, logprobs: Sequence[float], metric: str) -> int:
    """Index of the option a model prefers, by the metric's own rule: ``acc_norm`` divides by the option's length."""
    lengths = [len(choice) for choice in task.doc_to_choice(document)] if metric == "acc_norm" else [1] * len(logprobs)
    return max(range(len(logprobs)), key=lambda index: logprobs[index] / lengths[index])


def _reading(
    benchmark: Benchmark, index: int, text: str, sample: Mapping[str, Any], strict: Mapping[str, Any] | None
) -> tuple[str | None, bool, str | None]:
    """Answer read from a text, whether it has the form asked for, and why its verdict is in doubt, or None."""
    if benchmark.rescore is not None:
        score = benchmark.rescore(index, text)
        return score.parsed, score.format_ok, score.unreliable
    parsed, wanted = str(sample["filtered_resps"][0]), str((strict or sample)["filtered_resps"][0])
    return (None if parsed == _INVALID else parsed), wanted != _INVALID, None


def _means(filters: Mapping[str, Mapping[int, Mapping[str, Any]]], kept: Sequence[int]) -> dict[str, float]:
    """Means over the rows that were not skipped, of metrics that are one number a row."""
    means: dict[str, float] = {}
    for name, rows in filters.items():
        for metric in rows[kept[0]]["metrics"] if kept else ():
            values = [rows[index][metric] for index in kept]
            if all(isinstance(value, int | float) for value in values):
                means[f"{metric},{name}"] = float(sum(values) / len(values))
    return means


def _numbers(scores: Mapping[str, Any]) -> dict[str, float]:
    """lm-eval's own numbers as plain floats; names, counts and absent standard errors left out."""
    keys = (key for key in scores if "," in key and "_stderr" not in key)
    return {key: float(scores[key]) for key in keys if not isinstance(scores[key], str)}
