"""A run that begins with finished stages of another one."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cl_bench.harness.errors import StoreError, UsageError
from cl_bench.harness.files import canonical_json, flush_tree, plain, temporary_name
from cl_bench.harness.models.fingerprint import weights_fingerprint
from cl_bench.harness.planned_stages import planned_rows, planned_stages
from cl_bench.harness.profile_files import profile_names, recipe_names
from cl_bench.harness.request import Request, request_of
from cl_bench.harness.resolve import differences
from cl_bench.harness.run_directory import (
    CHECKPOINT,
    DONE,
    RunView,
    load_run,
    method_label,
    read_spec,
    stage_folder,
    stage_weights,
    weights_dropped,
)
from cl_bench.harness.spec import BranchSpec, RunSpec
from cl_bench.harness.store import Store

_SHARED = ("results_version", "lab_version", "data", "tasks", "suite", "evaluation", "model", "evaluation_batch_size",
           "limit", "eval_every")  # fmt: skip
"""Fields that both runs share, or the rows taken over would not be rows of the new run."""
_LONGEST = 24
"""Characters of a value that a message shows."""


def branched(spec: RunSpec, directory: Path, stage: str, note: Callable[[str], None]) -> RunSpec:
    """The specification of a run that goes on from a finished stage of another one.

    Args:
        spec: The new run as if it began from the untouched model.
        directory: Run directory of the other one.
        stage: Number of the stage in it, from 1, or its row.
        note: Receives remarks for the user.

    Raises:
        UsageError: No such stage, or the runs differ in what the rows taken over depend on.
        StoreError: The other run is damaged, the stage is not finished, or its weights were not kept.
    """
    view = load_run(directory, weights=True)
    stages = [name for name, _ in planned_stages(view.spec)]
    _check_bounds(spec, view.spec)
    number = _number(stage, stages, directory)
    _check_shared(spec, view.spec, number)
    row = stages[number - 1]
    if row not in view.stages:
        raise StoreError(f"stage {row} of {directory} is not finished", hint=f"cl-bench resume {directory}")
    checkpoint = stage_weights(view.stages[row], row)
    if spec.seed != view.spec.seed:
        note(
            f"seed {spec.seed} goes on from stage {row} of seed {view.spec.seed}: runs that share stages are not "
            "independent, and an interval over their seeds is one for what follows that stage"
        )
    return spec.model_copy(update={"branch": _branch(spec, view, number, row, weights_fingerprint(checkpoint))})


def _branch(spec: RunSpec, view: RunView, number: int, row: str, weights: str) -> BranchSpec:
    carried = spec.method == view.spec.method and spec.modifiers == view.spec.modifiers
    return BranchSpec(
        run=view.spec.digest(),
        method=method_label(view.spec),
        seed=view.spec.seed,
        settings=view.spec.settings_digest(),
        stage=number,
        row=row,
        weights=weights,
        carried=carried,
    )


def _number(stage: str, stages: list[str], directory: Path) -> int:
    if stage in stages:
        return stages.index(stage) + 1
    if stage.isdecimal() and 1 <= int(stage) <= len(stages):
        return int(stage)
    known = ", ".join(f"{number} ({name})" for number, name in enumerate(stages, start=1))
    raise UsageError(f"--from-stage {stage}: {directory} has no such stage", hint=f"one of {known}" if known else "")


def continued(request: Request, directory: Path) -> Request:
    """What is asked for, with the values of the run to go on from where it says nothing.

    A request that names a method has modifiers of its own alone; one that names a recipe or profile has the settings of
    method and modifiers from there.

    Args:
        request: What the user said.
        directory: Run directory of the other run.

    Raises:
        UsageError: Its recipe or profile was a file, and the request names none.
        StoreError: It is no run directory, or damaged.
    """
    before = request_of(read_spec(directory))
    anew = request.recipe is not None or request.profile is not None
    dropped = {"method": anew, "modifier": anew or request.method is not None}
    settings = {group: values for group, values in before.settings.items() if not dropped.get(group)}
    changes: dict[str, Any] = {"joint_with": None, "modifiers": None} if request.method is not None else {}
    changes |= {"recipe": None} if anew else {}
    before = before.model_copy(update={**changes, "settings": settings})
    for kind, name, given, known in (
        ("recipe", before.recipe, request.recipe, recipe_names()),
        ("profile", before.profile, request.profile, profile_names()),
    ):
        if name is not None and given is None and name not in known:
            raise UsageError(f"{directory} was made with {kind} {name} of a file", hint=f"name it with --{kind} FILE")
    return request.over(before)


def _check_bounds(spec: RunSpec, other: RunSpec) -> None:
    for found, what in ((spec, "cannot go on from a stage"), (other, "has no stage to go on from")):
        if found.bound is not None:
            why = "base trains nothing" if found.bound == "base" else "joint trains on all tasks in one stage"
            raise UsageError(f"--from: the bound {found.bound} {what}", why, "name a method")


def _check_shared(spec: RunSpec, other: RunSpec, number: int) -> None:
    ours, theirs = (plain(planned_stages(found)[:number]) for found in (spec, other))
    differing = [] if ours == theirs else [f"the first {number} stages"]
    for name, values in differences(spec, other).items():
        if name.partition(".")[0] in _SHARED or name == "precision.generation":
            texts = [canonical_json(value) for value in values]
            shown = all(len(text) <= _LONGEST for text in texts)
            differing.append(f"{name} ({texts[0]} here, {texts[1]} there)" if shown else name)
    if differing:
        raise UsageError(
            "the new run cannot go on from the other one",
            f"they differ in {', '.join(differing)}",
            "what is not given is as it was in that run, as long as program and data are what they were",
        )
    if len(planned_stages(spec)) <= number:
        raise UsageError("no stage is left to train after the one that --from-stage names")


def take_over(store: Store, source: Path | None) -> None:
    """Copy the rows before the branch into the new run, each whole or not at all; nothing where they are there.

    Args:
        store: The new run.
        source: Run directory of the other one; None where it is not known any more.

    Raises:
        StoreError: The rows are missing and cannot be had, or are not those that the run was planned with.
    """
    branch = store.spec.branch
    assert branch is not None
    names = planned_rows(store.spec)[: branch.stage + 1]
    folders = [stage_folder(index, name) for index, name in enumerate(names)]
    for folder in folders:
        if not store.exists(f"{folder}/{DONE}"):
            _copy(_found(source, folder), store.path(folder))
    if weights_dropped(store.path(folders[-1])):
        return  # by the new run, whose next stage is finished
    weights = weights_fingerprint(store.path(folders[-1]) / CHECKPOINT)
    if weights != branch.weights:
        raise StoreError(
            f"{store.path(folders[-1])} does not hold the weights that the run goes on from",
            f"they hash to {weights[:8]}, not to {branch.weights[:8]}",
            "begin the run again from the other one as it is now",
        )


def _found(source: Path | None, folder: str) -> Path:
    if source is None or not (source / folder / DONE).is_file():
        raise StoreError(
            f"{folder} of the run that this one goes on from is gone",
            f"{source if source is not None else 'the other run'} does not have it",
            "name where it is now with --from",
        )
    return source / folder


def _copy(source: Path, target: Path) -> None:
    staged = temporary_name(target)
    staged.parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(source, staged)
    flush_tree(staged)
    if target.exists():
        shutil.rmtree(target)
    staged.replace(target)
