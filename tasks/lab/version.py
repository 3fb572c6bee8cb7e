"""The lab's version: hashes of every item of every split and of the weights, frozen in ``version1.json``."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cl_bench.tasks.base import Example
from cl_bench.tasks.lab.skills import SKILLS, skill_task
from cl_bench.tasks.lab.styles import DISTANCES
from cl_bench.tasks.lab.task import LabTask
from cl_bench.tasks.lab.world import DOMAINS

LAB_VERSION = 1
FROZEN = Path(__file__).with_name(f"version{LAB_VERSION}.json")


def hash_examples(examples: Iterable[Example]) -> str:
    """SHA-256 over the ids and the whole content of the examples, in order."""
    digest = hashlib.sha256()
    for example in examples:
        row = [
            example.id,
            list(example.messages),
            example.demonstration,
            example.answer,
            list(example.choices or ()),
            dict(example.meta),
        ]
        digest.update(json.dumps(row, sort_keys=True).encode() + b"\n")
    return digest.hexdigest()


def item_hashes() -> dict[str, str]:
    """Hash of every split of every domain (train at each distance) and skill."""
    found: dict[str, str] = {}
    for domain in DOMAINS:
        task = LabTask(domain)
        for distance in DISTANCES:
            found[f"{domain}/train/{distance}"] = hash_examples(LabTask(domain, distance=distance).train())
        found |= {f"{domain}/{s}": hash_examples(task.split(s)) for s in ("dev", "test", "ood")}
    found["science-mixture/train/HI"] = hash_examples(LabTask("science-mixture").train())
    for skill in SKILLS:
        rows = skill_task(skill.name)
        found |= {f"skill/{skill.name}/{s}": hash_examples(rows.split(s)) for s in ("dev", "test")}
    return found


def weight_hashes(folder: Path) -> dict[str, str]:
    """SHA-256 of weights, tokenizer and chat template of every model under the folder."""
    names = ("model.safetensors", "tokenizer.json", "chat_template.jinja")
    files = sorted(file for name in names for file in folder.glob(f"*/{name}"))
    return {f"{file.parent.name}/{file.name}": hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def frozen() -> dict[str, Any]:
    """The frozen hashes: ``lab_version``, ``items``, ``weights``."""
    content: dict[str, Any] = json.loads(FROZEN.read_text(encoding="utf-8"))
    return content


def freeze(folder: Path) -> None:
    """Write the hashes of the items and of the weights under the folder as this version's."""
    content = {"lab_version": LAB_VERSION, "items": item_hashes(), "weights": weight_hashes(folder)}
    FROZEN.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", encoding="utf-8")
