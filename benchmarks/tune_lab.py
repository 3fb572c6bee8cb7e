"""Chooses the lab recipe: every method's grid on dev rows of lab-m, then the recipe file and docs/lab-recipe.md.

``python benchmarks/tune_lab.py --output DIR`` runs two methods side by side, one thread each; finished trials are read
back. The rule and the grid stand in ``cl_bench.harness.tune`` and in the recipe, and were fixed before any trial.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cl_bench.harness.profile_files import load_profile
from cl_bench.harness.progress import make_progress
from cl_bench.harness.registry import Registry
from cl_bench.harness.request import Request
from cl_bench.harness.spec import Execution
from cl_bench.harness.tune import RULE, TuneResult, described, tune, write_recipe

ROOT = Path(__file__).resolve().parent.parent
RECIPE = ROOT / "harness" / "profiles" / "recipes" / "lab.yaml"
PAGE = ROOT / "docs" / "lab-recipe.md"
METHODS = ("sdft", "synthself", "sft")
MODEL = "lab-m"


def choose(method: str, output: Path) -> TuneResult:
    request = Request(method=method, sequence="science", model=MODEL, seeds=(0,))
    with make_progress(False) as progress:
        return tune(request, Execution(output=output, threads=1), Registry(), progress)


def in_a_process(method: str, output: Path) -> None:
    command = [sys.executable, __file__, "--method", method, "--output", str(output)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    print(f"{method}: done", flush=True)


def page(results: list[TuneResult]) -> Iterator[str]:
    rows = load_profile("lab").training_rows
    yield "# The lab recipe\n"
    yield "Printed by `benchmarks/tune_lab.py`; the choices are in `harness/profiles/recipes/lab.yaml`. Every method"
    yield f"had the same grid and the same number of trials, on dev rows of `{MODEL}`, sequence `science`, one seed."
    yield f"Rule, fixed beforehand: {RULE}.\n"
    yield "The first grid had the learning rates 2.5e-4, 5e-4 and 1e-3. Two of the three choices lay on its edge, so it"
    yield "was widened once, for all methods alike, before any run on test rows."
    yield f"Chosen anew, by the same grid and rule, when the profile's stages became {rows} training rows: with 640 of"
    yield "them `sft` had taken 1e-3 and 2 epochs, `synthself` 5e-4 and 2, `sdft` 1e-4 and 1. The rule weighs what is"
    yield "kept like what is learned: a method that pays much retention for what it learns is given small steps.\n"
    for result in sorted(results, key=lambda found: found.method):
        yield f"## {result.method}\n"
        yield "| settings | dev acquisition, % | dev retention, % | score | |"
        yield "|---|---|---|---|---|"
        for trial in result.trials:
            mark = "chosen" if trial.settings == dict(result.chosen) else trial.reason
            numbers = [shown(trial.acquisition), shown(trial.retention), shown(trial.score)]
            yield f"| {described(trial.settings)} | {' | '.join(numbers)} | {mark} |"
        yield ""
        if edges := on_the_edge(result):
            yield f"The choice lies on the edge of the grid in {', '.join(edges)}.\n"


def on_the_edge(result: TuneResult) -> list[str]:
    """Settings of three values or more whose smallest or largest was chosen."""
    tried = {name: {trial.settings[name] for trial in result.trials} for name in result.chosen}
    return [n for n, values in tried.items() if len(values) > 2 and result.chosen[n] in (min(values), max(values))]


def shown(value: float | None) -> str:
    return "none" if value is None else f"{100 * value:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("runs/lab-recipe"))
    parser.add_argument("--method", help="tune this method alone and write nothing")
    arguments = parser.parse_args()
    if arguments.method:
        choose(arguments.method, arguments.output)
        return
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda method: in_a_process(method, arguments.output), METHODS))
    results = [choose(method, arguments.output) for method in METHODS]
    for result in results:
        write_recipe(result, RECIPE)
    PAGE.write_text("\n".join(page(results)).rstrip() + "\n", encoding="utf-8")
    print(json.dumps({result.method: dict(result.chosen) for result in results}))


if __name__ == "__main__":
    main()
