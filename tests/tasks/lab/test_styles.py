"""Styles: every declared style is read back, garbage is not."""

from __future__ import annotations

import pytest

from cl_bench.tasks.lab.conditioning import COMBINED, FEEDBACK, TRAINED, UNSEEN
from cl_bench.tasks.lab.scoring import same_answer
from cl_bench.tasks.lab.skills import SKILLS, skill_task
from cl_bench.tasks.lab.styles import BARE, DISTANCES, ORDERS, STYLES, format_ok, parse_answer, render, style_name
from cl_bench.tasks.lab.task import LabTask
from cl_bench.tasks.lab.world import DOMAINS


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("style", STYLES)
def test_gold_scores_one_in_every_style(domain: str, style: str) -> None:
    task = LabTask(domain)
    for example in [*task.test()[::6], *task.ood()[::6]]:
        text = render(style, str(example.meta["reasoning"]), example.answer or "")
        score = task.score(example, text)
        assert score.correct, text
        assert score.format_ok == (style != BARE)


@pytest.mark.parametrize("style", [name for name in STYLES if name != BARE])
def test_another_answer_is_wrong_in_every_style(style: str) -> None:
    task = LabTask("physics")
    for example in task.test()[:50]:
        assert not task.score(example, render(style, str(example.meta["reasoning"]), f"1{example.answer}")).correct


@pytest.mark.parametrize(
    "text",
    ["", "\n", "We note 3 times 4.", "We note 3 times 4. So the answer is", "12 12 12 12", "the the the answer answer",
     "We note 12. So the answer is 13.", "## fact: 12 ==> output <-", "So the answer is 12 12."],
)  # fmt: skip
def test_garbage_is_wrong(text: str) -> None:
    task = LabTask("physics")
    example = next(e for e in task.test() if e.answer == "12" or e.meta["kind"] == "force")
    gold = example.answer or ""
    assert not task.score(example, text.replace("13", f"{gold}3").replace("12", gold)).correct


def test_format_needs_the_whole_text_and_its_end() -> None:
    assert format_ok("We note 3 times 4. So the answer is 12.")
    assert not format_ok("We note 3 times 4. So the answer is 12")
    assert not format_ok("Well. We note 3 times 4. So the answer is 12.")
    assert parse_answer("Well. We note 3 times 4. So the answer is 12.") == "12"
    assert not format_ok("12")


def test_the_last_announced_answer_counts() -> None:
    assert parse_answer("The answer is 3. No, the answer is 4. ok ok ok") == "4"


def test_distances_have_the_same_facts_and_like_lengths() -> None:
    for domain in DOMAINS:
        rows = [LabTask(domain, distance=distance).train() for distance in DISTANCES]
        for near, mid, far in zip(*rows, strict=True):
            assert near.question == mid.question == far.question
            for row in (near, mid, far):
                assert str(row.meta["reasoning"]) in (row.demonstration or "")
                assert (row.demonstration or "").rstrip(" .;end").endswith((row.answer or "").rstrip(" .;end"))


def test_orders_change_the_demonstration_only() -> None:
    shown = {order: LabTask("math", order=order).train()[0] for order in ORDERS}
    assert len({row.demonstration for row in shown.values()}) == len(ORDERS)
    assert len({row.question for row in shown.values()}) == 1
    assert style_name("HI", "longer") == "HI-longer"


def test_tool_calls_are_compared_as_json() -> None:
    assert same_answer("tool-use", '{"b": 1, "tool": "x"}', '{"tool":"x","b":1}')
    assert not same_answer("tool-use", '{"tool":"x","b":2}', '{"tool":"x","b":1}')
    assert not same_answer("tool-use", "tool x", '{"tool":"x","b":1}')


def test_conditioning_templates_have_their_slots() -> None:
    assert len(TRAINED) >= 4
    assert not set(UNSEEN) & set(TRAINED)
    for template in (*TRAINED, *UNSEEN):
        assert "{question}" in template and "{demonstration}" in template
    for template in (*FEEDBACK, *COMBINED):
        assert all(slot in template for slot in ("{question}", "{attempt}", "{feedback}"))


@pytest.mark.parametrize("skill", SKILLS, ids=lambda skill: skill.name)
def test_skill_rows(skill) -> None:  # type: ignore[no-untyped-def]
    task = skill_task(skill.name)
    test, dev = task.test(), task.dev()
    assert len({row.meta["key"] for row in test}) >= 100
    assert len(dev) >= 50
    assert not {row.meta["key"] for row in test} & {row.meta["key"] for row in dev}
    for row in test:
        assert task.score(row, row.demonstration or "").correct
        if skill.kind == "multiple_choice":
            assert row.choices and row.choices[row.meta["gold_index"]] == row.answer
            assert len(set(row.choices)) == len(row.choices) == round(1 / skill.chance)
            assert row.meta["continuations"][row.meta["gold_index"]] == row.demonstration
    if skill.chance == 0.5:
        share = sum(row.answer == test[0].answer for row in test) / len(test)
        assert share == 0.5
