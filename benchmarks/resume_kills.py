"""Fifty seeded kills of a run, resumed each time, for four methods; and a few for every method and modifier.

``python benchmarks/resume_kills.py [--kills 50] [--all]`` prints what was killed where and whether weights, training
data, answers and matrix are those of an uninterrupted run, and writes ``docs/resume-kills.md`` with the log.
"""

from __future__ import annotations

import argparse
import platform
import tempfile
import time
from pathlib import Path

from cl_bench.harness.progress import SilentProgress
from cl_bench.harness.registry import Registry
from cl_bench.harness.selfcheck.resume import Plan, ResumeCheck, check_resume
from cl_bench.harness.selfcheck.short_run import short_run
from cl_bench.harness.spec import Execution

PAGE = Path(__file__).resolve().parent.parent / "docs" / "resume-kills.md"
RUNS = (("synthself", ()), ("sdft", ()), ("grpo", ()), ("sft", ("replay", "ewc", "lora")))
EACH, LATER, FEW = 5, 10, 5
EXECUTION = Execution(threads=1, checkpoint_every_seconds=None, checkpoint_every_steps=1)
HEAD = """# Kills and resumes

Printed by `benchmarks/resume_kills.py`: short runs on the lab (`lab-s`, two stages of `science`, a checkpoint after
every step) are killed with SIGKILL at seeded points and resumed, again and again, until each has had its kills; every
run that came to its end is compared with an uninterrupted one, file by file. `cl-bench selfcheck resume` does the same
on your machine. Activities: generation (sampling training data), training (optimizer steps), checkpoint (writing
weights), evaluation (benchmarks and shift), record (every other file).
"""


def check(method: str, modifiers: tuple[str, ...], plan: Plan) -> tuple[ResumeCheck, float]:
    """One method's kills, and the seconds they took."""
    label, begun = "+".join((method, *modifiers)), time.monotonic()
    spec = short_run(method, modifiers, Registry(), EXECUTION)
    with tempfile.TemporaryDirectory(prefix="cl-bench-kills-") as folder:
        found = check_resume(label, spec, EXECUTION, Path(folder), plan, SilentProgress(quiet=True))
    seconds = time.monotonic() - begun
    print(f"{label}: {len(found.kills)} kills {found.by_activity()}, {found.runs} runs, {found.files} files, "
          f"{found.problem or 'equal bit for bit'}, {seconds:.0f} s", flush=True)  # fmt: skip
    return found, seconds


def table(checks: list[tuple[ResumeCheck, float]]) -> list[str]:
    """The checks as a table."""
    lines = [
        "| run | kills | by activity | in training after stage 1 | runs | files compared | first difference | seconds |"
    ]
    lines.append("|---|---:|---|---:|---:|---:|---|---:|")
    for found, seconds in checks:
        activities = ", ".join(f"{name} {count}" for name, count in sorted(found.by_activity().items()))
        cells = (found.label, len(found.kills), activities, found.in_later_steps(), found.runs, found.files,
                 found.problem or "none", f"{seconds:.0f}")  # fmt: skip
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return lines


def log(found: ResumeCheck) -> list[str]:
    """Where each kill fell."""
    lines = [f"## Log of {found.label}", "", "```"]
    for number, kill in enumerate(found.kills, start=1):
        place = f"{kill['stage']}/{kill['phase']}"
        lines.append(
            f"{number:>3} {kill['activity']:<11} {place:<26} moment {kill['number']:>3} +{kill['delay']:.4f} s"
        )
    return [*lines, "```", ""]


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--all", action="store_true", help="every method and modifier too, a few kills each")
    given = parser.parse_args()
    plan = Plan(kills=given.kills, each=min(EACH, given.kills // 10), later=min(LATER, given.kills // 5))
    four = [check(method, modifiers, plan) for method, modifiers in RUNS]
    rest: list[tuple[ResumeCheck, float]] = []
    if given.all:
        registry = Registry()
        few = Plan(kills=FEW, each=1, later=1)
        rest = [check(method, (), few) for method in registry.methods()]
        rest += [check("sft", (modifier,), few) for modifier in registry.modifiers()]
    parts = [HEAD, f"Python {platform.python_version()}, {platform.machine()}.", "", *table(four), ""]
    if rest:
        parts += ["## Every method and modifier", "", *table(rest), ""]
    for found, _ in four:
        parts += log(found)
    PAGE.write_text("\n".join(parts), encoding="utf-8")
    print(PAGE)


if __name__ == "__main__":
    main()
