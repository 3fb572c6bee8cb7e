"""RunSpec, which decides a run's result and is hashed, and Execution, which says where and how and is not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from cl_bench.harness.errors import UsageError
from cl_bench.harness.files import content_hash
from cl_bench.harness.validation import build
from cl_bench.harness.yaml_files import dump_yaml, parse_yaml
from cl_bench.methods.base import Precision
from cl_bench.tasks.sources.base import DataOptions, OptionOrder

RESULTS_VERSION = 3
"""Raised when the same spec would give other numbers than before; part of the hash."""

EvaluationSplit = Literal["test", "dev"]


class _Spec(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class ComponentSpec(_Spec):
    """A method or modifier.

    Attributes:
        name: Registered name.
        settings: Every setting with its value, defaults included.
        identity: Package version and hash of the module's source, and a hash of each file that a setting names.
    """

    name: str
    settings: dict[str, Any] = Field(default_factory=dict)
    identity: str = ""


class StageSpec(_Spec):
    """One stage of a sequence.

    Attributes:
        task: Task trained on.
        name: Unique row name (``chemistry``, ``chemistry-2``).
        rows: Training rows used, by a seeded permutation; None for all.
        epochs: Passes over the rows, in place of the method's own setting; None to keep that.
    """

    task: str
    name: str
    rows: int | None = Field(default=None, ge=1)
    epochs: float | None = Field(default=None, gt=0)


class SequenceSpec(_Spec):
    """Stages in the order they are trained.

    Attributes:
        name: Name of the sequence.
        order: "default", a named order, "random-SEED", or the stages joined by "+".
        stages: The stages.
    """

    name: str
    order: str = "default"
    stages: tuple[StageSpec, ...] = Field(min_length=1)

    @field_validator("stages")
    @classmethod
    def _names_are_unique(cls, stages: tuple[StageSpec, ...]) -> tuple[StageSpec, ...]:
        names = [stage.name for stage in stages]
        if len(set(names)) < len(names) or "base" in names:
            raise ValueError("stage names must be unique and none may be 'base'")
        return stages


class ModelSpec(_Spec):
    """A model by content.

    Attributes:
        name: Name for people.
        fingerprint: Hash over weights, configuration and tokenizer files.
        source: Folder or hub id it is loaded from; not part of the hash, since the content decides.
        thinking: Whether answers begin with a reasoning block, where the chat template can switch it; None leaves the
            template's default.
    """

    name: str
    fingerprint: str
    source: str = ""
    thinking: bool | None = None


class DataSpec(_Spec):
    """Where task data come from and in which form; ``DataOptions`` explains the fields.

    Attributes:
        source: "lab" or "hub".
        distance: Distance of the lab's demonstrations from the model's own style: LO, MID or HI.
        order: Form of the lab's demonstrations.
        split: How data sets without a test file are split.
        option_order: Order of multiple-choice options in public data.
    """

    source: Literal["lab", "hub"]
    distance: Literal["LO", "MID", "HI"] = "HI"
    order: str = "reasoning-first"
    split: Literal["group", "paper"] = "group"
    option_order: OptionOrder = "permuted"


class TaskSpec(_Spec):
    """A task that is evaluated: its name, what fixes its data and scorer, and what is to be known about its rows."""

    name: str
    identity: dict[str, Any] = Field(default_factory=dict)
    remarks: tuple[str, ...] = ()


class SuiteSpec(_Spec):
    """A retention suite: its resolved entries, each with metric, chance, shots and data identity."""

    name: str
    tier: str = "full"
    tasks: tuple[dict[str, Any], ...] = ()


class EvaluationSpec(_Spec):
    """Which rows are evaluated; the subsets are fixed permutations that do not depend on the run's seed.

    Attributes:
        split: "test", or "dev" while settings are being chosen.
        rows: Most rows of each task; None for all.
        ood_rows: Most out-of-distribution rows of each task; None for all, 0 for none.
        suite_rows: Most rows of each retention task; None for what the suite's tier says.
        system_prompt: System turn of every prompt, in training too, in place of the task's own; None keeps that.
        shots: Worked examples before the question of every task of the sequence: training rows, the same for all items,
            in evaluation alone. A suite's benchmarks have their own number.
        samples: Answers drawn for every item beside the greedy one; 0 for none.
        temperature: Temperature of those answers.
        options_only: Measure multiple-choice tasks with their questions hidden too.
    """

    split: EvaluationSplit = "test"
    rows: int | None = Field(default=None, ge=1)
    ood_rows: int | None = Field(default=None, ge=0)
    suite_rows: int | None = Field(default=None, ge=1)
    system_prompt: str | None = None
    shots: int = Field(default=0, ge=0)
    samples: int = Field(default=0, ge=0)
    temperature: float = Field(default=1.0, gt=0)
    options_only: bool = True


class BranchSpec(_Spec):
    """Where a run goes on from another one.

    Attributes:
        run: Digest of the other run's specification.
        method: What the other run is called.
        seed: Its seed.
        settings: Hash of its specification but seed and sequence; branches of runs that differ in it are no seeds of
            one run.
        stage: The last stage taken over, from 1.
        row: Its row.
        weights: Hash of its weights.
        carried: Method and modifiers are those of the other run, and go on with their state; otherwise they begin anew.
    """

    run: str
    method: str
    seed: int
    settings: str
    stage: int = Field(ge=1)
    row: str
    weights: str
    carried: bool


class RunSpec(_Spec):
    """Everything that decides the result of one run, fully resolved.

    Attributes:
        results_version: Version of the program's numerics.
        profile: Profile the values came from.
        recipe: Recipe of method settings.
        lab_version: Version of the generated world, or None off the lab.
        method: The method, or None for the bound ``base``.
        modifiers: Modifiers in the order they are applied.
        bound: "base" (row 0 alone), "joint" (one stage over the union of the training sets), or None.
        sequence: Stages.
        data: Where task data come from and in which form.
        tasks: Every task evaluated, in the sequence's order.
        suite: Retention suite, or None.
        evaluation: Rows evaluated.
        model: The student.
        aligner: The larger model, or None.
        precision: Numeric formats and batch plan.
        evaluation_batch_size: Rows scored together in evaluation.
        seed: Run seed.
        limit: Rows a stage and a task are cut to (a partial run), or None.
        eval_every: Optimizer steps between evaluations within a stage, or None.
        branch: The stage of another run that this one goes on from, or None.
    """

    results_version: int = RESULTS_VERSION
    profile: str
    recipe: str
    lab_version: int | None = None
    method: ComponentSpec | None
    modifiers: tuple[ComponentSpec, ...] = ()
    bound: Literal["base", "joint"] | None = None
    sequence: SequenceSpec
    data: DataSpec
    tasks: tuple[TaskSpec, ...]
    suite: SuiteSpec | None = None
    evaluation: EvaluationSpec = EvaluationSpec()
    model: ModelSpec
    aligner: ModelSpec | None = None
    precision: Precision = Precision()
    evaluation_batch_size: int = Field(default=128, ge=1)
    seed: int = Field(default=0, ge=0)
    limit: int | None = Field(default=None, ge=1)
    eval_every: int | None = Field(default=None, ge=1)
    branch: BranchSpec | None = None

    @field_validator("precision", mode="before")
    @classmethod
    def _precision_keys(cls, value: Any) -> Any:
        # Pydantic ignores unknown keys of a plain dataclass.
        if isinstance(value, Mapping):
            known = {item.name for item in fields(Precision)}
            unknown = sorted(set(value) - known)
            if unknown:
                raise ValueError(f"unknown {', '.join(unknown)}; known: {', '.join(sorted(known))}")
        return value

    @model_validator(mode="after")
    def _method_fits_bound(self) -> RunSpec:
        if (self.method is None) != (self.bound == "base"):
            raise ValueError("a run has a method exactly when it is not the bound 'base'")
        return self

    @property
    def data_source(self) -> Literal["lab", "hub"]:
        """Where task data come from."""
        return self.data.source

    def hash_payload(self) -> dict[str, Any]:
        """What the digest covers: the whole spec except where model files lie and what is said about rows."""
        payload = self.model_dump(mode="json")
        if self.branch is None:  # runs of versions that had no branches keep their names
            del payload["branch"]
        for task in payload["tasks"]:
            del task["remarks"]
        for role in ("model", "aligner"):
            if payload[role] is not None:
                del payload[role]["source"]
        return payload

    def digest(self) -> str:
        """SHA-256 of the canonical JSON, in hex; its first eight digits end the run directory's name."""
        return content_hash(self.hash_payload())

    def seedless_payload(self) -> dict[str, Any]:
        """What seeds of one specification have in common; those of a branch may go on from seeds of one, too."""
        payload = self.hash_payload()
        del payload["seed"]
        branch = payload.get("branch")
        payload["branch"] = branch and {name: branch[name] for name in ("method", "settings", "stage", "row")}
        return payload

    def settings_digest(self) -> str:
        """SHA-256, in hex, of what ``seedless_payload`` has beside the sequence: what trains a stage, and how."""
        return content_hash({name: value for name, value in self.seedless_payload().items() if name != "sequence"})

    def to_yaml(self) -> str:
        """The spec as YAML; ``from_yaml`` gives an equal spec back."""
        return dump_yaml(self.model_dump(mode="json"))

    @classmethod
    def from_yaml(cls, text: str, where: str = "spec") -> RunSpec:
        """Parse ``to_yaml``'s output.

        Raises:
            UsageError: Not YAML, an unknown key, or a value that does not fit.
        """
        content = parse_yaml(text, where)
        if not isinstance(content, dict):
            raise UsageError(f"{where}: expected a mapping", why=f"found {type(content).__name__}")
        return build(cls, content, where)


@dataclass(frozen=True, slots=True)
class Execution:
    """Where and how a run is carried out; recorded in the manifest, not hashed.

    Attributes:
        output: Folder below which run directories are made.
        data_root: Folder with the data sets, or None for the hub.
        gold_ids: File of row ids that science tasks are restricted to, or None; what it selects is in the tasks' data
            hashes.
        include_paths: Folders with the user's own methods, tasks, sequences and suites.
        device: Torch device.
        threads: CPU threads, or None for torch's choice.
        offline: Never reach for the network.
        progress: Show progress.
        checkpoint_every_seconds: Time between checkpoints within a stage, or None.
        checkpoint_every_steps: Optimizer steps between checkpoints within a stage, or None; goes before seconds.
        keep_checkpoints: Keep the weights of all finished stages, of the last alone, or of none once the run is done.
        allow_code: Whether programs that a model wrote may be run for scoring; None: the user has not said.
        branch_from: Run directory that a branched run takes its first stages from, or None.
        attempt: Which of several runs of the same specification, from 1; each has a directory of its own.
        cache: Folder of the cache, or None for the user's.
    """

    output: Path = Path("runs")
    data_root: Path | None = None
    gold_ids: Path | None = None
    include_paths: tuple[Path, ...] = ()
    device: str = "cpu"
    threads: int | None = None
    offline: bool = False
    progress: bool = True
    checkpoint_every_seconds: float | None = 60.0
    checkpoint_every_steps: int | None = None
    keep_checkpoints: Literal["all", "last", "none"] = "all"
    allow_code: bool | None = None
    branch_from: Path | None = None
    attempt: int = 1
    cache: Path | None = None


def data_options(data: DataSpec, execution: Execution) -> DataOptions:
    """How tasks and suites of a run find their rows: the spec's form of the data, the execution's places."""
    return DataOptions(
        source=data.source,
        data_root=execution.data_root,
        offline=execution.offline,
        distance=data.distance,
        order=data.order,
        split=data.split,
        gold_ids=execution.gold_ids,
        option_order=data.option_order,
        allow_code=execution.allow_code,
    )
