"""SDPO: who has a teacher, the gradient of a real step by hand, and steps with nothing to learn from."""

from __future__ import annotations

import copy
import math
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import cl_bench.methods.training.on_policy as on_policy_module
from cl_bench.harness.generation.base import Completion
from cl_bench.harness.models.chat_model import ChatModel
from cl_bench.methods.base import Stage
from cl_bench.methods.sdpo import SDPO, SDPOSettings, taught
from cl_bench.methods.training.conditioning import conditioned_messages
from cl_bench.methods.training.groups import Group, split_evenly
from cl_bench.tasks.base import Example, Score
from tests.methods.probes import COMMON, SHORT, Gradients, assert_close, by_hand, first_step, full_logits
from tests.support import TinyContext, same_weights, tiny_model, toy_examples, weights

FOUR = toy_examples(4)
BY_ID = {example.id: example for example in FOUR}
K = 5


def by_length(example: Example, text: str) -> Score:
    """A verdict that random text passes about every third time."""
    return Score(len(text) % 3 == 0, text, True)


def stage_of(score: Any = by_length) -> Stage:
    return Stage(1, "toy", FOUR, (), {"toy": score})


def make(**changes: Any) -> SDPO:
    short = {"max_completion_length": 10, "max_length": 150, "teacher_template": SHORT}
    groups = {"samples": 3, "top_k": K, "updates": 1}
    return SDPO(SDPOSettings(**{**COMMON, **short, **groups, **changes}))


def group_of(*texts: str) -> Group:
    completions = tuple(Completion((1, 2), text, "eos", (0.0, 0.0)) for text in texts)
    return Group(FOUR[0], (1, 2, 3), completions)


def right_where_yes(example: Example, text: str) -> Score:
    return Score(text.startswith("yes"), text, True)


def shown(settings: SDPOSettings, *texts: str) -> dict[int, str]:
    choices = taught(group_of(*texts), stage_of(right_where_yes), settings)
    return {index: str(messages[-1]["content"]) for index, messages in choices}


def test_the_first_successful_other_sample_is_shown() -> None:
    settings = make().settings
    assert isinstance(settings, SDPOSettings)
    question = FOUR[0].question
    assert shown(settings, "no", "yes 1", "yes 2") == {
        0: f"{question} as in yes 1",
        1: f"{question} as in yes 2",
        2: f"{question} as in yes 1",
    }


def test_the_only_success_of_a_group_has_no_teacher_unless_it_may_be_its_own() -> None:
    alone = make().settings
    own = make(own_success=True).settings
    assert isinstance(alone, SDPOSettings) and isinstance(own, SDPOSettings)
    assert sorted(shown(alone, "no", "yes 1", "no")) == [0, 2]
    assert sorted(shown(own, "no", "yes 1", "no")) == [0, 1, 2]
    assert shown(alone, "no", "no") == {}


def test_feedback_is_shown_with_the_samples_own_attempt_where_no_sibling_succeeded() -> None:
    settings = make(feedback="that is wrong", feedback_template="{question} | {attempt} | {feedback}").settings
    assert isinstance(settings, SDPOSettings)
    assert shown(settings, "no {x}", "non") == {
        0: f"{FOUR[0].question} | no {{x}} | that is wrong",
        1: f"{FOUR[0].question} | non | that is wrong",
    }
    assert sorted(shown(settings, "yes", "no")) == [1], "the lone success gets no feedback"


def with_tail(log_probs: Tensor, chosen: Tensor) -> Tensor:
    kept = log_probs.gather(-1, chosen)
    tail = torch.log1p(-kept.exp().sum(-1, keepdim=True))
    return torch.cat([kept, tail], dim=-1)


def expected(student: ChatModel, ledger: list[dict[str, Any]]) -> Gradients:
    """Token mean over usable samples of the JSD on the student's top tokens plus one bucket."""
    teacher: Any = copy.deepcopy(student.model)
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in ledger:
        groups[row["id"]].append(row)

    def loss(model: Any) -> Tensor:
        parts = []
        for name, rows in groups.items():
            example = BY_ID[name]
            right = [by_length(example, row["text"]).correct for row in rows]
            for index, row in enumerate(rows):
                others = [i for i, success in enumerate(right) if success and i != index]
                if not others:
                    continue
                messages = conditioned_messages(example, SHORT, rows[others[0]]["text"])
                own = full_logits(model, student.prompt_ids(example.messages), row["tokens"]).log_softmax(-1)
                with torch.no_grad():
                    target = full_logits(teacher, student.prompt_ids(messages), row["tokens"]).log_softmax(-1)
                chosen = own.detach().topk(K).indices
                one, other = with_tail(own, chosen), with_tail(target, chosen)
                middle = ((one.exp() + other.exp()) / 2).log()
                sides = [(p.exp() * (p - middle)).sum(-1) for p in (one, other)]
                parts.append((sides[0] + sides[1]) / 2)
        assert 0 < len(parts) < len(ledger), "some samples have a teacher and some have none"
        return torch.cat(parts).mean()

    return by_hand(student, loss)


def check(folder: Path) -> None:
    student = tiny_model(0)
    for micro in (12, 3):
        own = copy.deepcopy(student)
        gradients, context = first_step(make(), own, stage_of(), folder / f"m{micro}", micro)
        assert len(list(context.ledger)) == 12
        assert_close(gradients, expected(student, list(context.ledger)), 1e-3)


def test_step_has_the_gradient_of_the_objective(tmp_path: Path) -> None:
    check(tmp_path)


def unusable_as_zeros(mask: Tensor, reduction: Any, tokens: int, sequences: int) -> Tensor:
    return mask.float() / max(2 * tokens, 1)


@pytest.mark.parametrize("mistake", ["diluted", "old policy forgotten"])
def test_planted_mistakes_are_caught(mistake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if mistake == "diluted":
        monkeypatch.setattr(on_policy_module, "loss_weights", unusable_as_zeros)
    else:
        monkeypatch.setattr(
            on_policy_module, "importance_weights", lambda new, old, largest: new.exp().clamp(max=largest)
        )
    with pytest.raises(AssertionError):
        check(tmp_path)


def never(example: Example, text: str) -> Score:
    return Score(False, text, True)


def test_steps_without_a_usable_sample_change_nothing_and_are_counted(tmp_path: Path) -> None:
    student = tiny_model(0)
    before = weights(student)
    adaptation = make(epochs=2).adapt(student, stage_of(never), TinyContext(tmp_path))
    assert same_weights(before, weights(student))
    assert adaptation.steps == 2 and adaptation.trained_tokens == 0
    assert adaptation.data_generation == {"usable_samples_share": 0.0}
    assert adaptation.warnings == ["2 of 2 steps had nothing to learn from and were skipped"]
    assert all(math.isfinite(entry["loss"]) for entry in adaptation.logs)


def test_a_skipped_step_after_a_real_one_does_not_move_by_momentum(tmp_path: Path) -> None:
    def score(example: Example, text: str) -> Score:
        # Right in the first visit of the rows alone.
        score.asked += 1  # type: ignore[attr-defined]
        return Score(score.asked <= 12, text, True)  # type: ignore[attr-defined]

    moved = []
    for epochs in (1, 3):
        score.asked = 0  # type: ignore[attr-defined]
        student = tiny_model(0)
        make(epochs=epochs, schedule="constant", warmup_ratio=0.0, ema_rate=1e-9).adapt(
            student, stage_of(score), TinyContext(tmp_path / str(epochs))
        )
        moved.append(weights(student))
    assert same_weights(*moved)
    assert not same_weights(moved[0], weights(tiny_model(0)))


def test_neither_demonstration_nor_answer_is_read(tmp_path: Path) -> None:
    bare = [type(row)(row.task, row.id, row.messages, None, None) for row in FOUR]
    one, other = tiny_model(0), tiny_model(0)
    make(epochs=1).adapt(one, Stage(1, "toy", bare, (), {"toy": by_length}), TinyContext(tmp_path / "bare"))
    make(epochs=1).adapt(other, stage_of(), TinyContext(tmp_path / "full"))
    assert same_weights(weights(one), weights(other))


@pytest.mark.parametrize(("count", "parts"), [(12, 4), (5, 3), (2, 4), (0, 2)])
def test_samples_are_split_evenly(count: int, parts: int) -> None:
    found = [list(range(count))[where] for where in split_evenly(count, parts)]
    assert len(found) == parts
    assert [x for part in found for x in part] == list(range(count))
    assert max(map(len, found)) - min(map(len, found)) <= 1
