"""Peak memory of one on-policy training step at a vocabulary of 151,936, ours beside trl's.

A random Qwen2 with tied embeddings of width 64 (9.8 M weights, nearly all of them the vocabulary's), 8 rows of 32
prompt and 128 completion tokens, fp32, one optimizer step: forward passes of student and teacher (iSDFT: and anchor),
the divergence over the whole vocabulary, backward pass, AdamW. The samples are drawn beforehand. Each case has a
process of its own; memory is its resident set just before the step, at its peak until the optimizer step ends, and at
its peak until the stage of one step ends (ours then looks once at what the teacher was worth).

Sides: ``ours`` is the method's ``adapt``; ``whole`` the same in one piece instead of chunks; ``trl-full`` is
``trl.experimental.sdft.SDFTTrainer`` with full logits; ``trl-chunked`` is ``trl.DistillationTrainer`` with the same
divergence, whose teacher sees the plain prompt (compare its memory, not its values). trl has no iSDFT.

    python benchmarks/vocabulary_memory.py [--json]

Exit code 1 when a peak of ours is over 3 GB (2**30 bytes each), or its loss or gradients are farther than 1e-6
(relative) from those in one piece; ``--no-budget`` only prints.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

LABELS = {"sdft": "SDFT, forward KL", "isdft": "iSDFT, tilted target", "jsd": "JSD 0.5"}
SIDES = ("ours", "whole", "trl-full", "trl-chunked")
PEAK_BUDGET, DIFFERENCE_BUDGET = 3.0, 1e-6


@dataclass(slots=True)
class Case:
    """What one process reported, and how far its values are from ``whole``'s.

    Attributes:
        baseline: Resident memory before the step, in 2**30 bytes.
        peak: The same at its peak, until the optimizer step ends.
        stage_peak: The same until the stage ends: ours then looks at what the teacher was worth.
        seconds: Wall time of the step, building of trainer and teacher included.
        loss: The step's loss.
        loss_difference: Relative.
        gradient_difference: Norm of the difference over the norm, of the weight where that is largest.
    """

    objective: str
    side: str
    baseline: float
    peak: float
    stage_peak: float
    seconds: float
    loss: float
    threads: int
    loss_difference: float | None = None
    gradient_difference: float | None = None


def measure(objective: str, side: str, vocabulary: int, folder: Path) -> Case:
    """Run a case in its own process.

    Raises:
        SystemExit: It failed; its stderr is shown.
    """
    step = Path(__file__).with_name("vocabulary_step.py")
    command = [sys.executable, str(step), objective, side, str(_gradients(folder, objective, side))]
    done = subprocess.run([*command, "--vocabulary", str(vocabulary)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{objective} {side} ended with {done.returncode}:\n{done.stderr[-3000:]}")
    return Case(objective, side, **json.loads(done.stdout.splitlines()[-1]))


def _gradients(folder: Path, objective: str, side: str) -> Path:
    return folder / f"{objective}-{side}.pt"


def compare(cases: list[Case], folder: Path) -> None:
    """Put in how far losses and gradients are from those in one piece."""
    whole = {case.objective: case for case in cases if case.side == "whole"}
    for case in cases:
        reference = whole.get(case.objective)
        if reference is None or case.side in ("whole", "trl-chunked"):
            continue
        case.loss_difference = abs(case.loss - reference.loss) / abs(reference.loss)
        paths = (_gradients(folder, case.objective, side) for side in (case.side, "whole"))
        case.gradient_difference = gradient_difference(*paths)


def gradient_difference(path: Path, reference: Path) -> float:
    """Norm of the difference over the norm of the reference, of the weight where it is largest."""
    import torch

    one, other = (torch.load(each, weights_only=True) for each in (path, reference))
    assert one.keys() == other.keys()
    apart = [
        (one[name].double() - gradient.double()).norm() / gradient.double().norm().clamp(min=1e-30)
        for name, gradient in other.items()
    ]
    return float(torch.stack(apart).max())


def failures(cases: list[Case]) -> list[str]:
    """Which of our cases break a budget."""
    found = []
    for case in cases:
        if case.side != "ours":
            continue
        if case.stage_peak > PEAK_BUDGET:
            found.append(
                f"{case.objective} peaks at {case.peak:.2f} GB in the step, {case.stage_peak:.2f} in the stage"
            )
        for name, value in (("loss", case.loss_difference), ("gradients", case.gradient_difference)):
            if value is not None and value > DIFFERENCE_BUDGET:
                found.append(f"{name} of {case.objective} are {value:.1e} from those in one piece")
    return found


def table(cases: list[Case]) -> str:
    """The cases as a markdown table."""
    lines = [
        "| objective | side | before, GB | peak in the step | in the stage | step, s | loss | loss from whole"
        " | gradients from whole |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for case in cases:
        apart = ["" if value is None else f"{value:.1e}" for value in (case.loss_difference, case.gradient_difference)]
        lines.append(
            f"| {LABELS[case.objective]} | {case.side} | {case.baseline:.2f} | {case.peak:.2f} | {case.stage_peak:.2f}"
            f" | {case.seconds:.0f} | {case.loss:.6f} | {apart[0]} | {apart[1]} |"
        )
    return "\n".join(lines)


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objectives", default=",".join(LABELS))
    parser.add_argument("--sides", default=",".join(SIDES), help="without whole nothing is compared")
    parser.add_argument("--vocabulary", type=int, default=151_936)
    parser.add_argument("--json", action="store_true", help="one line of JSON in place of the table")
    parser.add_argument("--no-budget", action="store_true", help="do not fail when a budget is exceeded")
    options = parser.parse_args()
    cases = []
    with tempfile.TemporaryDirectory(prefix="cl-bench-vocabulary-") as name:
        for objective in options.objectives.split(","):
            for side in options.sides.split(","):
                if objective == "isdft" and side.startswith("trl"):
                    continue
                cases.append(case := measure(objective, side, options.vocabulary, Path(name)))
                print(f"{objective} {side}: peak {case.peak:.2f} GB", file=sys.stderr, flush=True)
        compare(cases, Path(name))
    if options.json:
        print(json.dumps([asdict(case) for case in cases]))
    else:
        from bare_stage import machine

        print(f"{machine(cases[0].threads)}; vocabulary {options.vocabulary}\n\n{table(cases)}")
    over = failures(cases)
    if over:
        print(f"over budget: {'; '.join(over)}", file=sys.stderr)
    return 1 if over and not options.no_budget else 0


if __name__ == "__main__":
    sys.exit(main())
