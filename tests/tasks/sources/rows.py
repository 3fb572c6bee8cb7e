"""Invented rows in the schemas of the public data sets, and the two layouts they come in."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def science_row(number: int, **changes: Any) -> Row:
    """A row of SciKnowEval that may be of any subject: public rows say theirs in ``domain``."""
    row: Row = {
        "id": f"row-{number}",
        "prompt": {"default": "Pick one."},
        "question": f"How many protons has element number {number}?",
        "choices": {"text": [str(number + d) for d in (1, 0, 2, 3)], "label": list("ABCD")},
        "answerKey": "B",
        "type": "mcq-4-choices",
        "details": {"level": "L3", "task": "counting", "subtask": "protons", "source": "invented"},
        "answer": "",
    }
    return row | changes


def tool_row(number: int, **changes: Any) -> Row:
    arguments = json.dumps({"port": f"Port {number}"})
    row: Row = {
        "id": f"tool-{number}",
        "prompt": f"Tools: getTide. Question: when is high tide in Port {number}?",
        "name": "Tides",
        "description": "Tide tables",
        "nl_documentation": "getTide: times of the tides",
        "instruction": f"When is high tide in Port {number}?",
        "golden_answer": [{"Action": "getTide", "Action_Input": arguments}],
        "golden_response": ["Thought: I look it up.", "Action: getTide", f"Action Input: {arguments}"],
    }
    return row | changes


def math_row(number: int, **changes: Any) -> Row:
    row: Row = {
        "id": f"math-{number}",
        "question": f"Ana has {number} bags of 1,000 pens. How many pens?",
        "answer": f"{number}*1000=<<{number}*1000={number * 1000}>>{number * 1000} pens.\n#### {number},000",
    }
    return row | changes


def svamp_row(number: int, **changes: Any) -> Row:
    row: Row = {
        "id": f"svamp-{number}",
        "ID": f"chal-{number}",
        "Body": f"Ana had {number} pens and lost 2 of them",
        "Question": "How many pens does she have?",
        "Equation": f"( {number}.0 - 2.0 )",
        "Answer": float(number - 2),
        "Type": "Subtraction",
    }
    return row | changes


def competition_row(number: int, **changes: Any) -> Row:
    """A row of MATH-500; the training rows of MATH lack ``answer`` and call the subject ``type``."""
    row: Row = {
        "id": f"competition-{number}",
        "problem": f"Find half of ${number}$.",
        "solution": rf"Half of ${number}$ is $\boxed{{\frac{{{number}}}{{2}}}}$.",
        "answer": rf"\frac{{{number}}}{{2}}",
        "subject": "Algebra",
        "level": 1,
    }
    return row | changes


def training_row(number: int, subject: str = "Algebra") -> Row:
    row = competition_row(number, id=f"training-{number}", type=subject, level="Level 1")
    return {key: value for key, value in row.items() if key not in ("answer", "subject")}


def program_row(number: int, **changes: Any) -> Row:
    row: Row = {
        "id": f"program-{number}",
        "task_id": number,
        "text": f"Write a function that adds {number} to a number.",
        "code": f"def add_{number}(x):\r\n  return x + {number}",
        "test_list": [f"assert add_{number}(1) == {number + 1}", f"assert add_{number}(-1) == {number - 1}"],
        "test_setup_code": "",
        "challenge_test_list": [],
    }
    return row | changes


def other_science_row(kind: str, number: int, **changes: Any) -> Row:
    """A row of SciKnowEval of another type: ``filling``, ``true_or_false`` or ``mcq-2-choices``."""
    row = science_row(number, id=f"{kind}-{number}", type=kind)
    if kind == "mcq-2-choices":
        row |= {"choices": {"text": [f"{number} K", f"{number} W"], "label": ["A", "B"]}, "answerKey": "A"}
    else:
        answer = f"{number} H2 + O2 = H2O" if kind == "filling" else ("Yes", "No")[number % 2]
        row |= {"choices": {"text": [], "label": []}, "answerKey": "", "answer": answer}
    return row | changes


def write_jsonl(path: Path, rows: Iterable[Row]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def write_hub_folder(root: Path, name: str, configs: Mapping[str, Mapping[str, Iterable[Row]]]) -> Path:
    """``ROOT/<owner>/<name>`` as ``datasets.load_dataset`` reads it."""
    lines = ["---", "configs:"]
    for config, splits in configs.items():
        lines += [f"- config_name: {config}", "  data_files:"]
        for split, rows in splits.items():
            write_jsonl(root / name / config / f"{split}.jsonl", rows)
            lines += [f"  - split: {split}", f"    path: {config}/{split}.jsonl"]
    (root / name / "README.md").write_text("\n".join([*lines, "---", ""]), encoding="utf-8")
    return root / name
