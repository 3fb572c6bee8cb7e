"""Runs the first comparison on the lab and writes docs/first-results.md: whatever it shows, with every seed's value.

``python benchmarks/first_results.py --output DIR`` runs (or finishes) all runs, two processes at a time, one thread
each; finished runs are read back. The page is made from the run directories alone.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from cl_bench.harness.run_directory import RunView, load_run

MODELS = ("lab-s", "lab-m", "lab-l")
SEEDS = (0, 1, 2, 3, 4)
EVALUATED = 200
"""Test rows of each task; more than the profile's own."""
ARMS: dict[str, tuple[str, ...]] = {
    "sft LO": ("--method", "sft", "--set", "data.distance=LO"),
    "sft MID": ("--method", "sft", "--set", "data.distance=MID"),
    "sft HI": ("--method", "sft"),
    "synthself": ("--method", "synthself"),
    "sdft": ("--method", "sdft"),
}
PAGE = Path(__file__).resolve().parent.parent / "docs" / "first-results.md"


INTRODUCTION = """
Printed by `benchmarks/first_results.py`. Sequence `science`, recipe `lab`, five seeds (0-4): in each cell the mean in
bold, then every seed's value. Acquisition: accuracy on a stage's task right after it, mean over the four stages. Gain:
acquisition minus the untouched model's accuracy. Retention change: mean of the retention skills after the last stage
minus the untouched model's. Forward KL: from the untouched model to the model after each stage, on the untouched
model's own samples for that stage's task, mean over stages. Training: seconds in `adapt` (data generation included),
one thread, two runs side by side on a shared machine.

These are numbers of a small generated world: they show whether a mechanism appears in it, and are no benchmark scores
of a language model. Settings were chosen on dev rows of `lab-m` alone, with the same number of trials for each method
(`docs/lab-recipe.md`), and used for every size; demonstrations are HI where nothing is said. Retention is not compared
at equal acquisition here, and one pre-training run a size shows no trend in size.
"""


@dataclass(frozen=True)
class Measure:
    """A column of the page: its head, how to read it off a run, and how to print it."""

    head: str
    read: Callable[[RunView], float | None]
    form: str


def metric(name: str) -> Callable[[RunView], float | None]:
    def read(run: RunView) -> float | None:
        value = run.metrics["metrics"][name]["value"]
        return None if value is None else 100 * value

    return read


def forward_kl(run: RunView) -> float | None:
    values = [shift["forward_kl_trained"] for shift in run.shifts().values()]
    return mean(values) if values and all(value is not None for value in values) else None


def seconds(run: RunView) -> float:
    return sum(float(adaptation["seconds"]) for adaptation in run.adaptations().values())


MEASURES = (
    Measure("acquisition, %", metric("acquisition"), ".1f"),
    Measure("gain, points", metric("gain"), "+.1f"),
    Measure("retention change, points", metric("retention_change"), "+.1f"),
    Measure("forward KL, nats/token", forward_kl, ".3f"),
    Measure("training, s", seconds, ".0f"),
)


def run_arm(output: Path, model: str, arm: str) -> None:
    command = [
        sys.executable,
        "-m",
        "cl_bench.harness.cli",
        "run",
        "--sequence",
        "science",
        "--model",
        model,
        *ARMS[arm],
    ]
    command += ["--set", f"evaluation.rows={EVALUATED}"]
    command += ["--seeds", ",".join(map(str, SEEDS)), "--threads", "1", "--quiet", "--output", str(output)]
    done = subprocess.run(command, capture_output=True, text=True)
    print(f"{model} {arm}: exit {done.returncode}", flush=True)
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stderr)


def runs_of(output: Path, model: str, arm: str) -> list[RunView]:
    found = []
    for path in output.glob("science/*/*/spec.yaml"):
        run = load_run(path.parent)
        name = run.spec.method.name if run.spec.method else "base"
        label = f"{name} {run.spec.data.distance}" if name == "sft" else name
        if run.spec.model.name == model and label == arm and run.status.get("state") in ("done", "diverged"):
            found.append(run)
    return sorted(found, key=lambda run: run.spec.seed)


def cell(values: Sequence[float | None], form: str) -> str:
    known = [value for value in values if value is not None]
    shown = ", ".join("none" if value is None else format(value, form) for value in values)
    return f"**{format(mean(known), form)}** ({shown})" if known else f"none ({shown})"


def page(output: Path) -> Iterator[str]:
    yield "# First results on the lab\n"
    yield INTRODUCTION
    for model in MODELS:
        runs = {arm: runs_of(output, model, arm) for arm in ARMS}
        aligners = {run.spec.aligner.name for found in runs.values() for run in found if run.spec.aligner}
        yield f"## {model} (aligner of synthself: {', '.join(sorted(aligners)) or 'none'})\n"
        yield "| method | " + " | ".join(measure.head for measure in MEASURES) + " |"
        yield "|---|" + "---|" * len(MEASURES)
        for arm, found in runs.items():
            cells = [cell([measure.read(run) for run in found], measure.form) for measure in MEASURES]
            yield f"| {arm} | " + " | ".join(cells) + " |"
        yield ""
        yield from settings_of(runs)


def settings_of(runs: dict[str, list[RunView]]) -> Iterator[str]:
    parts = []
    for arm, found in runs.items():
        method = found[0].spec.method if found else None
        if method is not None:
            epochs = method.settings["epochs"]
            parts.append(f"{arm}: lr {method.settings['learning_rate']:g}, {epochs:g} epoch{'s' * (epochs != 1)}")
    accuracies = [
        generation["first_sample_accuracy"]
        for run in runs["synthself"]
        for adaptation in run.adaptations().values()
        if (generation := adaptation["data_generation"])
    ]
    yield f"Settings: {'; '.join(parts)}."
    if accuracies:
        yield f"Data-generation accuracy of the aligner (first sample): mean {100 * mean(accuracies):.1f} %."
    yield ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("runs/first-results"))
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--page-only", action="store_true", help="make the page from what is there")
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument("--models", default=",".join(MODELS))
    arguments = parser.parse_args()
    if not arguments.page_only:
        jobs = [(model, arm) for model in arguments.models.split(",") for arm in ARMS]
        with ThreadPoolExecutor(arguments.processes) as pool:
            list(pool.map(lambda job: run_arm(arguments.output, *job), jobs))
    arguments.page.write_text("\n".join(page(arguments.output)).rstrip() + "\n", encoding="utf-8")
    print(json.dumps({"page": str(arguments.page)}))


if __name__ == "__main__":
    main()
