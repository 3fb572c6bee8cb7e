"""Batches of rollouts that serve several optimizer steps: in which order rows come, and groups after a resume."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from cl_bench.harness.generation.base import Completion
from cl_bench.methods.training.groups import Group, Prompts
from cl_bench.methods.training.ledger import Ledger
from cl_bench.tasks.base import Example


class BlockSampler(torch.utils.data.Sampler[int]):
    """Rows in blocks of one rollout batch, each block ``updates`` times; the last one is filled from the epoch's first.

    Each epoch has an order of its own, from the seed.
    """

    def __init__(self, rows: int, block: int, updates: int, seed: int) -> None:
        """``rows`` in all, ``block`` of them in a rollout batch."""
        self._rows, self._block, self._updates, self._seed = rows, block, updates, seed
        self._epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch's order."""
        self._epoch = epoch

    def __len__(self) -> int:
        """Rows that an epoch yields."""
        return -(-self._rows // self._block) * self._block * self._updates

    def __iter__(self) -> Iterator[int]:
        """Indices of rows."""
        order = random.Random(f"{self._seed}/{self._epoch}").sample(range(self._rows), self._rows)
        missing = -self._rows % self._block
        order += [order[index % self._rows] for index in range(missing)]
        for start in range(0, len(order), self._block):
            for _ in range(self._updates):
                yield from order[start : start + self._block]


def groups_of(
    ledger: Ledger, step: int, examples: Sequence[Example], prompts: Prompts, samples: int
) -> list[Group]:
    """The groups that ``draw_groups`` put into the ledger with log-probabilities at a step; the examples as then."""
    found = iter([row for row in ledger if row["step"] == step])
    return [
        Group(example, prompts[example.key], tuple(_completion(next(found)) for _ in range(samples)))
        for example in examples
    ]


def _completion(row: Mapping[str, Any]) -> Completion:
    return Completion(tuple(row["tokens"]), row["text"], row["ended"], tuple(row["log_probs"]))
