"""The world: answers, keys and the separation of the splits."""

from __future__ import annotations

import itertools
import json

import pytest

from cl_bench.harness.errors import DataError
from cl_bench.tasks.lab.kinds import Kind
from cl_bench.tasks.lab.pretraining import Corpus, Row, Teaching, is_taught
from cl_bench.tasks.lab.skill_kinds import SKILL_KINDS
from cl_bench.tasks.lab.skills import SKILLS, skill_task
from cl_bench.tasks.lab.task import LabTask, select_items
from cl_bench.tasks.lab.world import DOMAINS, KINDS, kinds_of

EVERY_KIND = [kind for domain in DOMAINS for kind in KINDS[domain]]
RULES = {domain: tuple(k.name for k in kinds_of(domain) if k.nature == "rule") for domain in DOMAINS}


def _kind(domain: str, name: str) -> Kind:
    return next(kind for kind in KINDS[domain] if kind.name == name)


@pytest.mark.parametrize(
    ("domain", "kind", "operands", "answer"),
    [
        ("chemistry", "element", ("26",), "Fe"),
        ("chemistry", "group", ("Cl",), "17"),
        ("chemistry", "family", ("Xe",), "noble"),
        ("chemistry", "formula", ("Al", "O"), "Al2 O3"),
        ("chemistry", "formula", ("Ca", "O"), "Ca O"),
        ("chemistry", "formula", ("Ti", "O"), "Ti O2"),
        ("chemistry", "neutrons", ("56", "26"), "30"),
        ("biology", "complement", ("A T G",), "T A C"),
        ("biology", "transcript", ("T A C",), "A U G"),
        ("biology", "codon", ("A U G",), "Met"),
        ("biology", "codon", ("U A A",), "stop"),
        ("biology", "reverse-complement", ("A A C G",), "C G T T"),
        ("biology", "gc", ("A T G C",), "2"),
        ("biology", "class", ("frog",), "amphibian"),
        ("materials", "structure", ("Fe",), "bcc"),
        ("materials", "density", ("Au",), "19"),
        ("materials", "compound", ("Na Cl",), "rocksalt"),
        ("materials", "hardest", ("20", "71", "33"), "Q"),
        ("materials", "cells", ("5", "fcc"), "20"),
        ("physics", "force", ("3", "4"), "12"),
        ("physics", "unit", ("pressure",), "Pa"),
        ("physics", "net", ("30", "12"), "18"),
        ("tool-use", "timer", ("5", "sun"), '{"tool":"timer","minutes":5,"label":"sun"}'),
        ("math", "first", ("19", "7"), "12"),
        ("math", "share", ("24", "4"), "6"),
        ("math", "two-steps", ("10", "5", "3"), "12"),
        ("coding", "index", ("7,2,9", "1"), "2"),
        ("coding", "reverse", ("7,2,9",), "9,2,7"),
        ("coding", "repeat", ("3,5", "2"), "3,5,3,5"),
    ],
)
def test_known_answers(domain: str, kind: str, operands: tuple[str, ...], answer: str) -> None:
    assert _kind(domain, kind).solve(operands)[1] == answer


def test_coding_answers_agree_with_python() -> None:
    for kind in KINDS["coding"]:
        for operands in kind.space[:60]:
            code = kind.phrasings[1].removeprefix("Give the value of ").removesuffix(".").format(*operands)
            value = eval(code, {"__builtins__": {"max": max, "min": min}})
            shown = ",".join(map(str, value)) if isinstance(value, list) else str(value)
            assert kind.solve(operands)[1] == shown, code


@pytest.mark.parametrize("kind", [*EVERY_KIND, *SKILL_KINDS.values()], ids=lambda kind: f"{kind.domain}-{kind.name}")
def test_keys_are_unique(kind: Kind) -> None:
    keys = [kind.key(operands) for operands in kind.space]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("domain", DOMAINS)
def test_splits_have_distinct_rows_and_enough_keys(domain: str) -> None:
    task = LabTask(domain)
    for split, n in (("train", 640), ("dev", 100), ("test", 300), ("ood", 100)):
        rows = task.split(split)  # type: ignore[arg-type]
        assert len({row.question for row in rows}) == n == len(rows)
        assert len({row.id for row in rows}) == n
    assert len({(row.meta["kind"], row.meta["key"]) for row in task.test()}) == 300


@pytest.mark.parametrize("domain", DOMAINS)
def test_rule_keys_are_disjoint_and_facts_change_their_wording(domain: str) -> None:
    natures = {kind.name: kind.nature for kind in KINDS[domain]}
    splits = {name: select_items(domain, name, n) for name, n in (("train", 640), ("dev", 100), ("test", 300))}
    for first, second in itertools.combinations(splits, 2):
        rules = [{i.key for i in splits[s] if natures[i.kind] == "rule"} for s in (first, second)]
        assert not rules[0] & rules[1]
        wordings = [{(i.kind, i.key, i.phrasing) for i in splits[s]} for s in (first, second)]
        assert not wordings[0] & wordings[1]
    trained = {(i.kind, i.phrasing) for i in splits["train"]}
    assert {(i.kind, i.phrasing) for i in splits["test"] if natures[i.kind] == "fact"} <= trained


def _questions(rows: list[Row]) -> set[str]:
    return {user for row in rows for user, _ in row.turns}


def test_pretraining_never_asks_a_key_of_the_other_splits() -> None:
    rows = list(itertools.islice(iter(Corpus(Teaching(rules=RULES, fact_share=1.0), seed=3)), 20000))
    asked = " \n ".join(sorted(_questions(rows)))
    for domain in DOMAINS:
        task = LabTask(domain)
        for example in [*task.dev(), *task.test(), *task.ood()]:
            stem = example.question.split(" Options:")[0]
            assert f"{stem}\n" not in asked and f"{stem} Options" not in asked, stem
    for skill in SKILLS:
        for example in skill_task(skill.name).test():
            assert f"{example.question}\n" not in asked, example.question


def test_pretraining_is_a_function_of_its_seed() -> None:
    def first(seed: int) -> list[Row]:
        return list(itertools.islice(iter(Corpus(Teaching(), seed)), 50))

    assert first(1) == first(1) != first(2)


def test_a_larger_share_of_facts_holds_the_smaller() -> None:
    kind = _kind("chemistry", "element")
    keys = [kind.key(operands) for operands in kind.space]
    small, large = ({k for k in keys if is_taught(kind, k, share)} for share in (0.36, 0.66))
    assert small < large
    assert 0.2 < len(small) / len(keys) < 0.5


def test_conditioned_rows_do_not_answer_their_question() -> None:
    """References come from other questions: agreement with the true answer is chance, not knowledge."""
    kind = _kind("chemistry", "element")
    truth = {question: answer for question, answer in (_direct(kind, operands) for operands in kind.space)}
    rows = [r for r in itertools.islice(iter(Corpus(Teaching(), 5)), 40000) if r.source == "conditioned"]
    hits = [
        reply.endswith(f" {truth[stem]}.")
        for row in rows
        for user, reply in row.turns
        for stem in (user.split("\n")[0],)
        if stem in truth
    ]
    assert len(hits) > 20
    assert sum(hits) / len(hits) < 0.15


def _direct(kind: Kind, operands: tuple[str, ...]) -> tuple[str, str]:
    item = kind.item(operands, 0)
    return item.question, item.answer


def test_options_hold_the_answer_once() -> None:
    for kind in EVERY_KIND:
        if kind.options:
            for operands in kind.space[:30]:
                item = kind.item(operands, 0, form="options")
                assert item.options.count(item.answer) == 1
                assert len(set(item.options)) == len(item.options) > 1


def test_tool_answers_are_json_calls() -> None:
    for row in LabTask("tool-use").test():
        call = json.loads(row.answer or "")
        assert isinstance(call["tool"], str)
        assert len(call) > 1


def test_mixture_has_equal_parts() -> None:
    rows = LabTask("science-mixture").train()
    counts = {d: sum(row.meta["domain"] == d for row in rows) for d in ("chemistry", "biology", "materials", "physics")}
    assert set(counts.values()) == {160}
    assert {row.task for row in rows} == {"science-mixture"}


def test_unknown_settings_are_refused() -> None:
    for arguments in ({"domain": "alchemy"}, {"distance": "FAR"}, {"order": "backwards"}, {"rows": {"trial": 3}}):
        with pytest.raises(ValueError, match="unknown"):
            LabTask("x", **{"domain": "math", **arguments})  # type: ignore[arg-type]
    with pytest.raises(DataError, match="has"):
        LabTask("math", rows={"test": 100_000}).test()


def test_identity_follows_the_settings() -> None:
    assert LabTask("math").identity() == LabTask("math").identity()
    assert LabTask("math").identity() != LabTask("math", distance="LO").identity()
    assert LabTask("math").identity() != LabTask("math", rows={"train": 10}).identity()
