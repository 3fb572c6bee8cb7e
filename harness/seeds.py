"""Random numbers: one seed a sampled row, global generators set around training and restored."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch


def row_seed(run_seed: int, stage: str, purpose: str, example_id: str, visit: int, rollout: int) -> int:
    """Seed of one sampled row's own generator: 64 bits of a hash over everything that names the row."""
    name = "\x1f".join((str(run_seed), stage, purpose, example_id, str(visit), str(rollout)))
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")


def stage_seed(run_seed: int, stage: str) -> int:
    """Seed of the global generators during one stage's training (31 bits, as numpy and transformers take)."""
    return row_seed(run_seed, stage, "stage", "", 0, 0) & 0x7FFFFFFF


def row_uniforms(seeds: Sequence[int], count: int) -> torch.Tensor:
    """One row of ``count`` uniform numbers in [0, 1) a seed: float64 tensor [len(seeds), count].

    Number t of a row is the same whatever ``count`` and whichever rows stand beside it.
    """
    rows = [np.random.Generator(np.random.Philox(key=seed)).random(count) for seed in seeds]
    return torch.from_numpy(np.stack(rows)) if rows else torch.empty(0, count, dtype=torch.float64)


@contextmanager
def global_seed(seed: int) -> Iterator[None]:
    """Seed Python's, numpy's and torch's global generators inside the block; restore their states after it."""
    import random

    with preserved_rng():
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        yield


@contextmanager
def preserved_rng() -> Iterator[None]:
    """Restore the states of all global generators after the block."""
    import random

    python_state, numpy_state, torch_state = random.getstate(), np.random.get_state(), torch.get_rng_state()
    cuda = torch.cuda.is_available() and torch.cuda.is_initialized()
    cuda_states = torch.cuda.get_rng_state_all() if cuda else None
    try:
        yield
    finally:
        random.setstate(python_state)
        np.random.set_state(numpy_state)
        torch.set_rng_state(torch_state)
        if cuda_states is not None:
            torch.cuda.set_rng_state_all(cuda_states)
