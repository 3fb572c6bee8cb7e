"""Batches of rollouts that serve several optimizer steps: in which order rows come, and groups after a resume."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from cl_bench.harness.generation.base import Completion, GenerationSettings
from cl_bench.methods.training.groups import Group, Prompts, draw_groups
from cl_bench.methods.training.mixin import TrainingSession
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


def batch_groups(
    session: TrainingSession,
    examples: Sequence[Example],
    prompts: Prompts,
    generation: GenerationSettings,
    samples: int,
    *,
    step: int,
    visit: int,
    update: int,
    with_log_probs: bool = True,
) -> list[Group]:
    """Groups of a batch of rollouts: drawn at its first update, read from the ledger at a later one, after a resume.

    Args:
        session: The student, its context and its counters.
        examples: The batch's rows, in the order in which they were drawn.
        prompts: Their prompts.
        generation: Length and temperature.
        samples: Samples of each prompt.
        step: What the ledger keeps the batch under.
        visit: Epoch, for the samples' seeds.
        update: Number of the optimizer step within the batch, from 0.
        with_log_probs: Keep log-probabilities too: needed where a batch has several updates.
    """
    if update == 0:
        return draw_groups(session, examples, prompts, generation, samples, step, visit, with_log_probs)
    found = iter([row for row in session.context.ledger if row["step"] == step])
    return [
        Group(example, prompts[example.key], tuple(_completion(next(found)) for _ in range(samples)))
        for example in examples
    ]


def shuffle(samples: list[Any], session: TrainingSession, block: int) -> None:
    """Mix a batch's samples, so that an update holds several groups; the order is the batch's own."""
    random.Random(f"{session.context.seed}/{session.stage.name}/{block}").shuffle(samples)


def _completion(row: Mapping[str, Any]) -> Completion:
    return Completion(tuple(row["tokens"]), row["text"], row["ended"], tuple(row["log_probs"]))
