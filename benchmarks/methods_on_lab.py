"""Every method and five compositions on the lab: chooses learning rates on dev rows, runs five seeds, writes a page.

``python benchmarks/methods_on_lab.py --output DIR`` runs (or finishes) everything, two processes at a time, one thread
each; finished runs are read back. ``docs/methods-on-the-lab.md`` is made from the run directories alone.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from first_results import cell, forward_kl, metric, seconds

from cl_bench.harness.planned_stages import learned_columns
from cl_bench.harness.progress import make_progress
from cl_bench.harness.registry import Registry
from cl_bench.harness.request import Request
from cl_bench.harness.run_directory import RunView, load_run
from cl_bench.harness.spec import Execution
from cl_bench.harness.tune import RULE, TuneResult, tune

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "methods-on-the-lab.md"
RECIPE = HERE / "methods_on_lab.yaml"
MODEL, ALIGNER, LIMIT, EVALUATED = "lab-s", "lab-m", 256, 64
TUNED_ON = "two-sciences"
SEEDS = (0, 1, 2, 3, 4)

INTRODUCTION = """
Printed by `benchmarks/methods_on_lab.py`: `{model}`, sequence `science`, {limit} training rows a stage,
{evaluated} rows a column, seeds 0 to 4, settings of `benchmarks/methods_on_lab.yaml`. The learning rate of each
method was chosen from {trials} on dev rows of the sequence `{tuned_on}` (`examples/`), one seed, by a rule fixed
beforehand: {rule}. Compositions take the method's (LoRA ten times it) and the modifiers' defaults.

Gain: accuracy on a stage's task right after it less the untouched model's, in points, pooled over stages and
seeds, with a 95 % t interval of the paired differences (stages of one seed are not independent, so it is too
narrow). *Does not learn*: the interval holds 0; *loses*: it lies below. Retention change: points after the last
stage. Forward KL: nats a token, from the untouched model, on its own samples for the stage's task, mean over
stages. Training: seconds in `adapt`, one thread, on a shared machine. Every seed's value stands in brackets.

These are numbers of a small generated world with few rows: they show that a method runs to the end and whether
it learns here, and are no benchmark scores of a language model.
"""


@dataclass(frozen=True)
class Arm:
    """A method with modifiers; ``faster`` multiplies the learning rate that was chosen for the method alone."""

    method: str
    modifiers: tuple[str, ...] = ()
    faster: float = 1.0

    @property
    def name(self) -> str:
        return " + ".join((self.method, *self.modifiers))


COMPOSITIONS = (
    Arm("sft", ("replay",)),
    Arm("sft", ("ewc",)),
    Arm("sft", ("lora",), 10.0),
    Arm("synthself", ("wise-ft",)),
    Arm("sdft", ("replay", "lwf")),
)


def arms() -> list[Arm]:
    return [*(Arm(name) for name in Registry().methods()), *COMPOSITIONS]


def choose(method: str, output: Path) -> TuneResult:
    settings = {"evaluation": {"rows": EVALUATED}}
    request = Request(
        method=method,
        sequence=TUNED_ON,
        model=MODEL,
        limit=LIMIT,
        recipe=str(RECIPE),
        seeds=SEEDS[:1],
        settings=settings,
    )
    examples = (HERE.parent / "examples",)
    with make_progress(False) as progress:
        return tune(request, Execution(output=output, threads=1), Registry(examples), progress)


def in_a_process(*arguments: str) -> None:
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{' '.join(arguments)}\n{done.stderr}")
    print(f"exit {done.returncode}: {' '.join(arguments[1:])}", flush=True)


def command(arm: Arm, learning_rate: float, output: Path) -> list[str]:
    parts = ["-m", "cl_bench.harness.cli", "run", "--sequence", "science", "--model", MODEL, "--method", arm.method]
    parts += [part for name in arm.modifiers for part in ("--with", name)]
    parts += ["--set", f"method.learning_rate={learning_rate * arm.faster:g}", "--recipe", str(RECIPE)]
    parts += ["--limit", str(LIMIT), "--set", f"evaluation.rows={EVALUATED}", "--seeds", ",".join(map(str, SEEDS))]
    return [*parts, "--threads", "1", "--quiet", "--output", str(output)]


def bound(model: str, output: Path) -> list[str]:
    parts = ["-m", "cl_bench.harness.cli", "run", "--sequence", "science", "--model", model, "--method", "base"]
    parts += ["--limit", str(LIMIT), "--set", f"evaluation.rows={EVALUATED}"]
    return [*parts, "--threads", "1", "--quiet", "--output", str(output)]


def run_all(output: Path, processes: int) -> None:
    with ThreadPoolExecutor(processes) as pool:
        methods = sorted({arm.method for arm in arms()})
        list(pool.map(lambda name: in_a_process(__file__, "--method", name, "--output", str(output)), methods))
        rates = {name: float(choose(name, output).chosen["learning_rate"]) for name in methods}
        jobs = [command(arm, rates[arm.method], output) for arm in arms()] + [bound(ALIGNER, output)]
        list(pool.map(lambda job: in_a_process(*job), jobs))


def runs_of(output: Path, arm: Arm, rate: float) -> list[RunView]:
    """Ended runs at the chosen rate; a folder may hold others, from a narrower grid."""
    found = []
    for path in output.glob("science/*/*/spec.yaml"):
        run = load_run(path.parent)
        spec = run.spec
        if spec.method is None or spec.method.settings["learning_rate"] != float(f"{rate * arm.faster:g}"):
            continue
        same = spec.method.name == arm.method and spec.model.name == MODEL
        if same and tuple(item.name for item in spec.modifiers) == arm.modifiers:
            found.append(run)
    return sorted((run for run in found if run.status.get("state") in ("done", "diverged")), key=lambda r: r.spec.seed)


def gains(run: RunView) -> list[float]:
    """Accuracy right after a stage less the untouched model's, by stage, in points; none where a run diverged."""
    found = []
    for stage, columns in learned_columns(run.spec).items():
        for column in columns:
            after, before = run.matrix.value(stage, column), run.matrix.value("base", column)
            if after is not None and before is not None:
                found.append(100 * (after - before))
    return found


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Mean with its 95 % t interval, of differences of pairs."""
    from scipy import stats

    low, high = stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
    return mean(values), float(low), float(high)


def verdict(low: float, high: float) -> str:
    if low > 0:
        return "learns"
    return "does not learn" if high > 0 else "loses"


def row(arm: Arm, runs: Sequence[RunView], rate: float) -> str:
    pooled = [gain for run in runs for gain in gains(run)]
    if len(pooled) < 2:
        return f"| {arm.name} | {rate:g} | no finished run | | | | |"
    middle, low, high = interval(pooled)
    cells = [
        f"{rate * arm.faster:g}",
        f"{middle:+.1f} [{low:+.1f}, {high:+.1f}]",
        verdict(low, high),
        cell([metric("retention_change")(run) for run in runs], "+.1f"),
        cell([forward_kl(run) for run in runs], ".3f"),
        f"{mean(seconds(run) for run in runs):.0f}",
    ]
    return f"| {arm.name} | {' | '.join(cells)} |"


def aligner_accuracy(output: Path) -> str:
    for path in output.glob("science/base/*/spec.yaml"):
        run = load_run(path.parent)
        if run.spec.model.name == ALIGNER:
            values = {c.name: run.matrix.value("base", c.name) for c in run.matrix.of_kind("sequence")}
            known = {name: value for name, value in values.items() if value is not None}
            return ", ".join(f"{name} {100 * value:.1f}" for name, value in known.items())
    return "not measured"


def page(output: Path) -> Iterator[str]:
    chosen = {name: choose(name, output) for name in sorted({arm.method for arm in arms()})}
    yield "# Methods on the lab"
    rates = [trial.settings["learning_rate"] for trial in next(iter(chosen.values())).trials]
    sizes = {"limit": LIMIT, "evaluated": EVALUATED, "trials": len(rates)}
    yield INTRODUCTION.format(model=MODEL, rule=RULE, tuned_on=TUNED_ON, **sizes)
    yield f"Closed-book accuracy of the aligner (`{ALIGNER}`, no reference in view), %: {aligner_accuracy(output)}."
    yield ""
    yield "| method | learning rate | gain, points | | retention change | forward KL | training, s |"
    yield "|---|---|---|---|---|---|---|"
    for arm in arms():
        rate = float(chosen[arm.method].chosen["learning_rate"])
        yield row(arm, runs_of(output, arm, rate), rate)
    yield "\n## Choice of the learning rate\n"
    yield "Score of each trial on dev rows, %; the largest was taken. Acquisition and retention weigh alike, so a rate"
    yield f"that moves little scores near the untouched model; one seed and {EVALUATED} rows tell no point apart.\n"
    yield "| method | " + " | ".join(f"{rate:g}" for rate in rates) + " |"
    yield "|---|" + "---|" * len(rates)
    for name, result in chosen.items():
        scores = ["none" if t.score is None else f"{100 * t.score:.1f}" for t in result.trials]
        yield f"| {name} | {' | '.join(scores)} |"
    edges = [name for name, r in chosen.items() if r.chosen["learning_rate"] in (min(rates), max(rates))]
    if edges:
        yield f"\nThe choice lies on the edge of the grid for {', '.join(edges)}: a better rate may lie beyond it."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("runs/methods-on-the-lab"))
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--method", help="choose this method's learning rate alone")
    parser.add_argument("--page-only", action="store_true", help="make the page from what is there")
    parser.add_argument("--page", type=Path, default=PAGE)
    arguments = parser.parse_args()
    if arguments.method:
        choose(arguments.method, arguments.output)
        return
    if not arguments.page_only:
        run_all(arguments.output, arguments.processes)
    arguments.page.write_text("\n".join(page(arguments.output)).rstrip() + "\n", encoding="utf-8")
    print(json.dumps({"page": str(arguments.page)}))


if __name__ == "__main__":
    main()
