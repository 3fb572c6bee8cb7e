"""U-OPSD: the vote, what is trained on, the gradient of a real step by hand, and that no label is read."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from cl_bench.harness.generation.base import Completion
from cl_bench.methods.base import Stage
from cl_bench.methods.training.groups import Group
from cl_bench.methods.training.mixin import Counters
from cl_bench.methods.u_opsd import TIED, UOPSD, UOPSDSettings, voted
from cl_bench.tasks.base import Example, Score
from tests.methods.probes import COMMON, SHORT, assert_close, by_hand, first_step, full_logits
from tests.support import TinyContext, same_weights, tiny_model, toy_examples, weights

FOUR = toy_examples(4)


def first_letter(example: Example, text: str) -> Score:
    """The answer is the first letter."""
    return Score(text[:1] == (example.answer or ""), text[:1] or None, True)


def by_length(example: Example, text: str) -> Score:
    """Two answers, which random text gives about equally often."""
    return Score(False, "even" if len(text) % 2 == 0 else "odd", True)


def stage_of(examples: list[Example] = FOUR, score: Any = by_length) -> Stage:
    return Stage(1, "toy", examples, (), {"toy": score})


def make(**changes: Any) -> UOPSD:
    # A random model ends about one sample in five of this length; truncated ones are never trained on.
    short = {"max_completion_length": 50, "max_length": 150, "samples": 8, "teacher_template": SHORT}
    return UOPSD(UOPSDSettings(**{**COMMON, **short, "temperature": 1.3, "teacher": "task_start", **changes}))


def vote(*texts: str, ended: str = "", **changes: Any) -> tuple[dict[int, str], Counters]:
    """Chosen samples with the solution that the teacher is shown; a text's length in tokens is that in letters."""
    completions = tuple(
        Completion(tuple(range(len(t))), t, "length" if t == ended else "eos", (0.0,) * len(t)) for t in texts
    )
    counters, settings = Counters(), make(**changes).settings
    assert isinstance(settings, UOPSDSettings)
    chosen = voted(Group(FOUR[0], (1, 2), completions), stage_of(score=first_letter), settings, counters)
    prefix = f"{FOUR[0].question} as in "
    return {index: str(messages[-1]["content"]).removeprefix(prefix) for index, messages in chosen}, counters


def test_the_longest_sample_that_disagrees_learns_from_one_that_agrees() -> None:
    assert vote("ax", "b", "a", "bbb", "a")[0] == {3: "ax"}
    assert vote("ax", "b", "a", "bbb", "a", shown="shortest")[0] == {3: "a"}
    assert vote("ax", "b", "a", "bbb", "a", trained=2)[0] == {3: "ax", 1: "ax"}


def test_truncated_samples_and_those_without_an_answer_are_not_trained_on() -> None:
    assert vote("a", "a", "bbbb", "bb", "", ended="bbbb")[0] == {3: "a"}


def test_prompts_that_teach_nothing_are_counted_by_reason() -> None:
    assert vote("a", "ab", "a")[1].left_out == {"nobody_disagrees": 1}
    assert vote("", "")[1].left_out == {"no_answer": 1}
    assert vote("a", "a", "b", "c", threshold=0.6)[1].left_out == {"vote_below_threshold": 1}
    assert vote("a", "a", "b", "c", threshold=0.5)[1].left_out == {}


def test_a_tie_goes_to_the_answer_seen_first_and_is_remarked() -> None:
    chosen, counters = vote("b", "a", "a", "b")
    assert chosen == {1: "b"}
    assert counters.remarks == {TIED: 1}


def jsd(student: Tensor, teacher: Tensor) -> Tensor:
    """Half of each divergence to the mean, per token."""
    p, q = student.softmax(-1), teacher.softmax(-1)
    mean = ((p + q) / 2).log()
    return (p * (p.log() - mean)).sum(-1) / 2 + (q * (q.log() - mean)).sum(-1) / 2


def test_the_gradient_of_a_step_is_that_of_the_jsd_on_the_disagreeing_samples(tmp_path: Path) -> None:
    method, start = make(), tiny_model(2)
    found, context = first_step(method, tiny_model(0), stage_of(), tmp_path, task_start=start)
    student, rows, parts = tiny_model(0), list(context.ledger), []
    settings = method.settings
    assert isinstance(settings, UOPSDSettings)
    by_id = {example.id: example for example in FOUR}
    for example_id in dict.fromkeys(row["id"] for row in rows):
        own = [row for row in rows if row["id"] == example_id]
        completions = tuple(Completion(tuple(r["tokens"]), r["text"], r["ended"], ()) for r in own)
        example = by_id[example_id]
        prompt = student.prompt_ids(example.messages)
        for index, messages in voted(Group(example, prompt, completions), stage_of(), settings, Counters()):
            parts.append((prompt, start.prompt_ids(messages), completions[index].ids))
    assert parts

    def loss(model: Any) -> Tensor:
        total, count = torch.zeros(()), 0
        for prompt, teacher_prompt, tokens in parts:
            theirs = full_logits(start.model, teacher_prompt, tokens).detach()
            total = total + jsd(full_logits(model, prompt, tokens) / 1.3, theirs / 1.3).sum()
            count += len(tokens)
        return total / count

    assert_close(found, by_hand(student, loss), 2e-4)


def adapted(examples: list[Example], folder: Path, **changes: Any) -> Any:
    student = tiny_model(0)
    context = TinyContext(folder, task_start=tiny_model(2))
    adaptation = make(**{"epochs": 2, **changes}).adapt(student, stage_of(examples), context)
    return weights(student), adaptation


def test_no_label_is_read(tmp_path: Path) -> None:
    bare = [replace(example, demonstration=None, answer=None) for example in FOUR]
    with_gold, _ = adapted(copy.deepcopy(FOUR), tmp_path / "gold")
    without, adaptation = adapted(bare, tmp_path / "bare")
    assert same_weights(with_gold, without)
    assert not same_weights(without, weights(tiny_model(0)))
    assert adaptation.steps == 2


def test_a_scorer_that_reads_labels_would_be_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cheating(self: Stage, example: Example, text: str) -> str | None:
        return example.answer if example.answer and len(text) % 3 else str(len(text) % 2)

    monkeypatch.setattr(Stage, "extract", cheating)
    with pytest.raises(AssertionError):
        test_no_label_is_read(tmp_path)


def test_skipped_prompts_are_reported(tmp_path: Path) -> None:
    before = weights(tiny_model(0))
    after, adaptation = adapted(FOUR, tmp_path, threshold=1.0)
    assert same_weights(before, after)
    assert sum(adaptation.rejected.values()) == 8
    assert "skipped" in adaptation.warnings[0]
