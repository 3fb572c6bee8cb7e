"""Measures the main job as a user meets it: wall time, peak memory, imports, and how fast ``--help`` answers.

Every time is also printed as a ratio against something measured in the same run on the same machine: the peer is the
start-up of the libraries that the job stands on (``from trl import SFTTrainer`` and lm-eval's evaluator), and for
``--help`` an interpreter that does nothing. Ratios travel between machines, seconds do not.

    python benchmarks/main_job.py [--method synthself] [--sequence science] [--json]

Exit code 1 when a budget is exceeded; ``--no-budget`` only prints. The load before the start is printed too: on a busy
machine two threads wait for each other and no time means anything.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

PEER = "from trl import SFTTrainer; import lm_eval.evaluator, lm_eval.tasks"
BUDGETS = {"wall_seconds": 60.0, "peak_gigabytes": 2.0, "import_seconds": 15.0, "help_seconds": 0.3}
CLI = (sys.executable, "-m", "cl_bench.harness.cli")
_IMPORT_LINE = re.compile(r"^import time:\s+(\d+) \|\s+\d+ \|", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Child:
    """What one child process cost.

    Attributes:
        seconds: Wall time.
        gigabytes: Largest resident set of the process, in 2**30 bytes.
        output: Its stdout.
        errors: Its stderr.
    """

    seconds: float
    gigabytes: float
    output: str
    errors: str


def measure(command: tuple[str, ...], folder: Path, environment: dict[str, str]) -> Child:
    """Run a command to its end and measure it.

    Raises:
        SystemExit: The command failed; its stderr is shown.
    """
    with (folder / "out").open("w+") as out, (folder / "err").open("w+") as err:
        start = time.perf_counter()
        process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=err, env={**os.environ, **environment})
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        child = Child(seconds, usage.ru_maxrss / _units_per_gigabyte(), out.read(), err.read())
    if process.returncode:
        sys.exit(f"{' '.join(command)} ended with {process.returncode}:\n{child.errors[-3000:]}")
    return child


def _units_per_gigabyte() -> float:
    # getrusage counts kilobytes on Linux and bytes on macOS.
    return 2.0**30 if sys.platform == "darwin" else 2.0**20


def import_seconds(errors: str) -> float:
    """Seconds spent in imports, from ``-X importtime``: the self times of all modules, late ones included."""
    return sum(int(microseconds) for microseconds in _IMPORT_LINE.findall(errors)) / 1e6


def median_seconds(command: tuple[str, ...], folder: Path, times: int) -> float:
    """Median wall time of a command, after one call that warms the file cache."""
    measure(command, folder, {})
    return statistics.median(measure(command, folder, {}).seconds for _ in range(times))


def benchmark(method: str, sequence: str, folder: Path) -> dict[str, float]:
    """All numbers; the job runs with an empty cache and an empty output folder."""
    load = os.getloadavg()[0]
    peer = median_seconds((sys.executable, "-c", PEER), folder, 2)
    nothing = median_seconds((sys.executable, "-c", "pass"), folder, 5)
    shown = median_seconds((*CLI, "--help"), folder, 5)
    timed = (sys.executable, "-X", "importtime", *CLI[1:])
    job = measure(
        (*timed, "run", "--method", method, "--sequence", sequence, "--output", str(folder / "runs")),
        folder,
        {"CL_BENCH_CACHE": str(folder / "cache")},
    )
    loading = import_seconds(job.errors)
    return {
        "wall_seconds": job.seconds,
        "peak_gigabytes": job.gigabytes,
        "import_seconds": loading,
        "help_seconds": shown,
        "peer_seconds": peer,
        "interpreter_seconds": nothing,
        "wall_per_peer": job.seconds / peer,
        "imports_per_peer": loading / peer,
        "help_per_interpreter": shown / nothing,
        "load_before": load,
    }


def exceeded(numbers: dict[str, float]) -> list[str]:
    """Names of the budgets that do not hold."""
    return [name for name, budget in BUDGETS.items() if numbers[name] > budget]


def table(numbers: dict[str, float], threads: int) -> str:
    """The numbers for people."""
    lines = [f"{threads} cores, load {numbers['load_before']:.1f} before; peer: python -c '{PEER}'"]
    ratios = {"wall_seconds": "wall_per_peer", "import_seconds": "imports_per_peer"}
    for name, budget in BUDGETS.items():
        line = f"{name:16} {numbers[name]:8.2f}   budget {budget:5.1f}"
        if name in ratios:
            line += f"   {numbers[ratios[name]]:5.1f} x the peer's {numbers['peer_seconds']:.2f} s"
        if name == "help_seconds":
            nothing = f"an empty interpreter's {numbers['interpreter_seconds']:.3f} s"
            line += f"   {numbers['help_per_interpreter']:5.1f} x {nothing}"
        lines.append(line)
    return "\n".join(lines)


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", default="synthself")
    parser.add_argument("--sequence", default="science")
    parser.add_argument("--json", action="store_true", help="one line of JSON in place of the table")
    parser.add_argument("--no-budget", action="store_true", help="do not fail when a budget is exceeded")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cl-bench-main-job-") as folder:
        numbers = benchmark(options.method, options.sequence, Path(folder))
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    over = exceeded(numbers)
    print(json.dumps({**numbers, "cores": cores, "over_budget": over}) if options.json else table(numbers, cores))
    if over:
        print(f"over budget: {', '.join(over)}", file=sys.stderr)
    return 1 if over and not options.no_budget else 0


if __name__ == "__main__":
    sys.exit(main())
