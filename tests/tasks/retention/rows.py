"""Invented rows in the schema of every benchmark of ``retention-14``, and the answers that are right for them."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.tasks.sources.rows import Row, math_row, write_hub_folder, write_jsonl

COUNT = 24
"""Rows of each benchmark: more than the smoke tier takes."""


def ifeval_row(n: int) -> Row:
    checks: list[tuple[str, Row]] = [
        ("punctuation:no_comma", {}),
        ("length_constraints:number_sentences", {"relation": "at least", "num_sentences": 3}),
        ("change_case:english_lowercase", {}),
    ]
    name, arguments = checks[n % len(checks)]
    prompt = f"Describe boat {n}."
    return {
        "id": f"if-{n}",
        "key": n,
        "prompt": prompt,
        "instruction_id_list": [name],
        "kwargs": [arguments],
    }


def hellaswag_row(n: int) -> Row:
    return {
        "id": f"h-{n}",
        "ind": n,
        "activity_label": "Boats",
        "ctx": f"Boat {n} leaves.",
        "ctx_a": f"Boat {n} leaves.",
        "ctx_b": "",
        "endings": ["It sails.", "It flies away.", "It sings.", "It is tea."],
        "label": str(n % 4),
    }


def winogrande_row(n: int) -> Row:
    sentence = f"Boat {n} passed the pier because the _ was fast."
    return {"id": f"w-{n}", "sentence": sentence, "option1": "boat", "option2": "pier", "answer": str(n % 2 + 1)}


def piqa_row(n: int) -> Row:
    return {"id": f"p-{n}", "goal": f"tie knot {n}", "sol1": "use rope", "sol2": "use tea", "label": n % 2}


def truthfulqa_row(n: int) -> Row:
    choices = [f"It is {n}.", f"Nobody knows {n}.", f"It was {n}."][: 2 + n % 2]
    targets = {"choices": choices, "labels": [1, 0, 0][: len(choices)]}
    return {"id": f"t-{n}", "question": f"Which pier has number {n}?", "mc1_targets": targets, "mc2_targets": targets}


def mmlu_row(n: int) -> Row:
    subject = ("high_school_boating", "college_boating", "anatomy")[n % 3]
    choices = [f"pier {n + d}" for d in range(4)]
    return {"id": f"m-{n}", "question": f"Where is boat {n}? ", "type": subject, "choices": choices, "answer": n % 4}


def mmlu_pro_row(n: int, split: str = "test") -> Row:
    count = 10 - n % 5
    return {
        "id": f"mp-{split}-{n}",
        "question_id": n,
        "question": f"How many sails has {split} boat {n}?",
        "options": [f"{n + d} sails" for d in range(count)],
        "answer": "ABCDEFGHIJ"[n % count],
        "answer_index": n % count,
        "cot_content": "" if split == "test" else f"A: Let's think step by step. I count {n}. The answer is (A).",
        "category": ("law", "computer science")[n % 2],
        "src": "invented",
    }


def gpqa_row(n: int) -> Row:
    row: Row = {"Question": f"What moves boat {n}?", "Correct Answer": f"wind {n}", "Record ID": f"rec{n}"}
    row |= {f"Incorrect Answer {i}": f"{thing} {n}" for i, thing in enumerate(("tea", "ink", "snow"), start=1)}
    return row | {"Subdomain": "Boats"}


def arc_row(n: int) -> Row:
    labels = ["1", "2", "3"] if n % 3 == 0 else list("ABCD")
    texts = [f"pier {n + d}" for d in range(len(labels))]
    choices = {"text": texts, "label": labels}
    return {"id": f"a-{n}", "question": f"Where is {n}?", "choices": choices, "answerKey": labels[n % len(labels)]}


def medmcqa_row(n: int) -> Row:
    options = {f"op{letter}": f"{letter} tea {n}" for letter in "abcd"}
    return {"id": f"med-{n}", "question": f"Which tea helps sailor {n}?", **options, "cop": n % 4}


def humaneval_row(n: int) -> Row:
    name = f"add_{n}"
    return {
        "id": f"Boats/{n}",
        "task_id": f"Boats/{n}",
        "prompt": f'import math\n\n\ndef {name}(x):\n    """Add {n} to x."""\n',
        "entry_point": name,
        "canonical_solution": f"    total = x + {n}\n    return total\n",
        "test": f"def check(candidate):\n    assert candidate(1) == {n + 1}\n    assert candidate(-1) == {n - 1}\n",
    }


def mbpp_row(n: int) -> Row:
    return {
        "id": f"mbpp-{n}",
        "task_id": n,
        "text": f"Write a function to multiply by {n}.",
        "code": f"def times_{n}(x):\r\n  return x * {n}",
        "test_setup_code": "",
        "test_list": [f"assert times_{n}({k}) == {k * n}" for k in (1, 2, 5)],
        "challenge_test_list": [],
    }


def math_500_row(n: int) -> Row:
    return {
        "id": f"math-{n}",
        "problem": f"What is ${n} + \\frac{{1}}{{2}}$?",
        "solution": f"The sum is $\\boxed{{\\frac{{{2 * n + 1}}}{{2}}}}$.",
        "answer": f"\\frac{{{2 * n + 1}}}{{2}}",
        "subject": "Boats",
        "level": 1,
        "unique_id": f"test/boats/{n}.json",
    }


FILES: Mapping[str, tuple[Callable[[int], Row], int]] = {
    "ifeval.jsonl": (ifeval_row, 0),
    "hellaswag.jsonl": (hellaswag_row, 0),
    "winogrande.jsonl": (winogrande_row, 0),
    "piqa.jsonl": (piqa_row, 0),
    "truthfulqa_mc.jsonl": (truthfulqa_row, 0),
    "mmlu_stem.jsonl": (mmlu_row, 0),
    "mmlu_pro.jsonl": (mmlu_pro_row, 0),
    "gpqa_diamond.jsonl": (gpqa_row, 0),
    "arc_challenge.jsonl": (arc_row, 0),
    "medmcqa.jsonl": (medmcqa_row, 0),
    "humaneval.jsonl": (humaneval_row, 0),
    "mbpp.jsonl": (mbpp_row, 11),
    "mbpp_fewshot.jsonl": (mbpp_row, 1),
    "gsm8k_train.jsonl": (math_row, 1),
    "gsm8k_test.jsonl": (math_row, 101),
    "math500.jsonl": (math_500_row, 0),
}
"""Maker and first number of each flat file's rows."""

HUB = {
    "google/IFEval": {"default": {"train": "ifeval"}},
    "Rowan/hellaswag": {"default": {"train": "hellaswag", "validation": "hellaswag"}},
    "allenai/winogrande": {"winogrande_xl": {"validation": "winogrande"}},
    "baber/piqa": {"default": {"validation": "piqa"}},
    "truthfulqa/truthful_qa": {"multiple_choice": {"validation": "truthfulqa_mc"}},
    "cais/mmlu": {"all": {"test": "mmlu_stem"}},
    "TIGER-Lab/MMLU-Pro": {"default": {"test": "mmlu_pro"}},
    "Idavidrein/gpqa": {"gpqa_diamond": {"train": "gpqa_diamond"}},
    "allenai/ai2_arc": {"ARC-Challenge": {"test": "arc_challenge"}},
    "openlifescienceai/medmcqa": {"default": {"validation": "medmcqa"}},
    "openai/openai_humaneval": {"openai_humaneval": {"test": "humaneval"}},
    "google-research-datasets/mbpp": {"full": {"test": "mbpp", "prompt": "mbpp_fewshot"}},
    "openai/gsm8k": {"main": {"train": "gsm8k_train", "test": "gsm8k_test"}},
    "HuggingFaceH4/MATH-500": {"default": {"test": "math500"}},
}
"""Layout of the same rows on the hub: repository, configuration, split, flat file."""


def file_rows(name: str, count: int = COUNT) -> list[Row]:
    make, first = FILES[f"{name}.jsonl"]
    return [make(first + n) for n in range(count)]


def write_flat(root: Path) -> Path:
    for name in FILES:
        write_jsonl(root / name, file_rows(name.removesuffix(".jsonl")))
    return root


def write_hub(root: Path) -> Path:
    for path, configs in HUB.items():
        rows = {
            config: {split: file_rows(name) for split, name in splits.items()} for config, splits in configs.items()
        }
        write_hub_folder(root, path, rows)
    return root


def gold_choice(benchmark: str, doc: Mapping[str, Any]) -> set[int]:
    """Numbers of the right options of a multiple-choice document, told from the published fields."""
    match benchmark:
        case "hellaswag":
            return {int(doc["label"])}
        case "winogrande":
            return {int(doc["answer"]) - 1}
        case "piqa":
            return {doc["label"]}
        case "truthfulqa-mc2":
            return {index for index, label in enumerate(doc["mc2_targets"]["labels"]) if label}
        case "mmlu":
            return {doc["answer"]}
        case "gpqa-diamond":
            return {n for n in range(4) if doc[f"choice{n + 1}"] == doc["Correct Answer"]}
        case "arc-challenge":
            return {doc["choices"]["label"].index(doc["answerKey"])}
        case "medmcqa":
            return {doc["cop"]}
    raise KeyError(benchmark)


def gold_text(benchmark: str, doc: Mapping[str, Any]) -> str:
    """A right answer to a document that is answered in free text."""
    match benchmark:
        case "mmlu-pro":
            return f"The {doc['answer_index'] + 1}. option fits, so the answer is ({doc['answer']})."
        case "humaneval":
            return str(doc["canonical_solution"])
        case "mbpp":
            return str(doc["code"])
        case "gsm8k":
            return str(doc["answer"])
        case "math-500":
            return str(doc["solution"])
        case "ifeval":
            return "the boat sails. it is slow. it is old."
    raise KeyError(benchmark)


def shuffled(count: int) -> list[int]:
    """A fixed permutation: whose answer each row gets."""
    order = list(range(count))
    random.Random(0).shuffle(order)
    return order
