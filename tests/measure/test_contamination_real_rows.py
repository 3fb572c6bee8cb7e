"""Overlap among the rows of the public data sets."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest

from cl_bench.harness.jsonl import read_jsonl
from cl_bench.harness.measure.contamination import EvaluatedItems, Item, TrainingRow, contamination_table
from cl_bench.harness.measure.contamination_documents import document_item

SAMPLE = os.environ.get("CL_BENCH_SAMPLE_ROWS")
pytestmark = pytest.mark.skipif(not SAMPLE, reason="CL_BENCH_SAMPLE_ROWS names no folder with real rows")


def real(name: str) -> list[dict[str, Any]]:
    return read_jsonl(Path(SAMPLE or "") / f"{name}.jsonl", {})


SUBJECTS = ("chemistry", "biology", "material", "physics")
BENCHMARKS = ("mmlu_stem", "mmlu_pro", "gsm8k_test", "math500", "hellaswag", "piqa", "mbpp", "humaneval", "ifeval")


def real_items() -> dict[str, list[Item]]:
    """The benchmarks of the sample rows, and science rows of every subject."""
    found = {name: [document_item(row["id"], row, "") for row in real(name)] for name in BENCHMARKS}
    return found | {subject: real_science(subject) for subject in SUBJECTS}


def real_science(subject: str) -> list[Item]:
    return [Item(row["id"], row["question"], tuple(row["choices"]["text"])) for row in real(f"science_{subject}")]


def test_the_sample_rows_share_nothing_across_subjects_and_benchmarks() -> None:
    # Those who drew the sample dropped the benchmark questions that stand in the science data.
    training: dict[str, list[Any]] = {subject: real_science(subject) for subject in SUBJECTS}
    training["gsm8k"] = [TrainingRow(row["question"], (), (row["answer"],)) for row in real("gsm8k_train")]
    table = contamination_table(training, real_items())
    flagged = {(name, column) for name, row in table.items() for column, found in row.items() if found.any}
    assert flagged == {(subject, subject) for subject in SUBJECTS}
    for subject in SUBJECTS:
        assert len(table[subject][subject].any) == table[subject][subject].n


def test_benchmark_questions_among_the_science_rows_are_all_found() -> None:
    items = real_items()
    planted = [item for name in ("mmlu_stem", "mmlu_pro") for item in items[name][::10]]
    dressed = [
        TrainingRow(item.question.upper(), item.choices[::-1]) if place % 2 else
        TrainingRow(f"Consider this question of an exam. {item.question}", item.choices[1:] + item.choices[:1])
        for place, item in enumerate(planted)
    ]  # fmt: skip
    chemistry = [TrainingRow(item.question, item.choices) for item in real_science("chemistry")]
    found = EvaluatedItems(items).overlap([*chemistry, *dressed])
    assert found["mmlu_stem"].any | found["mmlu_pro"].any == {item.id for item in planted}
    # Ten options hold the four that the other benchmark had.
    fewer = [TrainingRow(f"Try: {item.question}", item.choices[:4]) for item in items["mmlu_pro"][::10]]
    assert len(EvaluatedItems(items).overlap([*chemistry, *fewer])["mmlu_pro"].items["choices"]) >= len(fewer) - 1


def test_tool_documentation_of_the_real_prompts_is_no_overlap() -> None:
    evaluated = {
        "instruction": [Item(row["id"], row["instruction"]) for row in real("tooluse_eval")],
        "prompt": [Item(row["id"], row["prompt"]) for row in real("tooluse_eval")],
    }
    rows: list[Any] = [row["prompt"] for row in real("tooluse_train")]
    found = contamination_table({"t": rows}, evaluated)["t"]
    assert [overlap.any for overlap in found.values()] == [frozenset(), frozenset()]
    planted = real("tooluse_eval")[5]
    found = contamination_table({"t": [*rows, planted["prompt"]]}, evaluated)["t"]
    assert [overlap.any for overlap in found.values()] == [{planted["id"]}, {planted["id"]}]


def test_physics_questions_that_come_twice_are_found_on_both_sides_of_a_split() -> None:
    physics = real_science("physics")
    random.Random(0).shuffle(physics)
    cut = round(0.8 * len(physics))
    found = contamination_table({"t": physics[:cut]}, {"e": physics[cut:]})["t"]["e"]
    texts = {" ".join(item.question.split()).lower() for item in physics[:cut]}
    twice = {item.id for item in physics[cut:] if " ".join(item.question.split()).lower() in texts}
    assert twice and set(found.items["exact"]) >= twice
