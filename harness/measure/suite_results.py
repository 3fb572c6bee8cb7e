"""From lm-eval's samples to the rows and counts that every other task has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from cl_bench.harness.measure.evaluation import TaskResult, empty_counts
from cl_bench.harness.measure.lm_eval_model import RowRecord
from cl_bench.tasks.retention.benchmarks import Benchmark

_INVALID = "[invalid]"
"""What lm-eval's regular-expression filters answer where they find nothing."""


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
    counts = empty_counts()
    samples: list[dict[str, Any]] = []
    kept: list[int] = []
    for place, index in enumerate(chosen):
        record = records.get((entry.name, place), RowRecord())
        row = _row(benchmark, main[index], filters.get("strict-match", {}).get(index), metric, record)
        samples.append(row)
        _count(row, counts)
        if record.ended != "skipped":
            kept.append(index)
    means = _means(filters, kept) if counts["skipped"] else _numbers(scores)
    value = means.get(f"{metric},{primary or 'none'}")
    return TaskResult(
        task=entry.name,
        metric=entry.metric,
        value=value,
        reason=_reason(counts, value),
        chance=entry.chance,
        counts=counts,
        values={entry.metric: value} if value is not None else {},
        samples=samples,
        group=entry.group,
        version=str(benchmark.task.VERSION),
        tokens=sum(row["tokens"] for row in samples),
        seconds=seconds,
        settings=asdict(entry),
        harness=means,
    )


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
    row |= {"correct": bool(score) if score in (0, 1) else None}
    if row["correct"] is None and isinstance(score, int | float):
        row["score"] = float(score)
    if choices:
        logprobs = [float(response[0][0]) for response in sample["resps"]]
        best = _chosen_option(benchmark.task, sample["doc"], logprobs, metric)
        row |= {"loglikelihoods": logprobs, "parsed": str(best), "format_ok": True, "tokens": 0, "ended": "scored"}
        return row
    text = str(sample["resps"][0][0])
    parsed, format_ok = _reading(benchmark, index, text, sample, strict)
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
) -> tuple[str | None, bool]:
    """Answer read from a generated text, and whether it has the form asked for."""
    if benchmark.rescore is not None:
        score = benchmark.rescore(index, text)
        return score.parsed, score.format_ok
    parsed, wanted = str(sample["filtered_resps"][0]), str((strict or sample)["filtered_resps"][0])
    return (None if parsed == _INVALID else parsed), wanted != _INVALID


def _count(row: Mapping[str, Any], counts: dict[str, int]) -> None:
    if row["ended"] == "skipped":
        counts["skipped"] += 1
        return
    counts["n"] += 1
    counts["correct"] += bool(row["correct"])
    counts["strict"] += bool(row["correct"]) and bool(row["format_ok"])
    counts["parsed"] += row["parsed"] is not None
    counts["truncated"] += row["ended"] == "length"


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
