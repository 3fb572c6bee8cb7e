"""A question that leaks often is found as one that leaks once; what only looks like it, a template, is not."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cl_bench.harness.jsonl import read_jsonl
from cl_bench.harness.measure.contamination import EvaluatedItems, Item, TrainingRow
from tests.measure.test_contamination import options, sentence

TIMES = (1, 2, 5, 6, 20, 200)
SAMPLE = os.environ.get("CL_BENCH_SAMPLE_ROWS")
QUESTION, OPTIONS = sentence("target", 26), options("target")
SHORT, TELLING = sentence("short target", 9), sentence("telling target", 8)
PASSAGE = " ".join(sentence(f"passage-{i}", 15) for i in range(4))
PLAIN, CHOICE = Item("target", QUESTION), Item("target", QUESTION, OPTIONS)
OTHERS = [
    TrainingRow(sentence(f"row-{i}", 20), options(f"row-{i}") if i % 2 else (), (sentence(f"text-{i}", 30),))
    for i in range(90)
]
BESIDE = [Item(f"beside-{i}", sentence(f"beside-{i}", 20), options(f"beside-{i}") if i % 2 else ()) for i in range(9)]


def kinds(items: list[Item], planted: list[TrainingRow]) -> dict[str, set[str]]:
    """Kinds by id of what is found of items, with nine others beside, in ninety rows and the planted ones."""
    (found,) = EvaluatedItems({"column": [*BESIDE, *items]}).overlap([*OTHERS, *planted]).values()
    return {name: {kind for kind, ids in found.items.items() if name in ids} for name in found.any}


def lead(i: int, length: int = 6) -> str:
    return sentence(f"lead-{i}", length)


def permuted(i: int) -> tuple[str, ...]:
    return tuple(random.Random(i).sample(OPTIONS, len(OPTIONS)))


Plant = Callable[[int], TrainingRow]
LEAKS: dict[str, tuple[Item, Plant, set[str]]] = {
    "the same": (PLAIN, lambda i: TrainingRow(QUESTION), {"exact", "ngram"}),
    "another sentence before each": (PLAIN, lambda i: TrainingRow(f"{lead(i)} {QUESTION}"), {"exact", "ngram"}),
    "other words before each": (PLAIN, lambda i: TrainingRow(f"{lead(i)[:-1]} {QUESTION}"), {"ngram"}),
    "other words after each": (PLAIN, lambda i: TrainingRow(f"{QUESTION[:-1]} {lead(i)}"), {"ngram"}),
    "quoted in generated texts": (
        PLAIN, lambda i: TrainingRow(lead(i), (), (f'The book asks "{QUESTION}" and {lead(-i)}',)), {"exact", "ngram"},
    ),
    "with options, quoted in the texts of others": (
        CHOICE, lambda i: TrainingRow(lead(i), options(i), (f"It asks: {QUESTION} {lead(-i)}",)), {"exact", "ngram"},
    ),
    "options permuted": (CHOICE, lambda i: TrainingRow(QUESTION, permuted(i)), {"exact", "ngram", "choices"}),
    "options permuted, a sentence before": (
        CHOICE, lambda i: TrainingRow(f"{lead(i)} {QUESTION}", permuted(i)), {"exact", "ngram", "choices"},
    ),
    "options permuted, words before": (
        CHOICE, lambda i: TrainingRow(f"{lead(i)[:-1]} {QUESTION}", permuted(i)), {"ngram", "choices"},
    ),
    "short, options permuted, words before": (
        Item("target", SHORT, OPTIONS), lambda i: TrainingRow(f"{lead(i)[:-1]} {SHORT}", permuted(i)), {"choices"},
    ),
    "short, quoted": (
        Item("target", TELLING), lambda i: TrainingRow(lead(i), (), (f"{lead(-i)} {TELLING} {lead(i)}",)), {"exact"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize("name", LEAKS)
def test_a_leak_is_found_however_often_it_comes(name: str, times: int) -> None:
    item, plant, expected = LEAKS[name]
    assert kinds([item], [plant(i) for i in range(1, times + 1)]) == {"target": expected}


@pytest.mark.parametrize("times", TIMES)
def test_questions_on_one_passage_are_found_where_both_leak(times: int) -> None:
    items = [Item(f"on-{i}", f"{PASSAGE} {sentence(f'on-{i}', 9)}") for i in range(2)]
    planted = [TrainingRow(f"{lead(i)} {item.question}") for item in items for i in range(times)]
    assert kinds(items, planted) == {item.id: {"exact", "ngram"} for item in items}
    # One of them leaks; the other shares the passage only, which stands in as many rows.
    assert kinds(items, [*planted[:times], *(TrainingRow(f"{PASSAGE} {lead(i)}") for i in range(20))]) == {
        "on-0": {"exact", "ngram"}
    }


def test_all_of_a_question_is_looked_for_and_not_its_words_over_two_texts() -> None:
    half = QUESTION.split()
    rows = [TrainingRow(f"{lead(i)[:-1]} {' '.join(half[:-1])} {lead(-i)}") for i in range(1, 21)]
    assert kinds([PLAIN], rows) == {}
    rows = [TrainingRow(lead(i), (), (" ".join(half[:14]), " ".join(half[14:]))) for i in range(1, 21)]
    assert kinds([PLAIN], rows) == {}


HEADER = sentence("header", 30)
STEM = sentence("stem", 16)


@pytest.mark.parametrize("of_ten", [1, 3, 9])
def test_a_template_of_many_rows_is_no_overlap(of_ten: int) -> None:
    def asked(name: str, i: int) -> str:
        return f"{HEADER} {sentence(f'{name}-{i}', 12)}" if i % 10 < of_ten else sentence(f"{name}-{i}", 18)

    items = [Item(f"e-{i}", asked("e", i), options(f"e-{i}") if i % 2 else ()) for i in range(40)]
    rows = [TrainingRow(asked("t", i), options(f"t-{i}") if i % 2 else ()) for i in range(300)]
    assert kinds(items, rows) == {}
    # The first has the template.
    rows += [TrainingRow(f"{lead(i)[:-1]} {items[0].question}") for i in range(30)]
    assert kinds(items, rows) == {"e-0": {"ngram"}}


@pytest.mark.parametrize("end", ["?", ""])
def test_a_stem_that_many_rows_have_with_words_before_asks_nothing_by_itself(end: str) -> None:
    items = [Item(f"e-{i}", STEM, options(f"e-{i}")) for i in range(5)]
    rows = [TrainingRow(f"{lead(i)[:-1]}{end} {STEM}", options(f"t-{i}")) for i in range(40)]
    assert kinds(items, rows) == {}
    assert kinds(items, [*rows, TrainingRow(f"{lead(0)} {STEM}", items[3].choices[::-1])]) == {"e-3": {"choices"}}


def test_a_turn_of_phrase_in_many_texts_is_no_repeat() -> None:
    item = Item("target", sentence("phrase", 5))
    rows = [TrainingRow(lead(i), (), (f"{lead(-i)} {item.question} {lead(i)}",)) for i in range(1, 21)]
    assert kinds([item], rows[:5]) == {"target": {"exact"}}
    assert kinds([item], rows) == {}


def test_options_of_many_questions_do_not_name_one() -> None:
    choices = ("rises", "falls", "stays")
    items = [Item(f"e-{i}", f"{sentence('of all', 9)[:-1]} {sentence(f'e-{i}', 2)}", choices) for i in range(3)]
    rows = [TrainingRow(f"{sentence('of all', 9)[:-1]} {sentence(f't-{i}', 2)}", choices) for i in range(20)]
    assert kinds(items, rows) == {}


@pytest.mark.skipif(not SAMPLE, reason="CL_BENCH_SAMPLE_ROWS names no folder with real rows")
@pytest.mark.parametrize("times", [1, 6, 60])
def test_real_questions_that_leak_often_are_found_among_real_rows(times: int) -> None:
    def real(name: str) -> list[dict[str, Any]]:
        return read_jsonl(Path(SAMPLE or "") / f"{name}.jsonl", {})

    items = {
        "mmlu": [Item(row["id"], row["question"], tuple(row["choices"])) for row in real("mmlu_stem")],
        "gsm8k": [Item(row["id"], row["question"]) for row in real("gsm8k_test")],
    }
    rows = [TrainingRow(row["question"], tuple(row["choices"]["text"])) for row in real("science_physics")]
    evaluated = EvaluatedItems(items)
    assert [found.any for found in evaluated.overlap(rows).values()] == [frozenset(), frozenset()]
    leaked = [items["mmlu"][7], items["mmlu"][70], items["gsm8k"][5]]
    planted = [TrainingRow(f"{lead(i)} {item.question}", item.choices[::-1]) for item in leaked for i in range(times)]
    found = evaluated.overlap([*rows, *planted])
    assert found["mmlu"].any | found["gsm8k"].any == {item.id for item in leaked}
