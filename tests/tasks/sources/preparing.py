"""What the tests of ``cl-bench data prepare`` share: two data sets on a hub in memory, and short words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cl_bench.tasks.sources.base import DataOptions
from cl_bench.tasks.sources.locate import DatasetSpec
from cl_bench.tasks.sources.prepare import prepare
from cl_bench.tasks.sources.wanted import Need, Outcome, wanted_sets
from tests.tasks.sources.fake_hub import FakeHub, repository
from tests.tasks.sources.rows import math_row

PATH = "owner/name"
ROWS = {"train": [math_row(1), math_row(2)], "test": [math_row(3)]}
SPEC = DatasetSpec(PATH, {"train": "x_train.jsonl", "test": "x_test.jsonl"}, "main", fields={"question": "str"})
OTHER = DatasetSpec("owner/other", {"test": "other.jsonl"})


def two_data_sets() -> FakeHub:
    """A hub with two data sets; the first has two configurations."""
    hub = FakeHub()
    hub.publish(PATH, repository({"second": ROWS, "main": ROWS}))
    hub.publish(OTHER.path, repository({"default": {"test": [math_row(5)]}}))
    return hub


def have(root: Path, hub: FakeHub | None, *specs: DatasetSpec, **options: Any) -> list[Outcome]:
    """Prepare data sets in a folder."""
    return prepare(wanted_sets(Need("task", spec) for spec in specs), root, hub=hub, **options)


def states(outcomes: list[Outcome]) -> list[str]:
    """What became of them."""
    return [outcome.state for outcome in outcomes]


def at(root: Path) -> DataOptions:
    """Data under a root, and nothing else."""
    return DataOptions("hub", root, offline=True)
