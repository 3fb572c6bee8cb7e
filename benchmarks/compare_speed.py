"""Time and peak memory of ``cl-bench compare`` over 20 runs of 50,000 answers each, and of ``cl-bench report`` of one.

The runs are made up: four methods over five seeds, 4 stages, 10 columns, 1,000 answers a cell (50,000 rows a run, in
all about 0.4 GB), every file hashed as a run leaves it. Each command has a process of its own, started cold; the
operating system may still hold the files, since they have just been written. Time is the process's wall time, imports
included; on a busy machine the processor's seconds beside it tell more. Memory is its largest resident set.

    python benchmarks/compare_speed.py [--runs 20] [--rows 50000] [--json] [--no-budget]

Exit code 1 when a command takes over 5 s or 500 MB (10**6 bytes each). ``--items``, which reads every answer of the
last rows, has a budget of memory alone.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cl_bench.harness.measure.matrix import Cell, Column, Matrix
from cl_bench.harness.measure.run_metrics import run_metrics
from cl_bench.harness.planned_stages import learned_columns
from cl_bench.harness.spec import RunSpec
from cl_bench.harness.store import Store

SECONDS, MEGABYTES = 5.0, 500.0
ITEMS = "compare --items"
METHODS = ("sft", "dft", "sdft", "synthself")
TASKS = ("chemistry", "biology", "materials", "physics")
RETENTION = ("reading", "sums", "order", "recall", "copying", "naming")
_COMMAND = "from cl_bench.harness.cli import main; main()"


@dataclass(frozen=True)
class Measured:
    """What one command took."""

    command: str
    seconds: float
    processor_seconds: float
    megabytes: float


def make_runs(folder: Path, runs: int, rows: int) -> list[Path]:
    """Write the runs and return their directories."""
    generator = random.Random(0)
    return [make_run(folder, METHODS[i % len(METHODS)], i // len(METHODS), rows, generator) for i in range(runs)]


def make_run(folder: Path, method: str, seed: int, rows: int, generator: random.Random) -> Path:
    spec = spec_of(method, seed)
    store = Store.open(folder, spec)
    columns = [Column(task, "sequence", 0.0, 1, "accuracy") for task in TASKS]
    columns += [Column(name, "retention", 0.25, 1, "acc") for name in RETENTION]
    matrix = Matrix(columns)
    a_cell = rows // (len(columns) * (len(TASKS) + 1))
    for index, row in enumerate(("base", *TASKS)):
        matrix.add_row(row)
        stage = store.stage_dir(index, row)
        for column in columns:
            share = 0.3 + 0.4 * generator.random()
            right = write_samples(stage / "eval" / column.name / "samples.jsonl", column.name, a_cell, share, generator)
            matrix.set(row, column.name, Cell(right / a_cell, counts={"n": a_cell, "correct": right}))
        if index:
            write_stage(store, stage, generator)
        store.finish_stage(index, row)
    store.write_json("matrix.json", matrix.to_json())
    store.write_json("metrics.json", run_metrics(matrix, learned_columns(spec)))
    store.write_manifest({"schema_version": 1, "sessions": [session()]})
    store.status("done")
    return store.directory


def spec_of(method: str, seed: int) -> RunSpec:
    return RunSpec.model_validate(
        {
            "profile": "lab",
            "recipe": "lab",
            "method": {"name": method, "settings": {"learning_rate": 1e-3}},
            "sequence": {"name": "science", "stages": [{"task": task, "name": task} for task in TASKS]},
            "data": {"source": "lab"},
            "tasks": [{"name": task} for task in TASKS],
            "suite": {"name": "lab"},
            "model": {"name": "lab-m", "fingerprint": "ab" * 32},
            "seed": seed,
        }
    )


def write_samples(path: Path, column: str, count: int, share: float, generator: random.Random) -> int:
    """Answers of about 400 bytes; returns how many are right."""
    path.parent.mkdir(parents=True)
    right = 0
    with path.open("w") as stream:
        for number in range(count):
            correct = generator.random() < share
            right += correct
            stream.write(json.dumps({
                "task": column, "id": f"{column}-{number}", "prompt_hash": f"{number:064x}",
                "response": f"step {generator.random()} " * 8, "correct": correct, "parsed": str(number),
                "format_ok": True, "tokens": 60, "ended": "eos",
            }) + "\n")  # fmt: skip
    return right


def write_stage(store: Store, stage: Path, generator: random.Random) -> None:
    adaptation = {
        "schema_version": 1, "steps": 100, "trained_tokens": 10**6, "generated_tokens": {}, "flops": {"train": 6e15},
        "data_generation": {}, "teacher": {}, "rejected": {}, "data_hash": "", "warnings": [], "logs": [],
        "seconds": 10.0,
    }  # fmt: skip
    store.write_json(stage / "adaptation.json", adaptation)
    kl = generator.random()
    record = {
        "measure": "forward_kl", "against": "base", "prompts": "new task", "contexts": "base answers",
        "reduction": "token mean", "unit": "nats per token", "n": 64, "value": kl,
    }  # fmt: skip
    shift = {"schema_version": 2, "forward_kl_trained": kl, "primary": record, "measures": [record] * 60}
    store.write_json(stage / "shift.json", shift)


def session() -> dict[str, Any]:
    return {
        "started": "2026-01-01T00:00:00+00:00", "ended": "2026-01-01T00:01:00+00:00", "state": "done", "seconds": 60.0,
        "phase_seconds": {f"{task}/adapt": 10.0 for task in TASKS}, "peak_memory_bytes": 2**30,
        "execution": {"device": "cpu"},
        "environment": {"python": "3", "platform": "linux", "machine": "x86_64", "packages": {"torch": "2"}},
    }  # fmt: skip


def measure(name: str, arguments: list[str], folder: Path) -> Measured:
    """Run a command in its own process.

    Raises:
        SystemExit: It failed; its stderr is shown.
    """
    with (folder / "out").open("w") as out, (folder / "err").open("w") as err:
        began = time.monotonic()
        child = subprocess.Popen([sys.executable, "-c", _COMMAND, *arguments], stdout=out, stderr=err)
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.monotonic() - began
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"{name} ended with {child.returncode}:\n{(folder / 'err').read_text()[-3000:]}")
    unit = 1 if sys.platform == "darwin" else 1024
    return Measured(name, seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * unit / 1e6)


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--json", action="store_true", help="one line of JSON in place of the table")
    parser.add_argument("--no-budget", action="store_true", help="do not fail when a budget is exceeded")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cl-bench-compare-") as name:
        folder = Path(name)
        runs = make_runs(folder / "runs", options.runs, options.rows)
        size = sum(path.stat().st_size for path in folder.rglob("samples.jsonl"))
        print(f"{len(runs)} runs of {options.rows} answers, {size / 1e6:.0f} MB", file=sys.stderr)
        done = [
            measure("compare", ["compare", str(folder / "runs")], folder),
            measure(ITEMS, ["compare", str(folder / "runs"), "--items"], folder),
            measure("compare --output", ["compare", str(folder / "runs"), "--output", str(folder / "study")], folder),
            measure("report", ["report", str(runs[0])], folder),
        ]
    if options.json:
        print(json.dumps([asdict(one) for one in done]))
    else:
        print("| command | seconds | of the processor | peak memory, MB |\n|---|---|---|---|")
        for one in done:
            print(f"| {one.command} | {one.seconds:.1f} | {one.processor_seconds:.1f} | {one.megabytes:.0f} |")
    over = [one.command for one in done if one.megabytes > MEGABYTES]
    over += [one.command for one in done if one.seconds > SECONDS and one.command != ITEMS]
    if over:
        print(f"over {SECONDS:g} s or {MEGABYTES:g} MB: {', '.join(over)}", file=sys.stderr)
    return 1 if over and not options.no_budget else 0


if __name__ == "__main__":
    sys.exit(main())
