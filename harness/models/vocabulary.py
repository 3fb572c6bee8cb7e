"""Aligners and teachers must share the student's tokenizer; a padded vocabulary is fine, another tokenizer is not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cl_bench.harness.errors import ModelError


def check_same_tokenizer(student: Path, aligner: Path) -> None:
    """Refuse an aligner of another tokenizer, from the files alone (nothing is loaded).

    Models of one family may pad their embedding tables differently (Qwen2.5: 151,936 and 152,064 rows); the token
    strings and merges decide, not the size of the table.

    Raises:
        ModelError: The two tokenizers differ; the message names the first difference.
    """
    difference = _difference(_tokenizer(student), _tokenizer(aligner))
    if difference:
        raise ModelError(
            f"aligner {aligner.name} and student {student.name} have different tokenizers",
            why=difference,
            hint="choose an aligner of the student's own family",
        )


def shared_vocabulary_size(student_rows: int, teacher_rows: int) -> int:
    """Logit columns that both models have; the rest is padding and is cut off before the softmax."""
    return min(student_rows, teacher_rows)


def _tokenizer(folder: Path) -> dict[str, Any]:
    path = folder / "tokenizer.json"
    if not path.exists():
        raise ModelError(f"{folder.name} has no tokenizer.json", hint="save it with a fast tokenizer")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} cannot be read", why=str(error)) from error
    if not isinstance(content, dict):
        raise ModelError(f"{path} is not a tokenizer", why="it holds no JSON object")
    return content


def _difference(one: dict[str, Any], other: dict[str, Any]) -> str:
    model, other_model = one.get("model", {}), other.get("model", {})
    for part in ("type", "vocab", "merges"):
        if model.get(part) != other_model.get(part):
            return f"their {part} differ"
    for part in ("normalizer", "pre_tokenizer"):
        if one.get(part) != other.get(part):
            return f"their {part} differ"
    added = {t["content"]: t["id"] for t in one.get("added_tokens", [])}
    other_added = {t["content"]: t["id"] for t in other.get("added_tokens", [])}
    for content in added.keys() & other_added.keys():
        if added[content] != other_added[content]:
            return f"special token {content!r} has ids {added[content]} and {other_added[content]}"
    return ""
