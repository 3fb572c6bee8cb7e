"""Replay and task vectors: what enters the buffer, how many rows come back, what the weights become."""

from __future__ import annotations

import copy
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch

from cl_bench.harness.components import Components
from cl_bench.harness.errors import DataError, UsageError
from cl_bench.harness.registry import Registry
from cl_bench.harness.resolve import component
from cl_bench.harness.state_file import load_state, save_state
from cl_bench.methods.base import Modifier, Stage
from cl_bench.methods.modifiers.replay import PSEUDO, Replay, ReplaySettings
from cl_bench.methods.modifiers.task_vectors import TaskVectors, TaskVectorsSettings
from cl_bench.tasks.base import Example
from tests.methods.probes import make_method
from tests.support import TinyContext, same_weights, tiny_model, toy_score, weights


def rows(task: str, count: int = 20) -> list[Example]:
    def one(i: int) -> Example:
        question = ({"role": "user", "content": f"{task} {i}?"},)
        return Example(task, f"{task}-{i}", question, f"{task} gives {i}", str(i), ("1", "2"))

    return [one(i) for i in range(count)]


def stage_of(index: int, task: str, count: int = 20) -> Stage:
    return Stage(index, task, rows(task, count), (), dict.fromkeys(("red", "green", "blue"), toy_score))


def visit(modifier: Replay, stage: Stage, folder: Path) -> Stage:
    """One stage as the runner goes through it, the state taken through the disk."""
    context = TinyContext(folder, original=tiny_model(3))
    modifier.before_stage(tiny_model(0), stage, context)
    stage = stage.with_examples(modifier.examples(stage), modifier.scorers(), modifier.replaces_rows)
    modifier.after_stage(tiny_model(0), stage, context)
    save_state(folder, "state", modifier.state_dict())
    modifier.load_state_dict(load_state(folder, "state"))
    return stage


def three(folder: Path, **settings: Any) -> list[Stage]:
    modifier = Replay(ReplaySettings(**settings))
    names = ("red", "green", "blue")
    return [visit(modifier, stage_of(i, name), folder / name) for i, name in enumerate(names, 1)]


def tasks_of(stage: Stage) -> dict[str, int]:
    return dict(Counter(example.task for example in stage.examples))


def test_inside_the_budget_replayed_rows_take_the_place_of_new_ones(tmp_path: Path) -> None:
    found = [tasks_of(stage) for stage in three(tmp_path, share=0.2, budget="inside")]
    assert found == [{"red": 20}, {"green": 16, "red": 4}, {"blue": 16, "red": 2, "green": 2}]


def test_on_top_of_the_budget_no_new_row_is_lost(tmp_path: Path) -> None:
    found = [tasks_of(stage) for stage in three(tmp_path, share=0.2, budget="on_top")]
    assert found == [{"red": 20}, {"green": 20, "red": 5}, {"blue": 20, "red": 3, "green": 2}]


def test_the_buffer_holds_an_equal_number_of_rows_of_each_stage_and_no_row_twice(tmp_path: Path) -> None:
    modifier = Replay(ReplaySettings(share=0.5, per_stage=6))
    for i, name in enumerate(("red", "green", "blue"), 1):
        visit(modifier, stage_of(i, name), tmp_path / name)
    buffer = modifier.state_dict()["buffer"]
    assert [{row["task"] for row in part} for part in buffer] == [{"red"}, {"green"}, {"blue"}]
    assert [len(part) for part in buffer] == [6, 6, 6]
    keys = [(row["task"], row["id"]) for part in buffer for row in part]
    assert len(set(keys)) == len(keys)


def test_replayed_rows_are_training_rows_unchanged(tmp_path: Path) -> None:
    known = {example.key: example for name in ("red", "green") for example in rows(name)}
    last = three(tmp_path, share=0.3)[-1]
    replayed = [example for example in last.examples if example.task != "blue"]
    assert replayed and all(example == known[example.key] for example in replayed)
    assert last.score(replayed[0], replayed[0].demonstration or "").correct


def test_which_rows_return_depends_on_the_seed_and_the_stage_alone(tmp_path: Path) -> None:
    one, other = (three(tmp_path / part, share=0.3)[-1].examples for part in ("a", "b"))
    assert one == other


def test_the_untouched_model_answers_in_pseudo_replay(tmp_path: Path) -> None:
    stages = three(tmp_path, share=0.3, responses="base", max_completion_length=120)
    replayed = [example for example in stages[1].examples if example.task == "red"]
    assert replayed
    assert all(example.demonstration and not example.demonstration.startswith("red gives") for example in replayed)


def prompts_file(folder: Path, *lines: str) -> str:
    file = folder / "prompts.jsonl"
    file.write_text("\n".join(lines), encoding="utf-8")
    return str(file)


def test_prompts_of_a_file_need_no_earlier_stage(tmp_path: Path) -> None:
    file = prompts_file(tmp_path, *(json.dumps({"prompt": f"say {i}"}) for i in range(40)))
    stages = three(tmp_path, share=0.2, responses="base", prompts=file, max_completion_length=120)
    for stage in stages:
        assert set(tasks_of(stage)) == {PSEUDO, stage.name}
    written = next(example for example in stages[0].examples if example.task == PSEUDO)
    assert stages[0].score(written, written.demonstration or "").correct
    assert not stages[0].score(written, "something else").correct


def test_the_prompts_themselves_are_part_of_the_run(tmp_path: Path) -> None:
    registry = Registry()

    def identity(text: str) -> str:
        values = {"responses": "base", "prompts": prompts_file(tmp_path, json.dumps({"prompt": text}))}
        return component(ReplaySettings, "modifier", "replay", values, registry).identity

    first = identity("one")
    assert identity("another") != first and identity("one") == first
    plain = component(ReplaySettings, "modifier", "replay", {}, registry).identity
    assert plain == registry.identity("modifiers", "replay") and first.startswith(plain)
    with pytest.raises(UsageError, match="modifier.replay.prompts: absent.jsonl cannot be read"):
        component(ReplaySettings, "modifier", "replay", {"responses": "base", "prompts": "absent.jsonl"}, registry)


def test_a_damaged_file_of_prompts_is_named_with_its_line(tmp_path: Path) -> None:
    modifier = Replay(ReplaySettings(responses="base", prompts=prompts_file(tmp_path, '{"prompt": "a"}', "{}")))
    with pytest.raises(DataError, match="line 2"):
        modifier.before_stage(tiny_model(0), stage_of(1, "red"), TinyContext(tmp_path, original=tiny_model(3)))
    with pytest.raises(UsageError, match="no responses"):
        Replay(ReplaySettings(prompts="some.jsonl"))


def trained(modifiers: list[Modifier], folder: Path, count: int) -> list[dict[str, torch.Tensor]]:
    """Weights after each of ``count`` stages of SFT."""
    student, found = tiny_model(0), []
    for index, name in enumerate(("red", "green", "blue")[:count], 1):
        context = TinyContext(
            folder / name, modifiers=modifiers, original=tiny_model(0), task_start=copy.deepcopy(student)
        )
        components = Components(0, make_method("sft", epochs=1, batch_size=8), modifiers)
        components.adapt(student, stage_of(index, name), context)
        found.append(weights(student))
    return found


def test_replay_changes_the_second_stage_alone(tmp_path: Path) -> None:
    plain, replayed = trained([], tmp_path / "plain", 2), trained([Replay()], tmp_path / "replay", 2)
    assert same_weights(plain[0], replayed[0])
    assert not same_weights(plain[1], replayed[1])


def test_sequential_task_vectors_of_scale_one_change_nothing(tmp_path: Path) -> None:
    plain = trained([], tmp_path / "plain", 2)
    modifier = TaskVectors(TaskVectorsSettings(scale=1.0, start="sequential"))
    for one, other in zip(plain, trained([modifier], tmp_path / "vectors", 2), strict=True):
        for name, value in one.items():
            torch.testing.assert_close(other[name], value, atol=1e-5, rtol=1e-4)


def test_parallel_task_vectors_are_added_up_on_the_untouched_model(tmp_path: Path) -> None:
    zero = weights(tiny_model(0))
    modifier = TaskVectors(TaskVectorsSettings(scale=0.4))
    found = trained([modifier], tmp_path / "vectors", 2)
    red = trained([], tmp_path / "red", 1)[0]
    for name, value in found[0].items():
        torch.testing.assert_close(value, zero[name] + 0.4 * (red[name] - zero[name]), atol=1e-6, rtol=1e-5)
    green, context = tiny_model(0), TinyContext(tmp_path / "green")
    Components(0, make_method("sft", epochs=1, batch_size=8), []).adapt(green, stage_of(2, "green"), context)
    for name, value in found[1].items():
        sum_of_both = red[name] + weights(green)[name] - 2 * zero[name]
        torch.testing.assert_close(value, zero[name] + 0.4 * sum_of_both, atol=1e-6, rtol=1e-5)


def test_a_larger_scale_is_more_drift(tmp_path: Path) -> None:
    zero = weights(tiny_model(0))

    def drift(scale: float) -> float:
        modifier = TaskVectors(TaskVectorsSettings(scale=scale))
        found = trained([modifier], tmp_path / str(scale), 2)[-1]
        return float(sum((value - zero[name]).square().sum() for name, value in found.items()))

    found = [drift(scale) for scale in (0.0, 0.3, 0.6)]
    assert found[0] == 0.0 and found == sorted(found) and found[2] > 1.5 * found[1]


def test_more_replay_keeps_more_of_the_first_task(tmp_path: Path) -> None:
    """Loss of the second stage's result on rows of the first falls as the share rises."""

    def loss(share: float) -> float:
        modifiers: list[Modifier] = [Replay(ReplaySettings(share=share))] if share else []
        student = tiny_model(0)
        student.model.load_state_dict({**student.model.state_dict(), **trained(modifiers, tmp_path / str(share), 2)[1]})
        total = 0.0
        for example in rows("red"):
            prompt, answer = student.prompt_ids(example.messages), student.completion_ids(example.demonstration or "")
            with torch.no_grad():
                logits = student.model(input_ids=torch.tensor([[*prompt, *answer]])).logits[0, len(prompt) - 1 : -1]
            total += float(torch.nn.functional.cross_entropy(logits, torch.tensor(answer)))
        return total

    found = [loss(share) for share in (0.0, 0.3, 0.8)]
    assert found == sorted(found, reverse=True)
