"""Kinds of questions: operands, phrasings, answers, and the split of their keys."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Literal

Nature = Literal["fact", "rule"]
Pool = Literal["pretrain", "train", "dev", "test", "ood"]
Operands = tuple[str, ...]

RULE_BOUNDS: tuple[tuple[Pool, float], ...] = (("pretrain", 0.45), ("train", 0.70), ("dev", 0.80), ("test", 1.0))
"""Upper ends of the hash intervals that give each rule key its pool."""
FACT_DEV_SHARE = 0.3
"""Share of the fact keys whose held-out phrasing belongs to dev; the others belong to test."""


def unit(*parts: str) -> float:
    """Stable hash of the parts, uniform in [0, 1); the same on every machine and in every process."""
    digest = hashlib.blake2b("\x1f".join(parts).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def pick(n: int, *parts: str) -> int:
    """Stable choice among ``n`` by the hash of the parts."""
    return int(unit(*parts) * n)


@dataclass(frozen=True, slots=True)
class Item:
    """One concrete question with its worked answer.

    Attributes:
        domain: Domain or skill the question belongs to.
        kind: Kind of the question within it.
        key: Canonical key: the fact, or the operation and its operands up to symmetry.
        phrasing: Index of the wording.
        form: ``direct`` or ``options`` (the candidates stand in the question).
        question: Text of the question.
        reasoning: The intermediate step, without delimiters.
        answer: Canonical final answer.
        options: Candidates in the order shown, empty for the direct form.
    """

    domain: str
    kind: str
    key: str
    phrasing: int
    form: str
    question: str
    reasoning: str
    answer: str
    options: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """Stable identifier: what is asked and how."""
        return f"{self.domain}/{self.kind}/{self.key}/{self.phrasing}{self.form[0]}"


@dataclass(frozen=True, eq=False)
class Kind:
    """A family of questions of one shape.

    Attributes:
        domain: Domain or skill.
        name: Name within the domain.
        nature: ``fact`` (memorised; train and test share facts, not phrasings) or ``rule`` (computed; keys disjoint).
        phrasings: Wordings with ``{0}``, ``{1}`` ... for the operands.
        space: Every operand tuple of the kind, one per canonical key.
        solve: Operands to (reasoning, answer).
        operation: Name under which kinds share canonical keys (``add``); the kind's own name where empty.
        symmetric: Whether the operands may be shown in reverse order.
        options: Largest number of candidates of the ``options`` form; 0 where there is no such form.
        ood: Whether the kind is kept for the out-of-distribution split only.
        hard: Operands that pre-training never shows (longer ones); None where there are none.
    """

    domain: str
    name: str
    nature: Nature
    phrasings: tuple[str, ...]
    space: tuple[Operands, ...]
    solve: Callable[[Operands], tuple[str, str]]
    operation: str = ""
    symmetric: bool = False
    options: int = 4
    ood: bool = False
    hard: Callable[[Operands], bool] | None = None

    def is_hard(self, operands: Operands) -> bool:
        """Whether the operands are of the longer sort that pre-training never shows."""
        return self.hard is not None and self.hard(operands)

    def key(self, operands: Operands) -> str:
        """Canonical key of the operands."""
        shown = sorted(operands, key=lambda o: (len(o), o)) if self.symmetric else operands
        return f"{self.operation or self.name}:{','.join(shown)}"

    def held_out(self, key: str) -> int:
        """Index of the phrasing that only dev or test may use with this fact."""
        return pick(len(self.phrasings), "phrasing", self.name, key)

    def pool(self, operands: Operands) -> Pool:
        """Pool of a rule key, or where the held-out phrasing of a fact is asked."""
        key = self.key(operands)
        if self.ood:
            return "ood"
        if self.nature == "fact":
            return "dev" if unit("fact-dev", self.domain, key) < FACT_DEV_SHARE else "test"
        u = unit("rule-split", key)
        return next(pool for pool, bound in RULE_BOUNDS if u < bound)

    def operands_of(self, pool: Pool) -> tuple[Operands, ...]:
        """Operand tuples that the pool may ask about, in a stable order."""
        return _operands_of(self, pool)

    def phrasings_for(self, operands: Operands, pool: Pool) -> tuple[int, ...]:
        """Phrasings that the pool may use with these operands."""
        every = tuple(range(len(self.phrasings)))
        if self.nature == "rule":
            return every
        out = self.held_out(self.key(operands))
        return (out,) if pool in ("dev", "test", "ood") else tuple(i for i in every if i != out)

    def item(self, operands: Operands, phrasing: int, *, form: str = "direct", flip: bool = False) -> Item:
        """The question about the operands in the given wording and form."""
        key = self.key(operands)
        shown = tuple(reversed(operands)) if flip and self.symmetric else operands
        reasoning, answer = self.solve(shown)
        question = self.phrasings[phrasing].format(*shown)
        options: tuple[str, ...] = ()
        if form == "options" and self.options:
            options = self._candidates(key, phrasing, answer)
            question = f"{question} Options: {', '.join(options)}."
        return Item(
            self.domain,
            self.name,
            key,
            phrasing,
            "options" if options else "direct",
            question,
            reasoning,
            answer,
            options,
        )

    def _candidates(self, key: str, phrasing: int, answer: str) -> tuple[str, ...]:
        every = answers(self)
        chosen = [answer]
        for turn in range(8 * self.options):
            other = every[pick(len(every), "option", self.name, key, str(phrasing), str(turn))]
            if other not in chosen:
                chosen.append(other)
            if len(chosen) == self.options:
                break
        return tuple(sorted(chosen, key=lambda a: unit("order", self.name, key, str(phrasing), a)))


@cache
def answers(kind: Kind) -> tuple[str, ...]:
    """Distinct answers of a kind, sorted."""
    return tuple(sorted({kind.solve(operands)[1] for operands in kind.space}))


@cache
def _operands_of(kind: Kind, pool: Pool) -> tuple[Operands, ...]:
    if kind.nature == "fact" and pool in ("pretrain", "train"):
        chosen = list(kind.space)
    else:
        chosen = [operands for operands in kind.space if kind.pool(operands) == pool]
    if pool in ("pretrain", "train"):
        chosen = [operands for operands in chosen if not kind.is_hard(operands)]
    return tuple(sorted(chosen, key=lambda operands: unit("order", pool, kind.domain, kind.name, *operands)))


def sample_space(n: int, seed: str, candidates: list[Operands]) -> tuple[Operands, ...]:
    """At most ``n`` of the candidates, by hash, so that adding candidates elsewhere changes nothing here."""
    return tuple(sorted(candidates, key=lambda operands: unit("space", seed, *operands))[:n])
