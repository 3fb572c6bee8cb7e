"""Batches of rollouts that serve several optimizer steps: in which order rows and samples come."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import torch

from cl_bench.methods.training.mixin import TrainingSession


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


def shuffle(samples: list[Any], session: TrainingSession, block: int) -> None:
    """Mix a batch's samples, so that an update holds several groups; the order is the batch's own."""
    random.Random(f"{session.context.seed}/{session.stage.name}/{block}").shuffle(samples)
