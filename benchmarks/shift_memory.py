"""Peak memory of full-vocabulary KL over 200 contexts of 256 tokens at a vocabulary of 151,936, beside whole logits.

Two random Qwen2 models with tied embeddings of width 64 (9.8 M weights each), the second a little off, in fp32.
The contexts have 32 prompt tokens each. Each side has a process of its own; memory is its resident set before the
measurement and at its peak.

Sides: ``ours`` is ``cl_bench.harness.measure.shift.comparison.compare``, all contexts: divergence and agreement of each
token, and an embedding of each answer. ``kl_div`` is the plain way, ``torch.nn.functional.kl_div`` on the logits of
``transformers``' own forward pass, a batch of eight contexts at a time, for the first 16 contexts alone.

    python benchmarks/shift_memory.py [--json]

Exit code 1 when ours peaks over 3 GB (2**30 bytes each) or a context's sum differs from ``kl_div``'s by more than 1e-4
(relative); ``--no-budget`` only prints.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cl_bench.harness.models.chat_model import ChatModel

PEAK_BUDGET, DIFFERENCE_BUDGET = 3.0, 1e-4
PEER_BATCH, PEER_CONTEXTS = 8, 16
SIDES = ("ours", "kl_div")


@dataclass(slots=True)
class Case:
    """What one process reported.

    Attributes:
        side: Who measured.
        contexts: Contexts measured.
        baseline: Resident memory before, in 2**30 bytes.
        peak: The same at its peak.
        seconds: Wall time.
        sums: Sum of the divergence over each context's tokens.
    """

    side: str
    contexts: int
    baseline: float
    peak: float
    seconds: float
    sums: list[float]


@dataclass(frozen=True, slots=True)
class Work:
    """Two models and the contexts as (prompt, completion)."""

    base: ChatModel
    current: ChatModel
    rows: list[tuple[tuple[int, ...], tuple[int, ...]]]


def work(options: argparse.Namespace) -> Work:
    """The same models and contexts in every process."""
    import torch
    from vocabulary_step import Size, random_model

    size = Size(vocabulary=options.vocabulary)
    base, current = random_model(size), random_model(size)
    drawn = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in current.model.parameters():
            parameter.add_(0.02 * torch.randn(parameter.shape, generator=drawn))
    rows = []
    for _ in range(options.contexts):
        ids = torch.randint(3, size.vocabulary, (32 + options.tokens,), generator=drawn).tolist()
        rows.append((tuple(ids[:32]), tuple(ids[32:])))
    return Work(base, current, rows)


def ours(found: Work) -> list[float]:
    """The shift panel's own comparison."""
    from cl_bench.harness.measure.shift.comparison import Answer, compare

    pair = ("base", "current")
    answers = [Answer(prompt, completion, (pair,)) for prompt, completion in found.rows]
    return compare({"base": found.base, "current": found.current}, answers, "base").kl[pair].sums


def kl_div(found: Work) -> list[float]:
    """``torch.nn.functional.kl_div`` on whole logits, a batch of eight contexts at a time."""
    import torch

    sums: list[float] = []
    with torch.no_grad():
        for start in range(0, min(PEER_CONTEXTS, len(found.rows)), PEER_BATCH):
            part = found.rows[start : start + PEER_BATCH]
            ids = torch.tensor([[*prompt, *completion] for prompt, completion in part])
            base = found.base.model(ids).logits[:, 31:-1].log_softmax(-1)
            current = found.current.model(ids).logits[:, 31:-1].log_softmax(-1)
            kl = torch.nn.functional.kl_div(current, base, reduction="none", log_target=True).sum(-1)
            sums += kl.sum(-1).tolist()
    return sums


def child(options: argparse.Namespace) -> None:
    """Measure one side in this process and print a line of JSON."""
    from vocabulary_step import resident

    found = work(options)
    baseline, began = resident("VmRSS"), time.perf_counter()
    sums = ours(found) if options.side == "ours" else kl_div(found)
    case = Case(options.side, len(sums), baseline, resident("VmHWM"), time.perf_counter() - began, sums)
    print(json.dumps(asdict(case)))


def measure(side: str, options: argparse.Namespace) -> Case:
    """Run a side in its own process.

    Raises:
        SystemExit: It failed; its stderr is shown.
    """
    sizes = [f"--{name}={getattr(options, name)}" for name in ("vocabulary", "contexts", "tokens")]
    command = [sys.executable, str(Path(__file__)), "--side", side, *sizes]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{side} ended with {done.returncode}:\n{done.stderr[-3000:]}")
    return Case(**json.loads(done.stdout.splitlines()[-1]))


def difference(cases: list[Case]) -> float:
    """Largest relative difference of a context's sum between the sides."""
    one, other = (case.sums for case in cases)
    return max(abs(a - b) / abs(b) for a, b in zip(one, other, strict=False))


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vocabulary", type=int, default=151_936)
    parser.add_argument("--contexts", type=int, default=200)
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--json", action="store_true", help="one line of JSON in place of the table")
    parser.add_argument("--no-budget", action="store_true", help="do not fail when a budget is exceeded")
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        child(options)
        return 0
    cases = [measure(side, options) for side in SIDES]
    apart = difference(cases)
    if options.json:
        print(json.dumps({"difference": apart, "cases": [{**asdict(case), "sums": None} for case in cases]}))
    else:
        print(f"vocabulary {options.vocabulary}, {options.tokens} tokens a context; apart by {apart:.1e} (relative)\n")
        print("| side | contexts | before, GB | peak, GB | seconds |\n|---|---|---|---|---|")
        for case in cases:
            numbers = f"{case.baseline:.2f} | {case.peak:.2f} | {case.seconds:.0f}"
            print(f"| {case.side} | {case.contexts} | {numbers} |")
    over = cases[0].peak > PEAK_BUDGET or apart > DIFFERENCE_BUDGET
    return 1 if over and not options.no_budget else 0


if __name__ == "__main__":
    sys.exit(main())
