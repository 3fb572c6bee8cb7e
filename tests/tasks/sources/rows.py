"""Invented rows in the schemas of the public data sets, and the two layouts they come in."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def science_row(number: int, **changes: Any) -> Row:
    row: Row = {
        "id": f"row-{number}",
        "prompt": {"default": "Pick one."},
        "question": f"How many protons has element number {number}?",
        "choices": {"text": [str(number + d) for d in (1, 0, 2, 3)], "label": list("ABCD")},
        "answerKey": "B",
        "type": "mcq-4-choices",
        "domain": "Chemistry",
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
