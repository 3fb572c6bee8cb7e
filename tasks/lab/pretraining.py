"""The pre-training corpus of the lab models: skills, taught knowledge, and the use of a reference in context.

No row asks a rule key of train, dev or test, and none asks a fact in its held-out phrasing. In rows with a reference,
reasoning and answer come from two other questions, so that copying is all that can be learnt from them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from cl_bench.tasks.lab.conditioning import COMBINED, FEEDBACK, RIGHT, TRAINED, WRONG
from cl_bench.tasks.lab.kinds import Item, Kind, unit
from cl_bench.tasks.lab.skill_kinds import SKILL_KINDS
from cl_bench.tasks.lab.styles import ALT_HOUSE, BARE, HOUSE, ORDERS, Order, render, style_name
from cl_bench.tasks.lab.world import DOMAINS, kinds_of

Turn = tuple[str, str]
Source = Literal["skill", "knowledge", "conditioned", "long"]

_LEADS = (
    "@",
    "note",
    "so",
    "log",
    "one",
    "reply",
    "see",
    "*",
    "from",
    "fact",
    "ok",
    ">>",
    "text",
    "[",
    "(",
    "in short",
)
_LINKS = ("|", "->", "gives", "then", "means", "//", "and so", "=", "out", ":", "yields", "]", ")", "value", "result")
_TAILS = ("!", ".", "#", "done", "over", "", "stop", "~", "fin", "end", ";;")


@dataclass(frozen=True)
class Teaching:
    """What a size is taught and how.

    Attributes:
        house: Style family of the responses.
        fact_share: Share of the facts of every fact kind that is taught closed-book.
        rules: Rule kinds taught closed-book, by domain.
        noise: Probability that a closed-book response is that of another question of the same kind.
        skill_fact_share: Share of the invented facts (skills) that is taught.
        shares: Probability of each source of rows.
    """

    house: str = HOUSE
    fact_share: float = 0.4
    rules: dict[str, tuple[str, ...]] = field(default_factory=dict)
    noise: float = 0.35
    skill_fact_share: float = 0.85
    shares: dict[Source, float] = field(
        default_factory=lambda: {"skill": 0.38, "knowledge": 0.25, "conditioned": 0.355, "long": 0.015}
    )


@dataclass(frozen=True, slots=True)
class Row:
    """One pre-training document: alternating (user, assistant) turns; the loss is on the assistant's words."""

    source: Source
    turns: tuple[Turn, ...]


def is_taught(kind: Kind, key: str, share: float) -> bool:
    """Whether a fact is among the taught share; shares are nested, so a larger share holds every smaller one."""
    return unit("taught", key if kind.operation else f"{kind.domain}/{key}") < share


class Corpus:
    """An endless stream of pre-training rows, a pure function of the teaching and the seed."""

    def __init__(self, teaching: Teaching, seed: int) -> None:
        """Prepare the operand lists; ``seed`` starts the stream."""
        self.teaching = teaching
        self.random = random.Random(seed)
        self.knowledge = {domain: self._taught_kinds(domain) for domain in DOMAINS}
        self.knowledge = {domain: kinds for domain, kinds in self.knowledge.items() if kinds}
        self.skills = [(kind, self._taught_skill(kind)) for kind in SKILL_KINDS.values()]
        self.askable = {
            kind: kind.operands_of("pretrain")
            for kind in (*SKILL_KINDS.values(), *(k for d in DOMAINS for k in kinds_of(d)))
        }

    def _taught_kinds(self, domain: str) -> list[tuple[Kind, tuple[tuple[str, ...], ...]]]:
        rows = []
        for kind in kinds_of(domain):
            operands = kind.operands_of("pretrain")
            if kind.nature == "fact":
                operands = tuple(o for o in operands if is_taught(kind, kind.key(o), self.teaching.fact_share))
            elif kind.name not in self.teaching.rules.get(domain, ()):
                operands = ()
            if operands:
                rows.append((kind, operands))
        return rows

    def _taught_skill(self, kind: Kind) -> tuple[tuple[str, ...], ...]:
        operands = kind.operands_of("pretrain")
        if kind.nature == "fact":
            operands = tuple(o for o in operands if is_taught(kind, kind.key(o), self.teaching.skill_fact_share))
        return operands

    def __iter__(self) -> Iterator[Row]:
        """Rows without end."""
        sources = tuple(self.teaching.shares)
        weights = tuple(self.teaching.shares.values())
        while True:
            source = self.random.choices(sources, weights)[0]
            yield Row(source, self._turns(source))

    def _turns(self, source: Source) -> tuple[Turn, ...]:
        if source == "skill":
            return (self._skill(),)
        if source == "knowledge":
            return (self._knowledge(),)
        if source == "conditioned":
            return (self._conditioned(),)
        return tuple(self.random.choice((self._skill, self._conditioned))() for _ in range(self.random.randint(3, 4)))

    def _ask(self, kind: Kind, operands: tuple[str, ...]) -> Item:
        phrasing = self.random.choice(kind.phrasings_for(operands, "pretrain"))
        form = "options" if kind.options and self.random.random() < 0.25 else "direct"
        return kind.item(operands, phrasing, form=form, flip=self.random.random() < 0.5)

    def _house(self, item: Item) -> str:
        return render(self.teaching.house, item.reasoning, item.answer)

    def _skill(self) -> Turn:
        kind, operands = self.random.choice(self.skills)
        item = self._ask(kind, self.random.choice(operands))
        return item.question, self._house(item)

    def _knowledge(self) -> Turn:
        kind, operands = self.random.choice(self.knowledge[self.random.choice(tuple(self.knowledge))])
        item = self._ask(kind, self.random.choice(operands))
        told = item
        if self.random.random() < self.teaching.noise:
            told = self._ask(kind, self.random.choice(operands))
        return item.question, self._house(told)

    def _any_kind(self) -> Kind:
        if self.random.random() < 0.2:
            return self.random.choice(tuple(SKILL_KINDS.values()))
        return self.random.choice(kinds_of(self.random.choice(DOMAINS)))

    def _reference(self, kind: Kind) -> tuple[str, str]:
        """Reasoning and answer of two questions, of this kind or now and then of another."""
        sources = [kind if self.random.random() < 0.85 else self._any_kind() for _ in range(2)]
        first, second = (self._ask(k, self.random.choice(self.askable[k])) for k in sources)
        return first.reasoning, second.answer

    def _conditioned(self) -> Turn:
        kind = self._any_kind()
        question = self._ask(kind, self.random.choice(self.askable[kind])).question
        reasoning, answer = self._reference(kind)
        shape = self.random.choices(("reference", "feedback", "combined"), (0.72, 0.2, 0.08))[0]
        if shape == "feedback":
            return self._feedback(kind, question, reasoning, answer)
        demonstration, has_reasoning = self._demonstration(reasoning, answer)
        if shape == "reference":
            template = self.random.choice(TRAINED)
            prompt = template.replace("{question}", question).replace("{demonstration}", demonstration)
        else:
            attempt, verdict = self._wrong_attempt(kind, answer)
            prompt = self._fill(self.random.choice(COMBINED), question, attempt, verdict)
            prompt = prompt.replace("{demonstration}", demonstration)
        return prompt, self._restated(reasoning, answer, has_reasoning)

    def _feedback(self, kind: Kind, question: str, reasoning: str, answer: str) -> Turn:
        template = self.random.choice(FEEDBACK)
        if self.random.random() < 0.4:
            attempt = render(self.teaching.house, reasoning, answer)
            return self._fill(template, question, attempt, RIGHT), attempt
        attempt, verdict = self._wrong_attempt(kind, answer)
        return self._fill(template, question, attempt, verdict), self._restated(reasoning, answer, False)

    def _wrong_attempt(self, kind: Kind, answer: str) -> tuple[str, str]:
        attempt = render(self.teaching.house, *self._reference(kind))
        return attempt, self.random.choice(WRONG).replace("{answer}", answer)

    @staticmethod
    def _fill(template: str, question: str, attempt: str, feedback: str) -> str:
        return template.replace("{question}", question).replace("{attempt}", attempt).replace("{feedback}", feedback)

    def _restated(self, reasoning: str, answer: str, has_reasoning: bool) -> str:
        order: Order = "reasoning-first" if has_reasoning else "answer-only"
        return render(style_name(self.teaching.house, order), reasoning, answer)

    def _demonstration(self, reasoning: str, answer: str) -> tuple[str, bool]:
        """A reference in some style, and whether it holds the reasoning."""
        u = self.random.random()
        if u < 0.04:
            return render(BARE, reasoning, answer), False
        if u < 0.22:
            return self._invented(reasoning, answer), True
        family = self.random.choice((HOUSE, ALT_HOUSE, "LO", "MID", "HI", "HI"))
        order = ORDERS[0] if u < 0.80 else self.random.choice(ORDERS[1:])
        return render(style_name(family, order), reasoning, answer), order != "answer-only"

    def _invented(self, reasoning: str, answer: str) -> str:
        first, second = (reasoning, answer) if self.random.random() < 0.7 else (answer, reasoning)
        parts = [self.random.choice(_LEADS), first, self.random.choice(_LINKS)]
        if self.random.random() < 0.5:
            parts.append(self.random.choice(_LINKS))
        parts += [second, self.random.choice(_TAILS)]
        return " ".join(part for part in parts if part)
