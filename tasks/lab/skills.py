"""Retention skills: what a lab model can do before any post-training, in the groups of the paper's suite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from cl_bench.tasks.base import Example, Score, Task
from cl_bench.tasks.lab.kinds import Item, Kind, Operands, unit
from cl_bench.tasks.lab.scoring import score_text
from cl_bench.tasks.lab.skill_kinds import CHOICES, SKILL_KINDS
from cl_bench.tasks.lab.styles import HOUSE, render

Group = Literal["instruction-following", "commonsense", "knowledge", "code", "math"]
TEST_ROWS = 100
DEV_ROWS = 50
HARD_SHARES = {
    "copy": 0.3, "reverse": 0.3, "pick": 0.3, "taller": 0.3, "brackets": 0.3, "count": 0.3, "sort": 0.3,
    "logic": 0.3, "add": 0.3,
}  # fmt: skip
"""Share of a skill's rows that are longer than pre-training showed, so that no skill is at its ceiling."""


@dataclass(frozen=True, slots=True)
class Skill:
    """One retention skill.

    Attributes:
        name: Name of the skill.
        group: Group of the paper's suite it stands for.
        kind: ``generate`` (scored by exact answer) or ``multiple_choice`` (scored by loglikelihood of the choices).
        chance: Accuracy of guessing, as a fraction.
    """

    name: str
    group: Group
    kind: Literal["generate", "multiple_choice"]
    chance: float


SKILLS: tuple[Skill, ...] = (
    Skill("copy", "instruction-following", "generate", 0.0),
    Skill("reverse", "instruction-following", "generate", 0.0),
    Skill("pick", "instruction-following", "generate", 0.0),
    Skill("taller", "commonsense", "multiple_choice", 1 / 3),
    Skill("logic", "commonsense", "multiple_choice", 0.5),
    Skill("facts", "knowledge", "generate", 0.0),
    Skill("home", "knowledge", "multiple_choice", 0.25),
    Skill("brackets", "code", "multiple_choice", 0.5),
    Skill("count", "code", "generate", 0.0),
    Skill("add", "math", "generate", 0.0),
    Skill("sort", "math", "generate", 0.0),
)


def test_item(kind: Kind, operands: tuple[str, ...], pool: Literal["dev", "test"]) -> Item:
    """The question that a pool asks about the operands: the held-out phrasing of a fact, a hashed one of a rule."""
    allowed = kind.phrasings_for(operands, pool)
    choice = allowed[int(unit("phrase", pool, kind.key(operands)) * len(allowed))]
    return kind.item(operands, choice, flip=unit("flip", kind.key(operands)) < 0.5)


class SkillTask(Task):
    """A retention skill as a task: no training rows, a dev half and a test half with disjoint keys."""

    max_new_tokens = 64

    def __init__(self, skill: Skill) -> None:
        """Wrap the skill; rows are built on first use."""
        self.skill = skill
        self.name = f"lab-{skill.name}"
        self.chance = skill.chance

    def train(self) -> Sequence[Example]:
        """Skills have no training rows: they are only measured."""
        return ()

    def dev(self) -> Sequence[Example]:
        """Rows for choosing settings."""
        return _rows(self.skill.name, "dev", DEV_ROWS)

    def test(self) -> Sequence[Example]:
        """Evaluation rows."""
        return _rows(self.skill.name, "test", TEST_ROWS)

    def score(self, example: Example, text: str) -> Score:
        """Exact answer in any declared style."""
        return score_text(example, text)

    def identity(self) -> dict[str, Any]:
        """Name and version of the lab."""
        from cl_bench.tasks.lab.version import LAB_VERSION

        return {"name": self.name, "version": self.version, "lab_version": LAB_VERSION}


def skill_task(name: str) -> SkillTask:
    """Task of the skill of that name. Raises KeyError for an unknown name."""
    return SkillTask({skill.name: skill for skill in SKILLS}[name])


@cache
def _rows(name: str, pool: Literal["dev", "test"], n: int) -> tuple[Example, ...]:
    skill = next(s for s in SKILLS if s.name == name)
    kind = SKILL_KINDS[name]
    hard = round(n * HARD_SHARES.get(name, 0.0))
    chosen = [
        *_balanced(skill, kind, [o for o in kind.operands_of(pool) if not kind.is_hard(o)])[: n - hard],
        *_balanced(skill, kind, [o for o in kind.operands_of(pool) if kind.is_hard(o)])[:hard],
    ]
    return tuple(_example(skill, kind, test_item(kind, o, pool)) for o in chosen)


def _balanced(skill: Skill, kind: Kind, operands: list[Operands]) -> list[Operands]:
    """For two-way choices the two answers in turn, so that a constant answer scores one half; else unchanged."""
    if skill.chance != 0.5:
        return operands
    groups: dict[str, list[Operands]] = {}
    for o in operands:
        groups.setdefault(kind.solve(o)[1], []).append(o)
    return [o for row in zip(*groups.values(), strict=False) for o in row]


def _example(skill: Skill, kind: Kind, item: Item) -> Example:
    meta: dict[str, Any] = {"kind": item.kind, "key": item.key, "domain": item.domain, "reasoning": item.reasoning}
    choices = CHOICES[skill.name](item) if skill.kind == "multiple_choice" else None
    if choices:
        meta["continuations"] = [render(HOUSE, item.reasoning, choice) for choice in choices]
        meta["gold_index"] = choices.index(item.answer)
    return Example(
        task=f"lab-{skill.name}",
        id=item.id,
        messages=({"role": "user", "content": item.question},),
        demonstration=render(HOUSE, item.reasoning, item.answer),
        answer=item.answer,
        choices=choices,
        meta=meta,
    )
