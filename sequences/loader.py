"""Sequence files: which tasks are trained one after another, and in which orders."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from cl_bench.harness.errors import UnknownNameError, UsageError
from cl_bench.harness.spec import SequenceSpec, StageSpec
from cl_bench.harness.validation import build
from cl_bench.harness.yaml_files import read_mapping


class StageEntry(BaseModel):
    """One entry of ``stages``: a task with how much of it is trained on.

    Attributes:
        task: Task name.
        rows: Training rows, or None for all.
        epochs: Passes over the rows, or None for the method's setting.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
    task: str
    rows: int | None = Field(default=None, ge=1)
    epochs: float | None = Field(default=None, gt=0)


class SequenceFile(BaseModel):
    """Content of a sequence YAML file.

    Attributes:
        name: Equal to the file's name.
        description: One sentence.
        stages: Stages in the default order; an entry may be a bare task name.
        suites: Retention suites that fit the sequence. The first replaces the profile's suite where that is none of
            them; empty leaves the choice to the profile.
        orders: Named orders, each a permutation of the stage names.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
    name: str
    description: str = ""
    stages: tuple[StageEntry, ...] = Field(min_length=1)
    suites: tuple[str, ...] = ()
    orders: dict[str, tuple[str, ...]] = Field(default_factory=dict)

    @field_validator("stages", mode="before")
    @classmethod
    def _bare_names(cls, value: Any) -> Any:
        if not isinstance(value, list | tuple):
            return value
        return tuple({"task": item} if isinstance(item, str) else item for item in value)

    def resolve(self, order: str | None = None) -> SequenceSpec:
        """The stages in an order.

        Args:
            order: None or "default", a named order, "random:SEED", or stage names separated by commas.

        Raises:
            UsageError: The order is unknown or not a permutation of the stages.
        """
        named = _with_names(self.stages)
        label, names = self._order(order or "default", [stage.name for stage in named])
        by_name = {stage.name: stage for stage in named}
        entries = [by_name[name] for name in names]
        return SequenceSpec(name=self.name, order=label, stages=_with_names(entries))

    def _order(self, order: str, names: list[str]) -> tuple[str, list[str]]:
        if order == "default":
            return order, names
        if order in self.orders:
            return order, _permutation(self.orders[order], names, f"order {order!r} of sequence {self.name}")
        if order.startswith("random:") or order.startswith("random-"):
            return _random_order(order, names)
        if "," in order or "+" in order or order in names:
            parts = [part.strip() for part in order.replace("+", ",").split(",")]
            chosen = _permutation(parts, names, f"order {order!r}")
            # The same order is the same run, however it was written.
            known = {"default": names} | {label: list(stages) for label, stages in self.orders.items()}
            return next((label for label, stages in known.items() if stages == chosen), "+".join(chosen)), chosen
        raise UnknownNameError(f"order of sequence {self.name}", order, ["default", "random:SEED", *self.orders])


def load_sequence(path: Path) -> SequenceFile:
    """Read and check a sequence file.

    Raises:
        UsageError: Not a valid sequence file, or its ``name`` is not the file's name.
    """
    content = build(SequenceFile, read_mapping(path), str(path))
    if content.name != path.stem:
        raise UsageError(f"{path}: the sequence is called {content.name!r}", hint=f"call it {path.stem!r}")
    for name in content.orders:
        content.resolve(name)
    return content


def _with_names(entries: Sequence[StageEntry | StageSpec]) -> tuple[StageSpec, ...]:
    seen: Counter[str] = Counter()
    stages = []
    for entry in entries:
        seen[entry.task] += 1
        name = entry.task if seen[entry.task] == 1 else f"{entry.task}-{seen[entry.task]}"
        stages.append(StageSpec(task=entry.task, name=name, rows=entry.rows, epochs=entry.epochs))
    return tuple(stages)


def _permutation(chosen: Sequence[str], names: Sequence[str], where: str) -> list[str]:
    for name in chosen:
        if name not in names:
            raise UnknownNameError(f"stage in {where}", name, names)
    if Counter(chosen) != Counter(names):
        missing = [name for name in names if name not in chosen]
        why = f"missing: {', '.join(missing)}" if missing else "a stage is named more than once"
        raise UsageError(f"{where} is not a permutation of the stages", why=why, hint=f"stages: {', '.join(names)}")
    return list(chosen)


def _random_order(order: str, names: list[str]) -> tuple[str, list[str]]:
    seed = order.removeprefix("random").lstrip(":-")
    if not (seed.isascii() and seed.isdigit()):
        raise UsageError(f"order {order!r}: the seed must be a whole number", hint="for example random:3")
    shuffled = list(names)
    random.Random(f"sequence order {int(seed)}").shuffle(shuffled)
    return f"random-{int(seed)}", shuffled
