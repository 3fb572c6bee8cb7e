"""Seconds of an on-policy training step, ours against trl's trainer for the same method, in pairs.

Work of a step, the same on both sides: 8 prompts of 64 tokens, 4 samples of each, 32 new tokens a sample, one micro-
batch of 32 rows, one fp32 AdamW step on ``lab-m``; no gradient checkpointing. Every sample has its 32 tokens because
the end token is one that the model has no logit for, on both sides; both sides' lengths are checked. A pair is a block
of steps of one side and then one of the other, in this process, the order changing from pair to pair; the first step of
a block is not counted. A step lasts from the end of one optimizer step to the end of the next.

    SDFT          forward KL, EMA teacher with the demonstration    trl.experimental.sdft.SDFTTrainer, full logits
    GRPO          group-scaled advantages, no KL                    trl.GRPOTrainer
    distillation  reverse KL to lab-l                               trl.DistillationTrainer

    python benchmarks/on_policy_speed.py [--methods sdft,grpo,distillation] [--pairs 7] [--steps 4] [--json]

Exit code 1 when a ratio (ours / trl) is over 0.8; ``--no-budget`` only prints. On a busy machine no time means
anything; the load before the start is printed.
"""

from __future__ import annotations

import argparse
import gc
import json
import logging
import os
import statistics
import sys
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Literal

import torch
import transformers
from bare_stage import machine
from on_policy_block import ADAPT, Seconds, our_block, trl_block

RATIO_BUDGET = 0.8


@dataclass(slots=True)
class Comparison:
    """What was measured of a method.

    Attributes:
        load_before: Load of the machine as the measurement began.
        ours: Each block's median step, ours.
        trl: Each block's median step, trl's.
    """

    method: str
    load_before: float
    ours: list[Seconds] = field(default_factory=list)
    trl: list[Seconds] = field(default_factory=list)

    def ratios(self, clock: Literal["wall", "cpu"]) -> list[float]:
        """Ours / trl of each pair, in order of size."""
        pairs = zip(self.ours, self.trl, strict=True)
        return sorted(getattr(mine, clock) / getattr(theirs, clock) for mine, theirs in pairs)

    @property
    def ratio(self) -> float:
        """Median over pairs of ours / trl, wall time."""
        return statistics.median(self.ratios("wall"))


def compare(method: str, pairs: int, steps: int) -> Comparison:
    """Alternating blocks of both sides, after one uncounted block of each."""
    found = Comparison(method, os.getloadavg()[0])
    sides = [(our_block, found.ours), (trl_block, found.trl)]
    for block, _ in sides:
        block(method, 2)
    for pair in range(pairs):
        for block, seconds in sides if pair % 2 == 0 else reversed(sides):
            gc.collect()
            seconds.append(block(method, steps + 1))
    return found


def table(comparisons: Sequence[Comparison]) -> str:
    """The comparisons as a markdown table."""
    lines = [
        "| method | ours, ms a step | trl, ms a step | ratio (range) | ratio of CPU time | pairs | load before |",
        "|---|---|---|---|---|---|---|",
    ]
    for found in comparisons:
        ours, trl = (1000 * statistics.median(one.wall for one in side) for side in (found.ours, found.trl))
        ratios, cpu = found.ratios("wall"), statistics.median(found.ratios("cpu"))
        lines.append(
            f"| {found.method} | {ours:.0f} | {trl:.0f} | **{found.ratio:.2f}** ({ratios[0]:.2f}-{ratios[-1]:.2f})"
            f" | {cpu:.2f} | {len(ratios)} | {found.load_before:.1f} |"
        )
    return "\n".join(lines)


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", default=",".join(ADAPT))
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--steps", type=int, default=4, help="steps timed in a block")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", action="store_true", help="one line of JSON in place of the table")
    parser.add_argument("--no-budget", action="store_true", help="do not fail when a ratio is over 0.8")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(options.threads)
    comparisons = [compare(method, options.pairs, options.steps) for method in options.methods.split(",")]
    over = [found.method for found in comparisons if found.ratio > RATIO_BUDGET]
    if options.json:
        print(json.dumps([{**asdict(found), "ratio": found.ratio} for found in comparisons]))
    else:
        print(f"{machine(options.threads)}\n\n{table(comparisons)}")
    if over:
        print(f"ratio over {RATIO_BUDGET}: {', '.join(over)}", file=sys.stderr)
    return 1 if over and not options.no_budget else 0


if __name__ == "__main__":
    sys.exit(main())
