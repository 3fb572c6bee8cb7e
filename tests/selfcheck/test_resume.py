"""Runs killed at seeded points equal uninterrupted ones; one that lost a piece of its state does not."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from cl_bench.harness.files import hash_tree
from cl_bench.harness.progress import SilentProgress
from cl_bench.harness.registry import Registry
from cl_bench.harness.selfcheck.results import results_of
from cl_bench.harness.selfcheck.resume import Plan, ResumeCheck, check_resume
from cl_bench.harness.selfcheck.short_run import short_run
from cl_bench.harness.spec import Execution

pytestmark = pytest.mark.end_to_end
EXECUTION = Execution(threads=1, checkpoint_every_seconds=None, checkpoint_every_steps=1)
Tamper = Callable[[Path], bool]
"""Takes something out of a checkpoint; tells whether that changed it."""


ALL = frozenset({"generation", "training", "checkpoint", "evaluation", "record"})


def check(
    folder: Path,
    method: str,
    modifiers: Sequence[str],
    plan: Plan,
    between: Callable[[Path], None] | None = None,
    *,
    execution: Execution = EXECUTION,
    eval_every: int | None = None,
) -> ResumeCheck:
    spec = short_run(method, modifiers, Registry(), execution).model_copy(update={"eval_every": eval_every})
    return check_resume(method, spec, execution, folder, plan, SilentProgress(quiet=True), between)


@pytest.mark.parametrize(
    ("method", "modifiers", "plan", "activities"),
    [
        ("synthself", (), Plan(kills=6, each=1, later=1, seed=9), ALL),
        ("sdft", (), Plan(kills=2, each=0, later=1, seed=4), {"training"}),
        ("grpo", (), Plan(kills=2, each=0, later=1, seed=4), {"training"}),
    ],
)
def test_a_killed_run_comes_to_the_same_end(
    method: str, modifiers: Sequence[str], plan: Plan, activities: set[str], tmp_path: Path
) -> None:
    found = check(tmp_path, method, modifiers, plan)
    assert found.problem == ""
    assert len(found.kills) >= plan.kills and set(found.by_activity()) >= activities
    assert found.in_later_steps() >= 1 and found.files > 40


def test_a_run_that_keeps_few_weights_and_is_evaluated_within_its_stages(tmp_path: Path) -> None:
    execution, plan = replace(EXECUTION, keep_checkpoints="last"), Plan(kills=6, each=1, later=1, seed=3)
    found = check(tmp_path, "sft", ("replay", "ewc", "lora"), plan, execution=execution, eval_every=4)
    assert found.problem == ""
    assert set(found.by_activity()) >= ALL - {"generation"} and found.in_later_steps() >= 1
    (whole,) = (tmp_path / "whole").glob("*/*/*")
    assert [path.parent.name for path in whole.glob("stages/*/checkpoint")] == ["02-biology"]
    assert any(name.startswith("stages/02-biology/within/") for name in results_of(whole))


def without_average(checkpoint: Path) -> bool:
    """The teacher starts again from the student."""
    student, path = load_file(checkpoint / "model.safetensors"), checkpoint / "cl_bench_state.safetensors"
    state = load_file(path)
    replaced = [name for name in state if "/teachers/" in name]
    assert replaced
    changed = False
    for name in replaced:
        (own,) = [key for key in student if name.endswith(f"/{key}")]
        changed |= not torch.equal(state[name], student[own])
        state[name] = student[own]
    save_file(state, path)
    return changed


def without_moments(checkpoint: Path) -> bool:
    """The optimizer has lost what it knew of earlier gradients."""
    optimizer = torch.load(checkpoint / "optimizer.pt", weights_only=True)
    moments = [state["exp_avg"] for state in optimizer["state"].values()]
    changed = any(bool(moment.any()) for moment in moments)
    for moment in moments:
        moment.zero_()
    torch.save(optimizer, checkpoint / "optimizer.pt")
    return changed


def without_a_row(checkpoint: Path) -> bool:
    """One generated row is gone."""
    path = checkpoint / "ledger.jsonl"
    rows = path.read_text().splitlines(keepends=True)
    path.write_text("".join(rows[1:]))
    return len(rows) > 0


@pytest.mark.parametrize("tamper", [without_average, without_moments, without_a_row])
def test_a_checkpoint_that_lost_something_is_found_out(tamper: Tamper, tmp_path: Path) -> None:
    changed: list[bool] = []

    def between(directory: Path) -> None:
        for hashes in directory.glob("stages/*/mid/step-*/hashes.json"):
            changed.append(tamper(hashes.parent))
            content = json.loads(hashes.read_text())
            hashes.write_text(json.dumps({**content, "files": hash_tree(hashes.parent, skip=["hashes.json"])}))

    found = check(tmp_path, "sdft", (), Plan(kills=2, each=0, later=2, seed=1), between)
    assert any(changed), "no kill left a checkpoint that this changes"
    assert found.problem
