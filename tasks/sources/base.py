"""Where a task's rows come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

SourceName = Literal["lab", "hub"]
OptionOrder = Literal["permuted", "as-published"]


@runtime_checkable
class LeavesRowsOut(Protocol):
    """A task that knows which rows of its data are none of its own."""

    @property
    def left_out(self) -> Mapping[str, str]:
        """Why a row that cannot be scored is none, by the row's id, as far as these rows have ids."""


@dataclass(frozen=True, slots=True)
class DataOptions:
    """How tasks and suites find their rows.

    Attributes:
        source: ``lab`` (the generated world) or ``hub`` (public data sets, from the hub or from ``data_root``).
        data_root: Folder with public data: ``DIR/<owner>/<name>`` like the hub, or flat JSONL files; None: the hub.
        offline: Never ask the hub; data that is not local is an error at once.
        distance: Distance of the lab's demonstrations from the model's own style: LO, MID or HI.
        order: Form of the lab's demonstrations (``reasoning-first`` and the lab's other axes).
        split: How data sets without a test file are split: ``group`` keeps rows that share a question on one side,
            ``paper`` splits row by row.
        gold_ids: File of row ids, one a line, to which science tasks are restricted; None keeps every row.
        option_order: Order of multiple-choice options: ``permuted`` by a hash of each row, so that no letter is right
            more often than others, or ``as-published``.
        allow_code: Whether programs that a model wrote may be run for scoring; None: the user has not said.
    """

    source: SourceName = "lab"
    data_root: Path | None = None
    offline: bool = False
    distance: str = "HI"
    order: str = "reasoning-first"
    split: Literal["group", "paper"] = "group"
    gold_ids: Path | None = None
    option_order: OptionOrder = "permuted"
    allow_code: bool | None = None
