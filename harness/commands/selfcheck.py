"""``cl-bench selfcheck resume``: short runs with and without kills, compared bit for bit."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from cl_bench.harness.commands.execution import prepare_libraries, print_json, talking_on_stderr
from cl_bench.harness.errors import EXIT_DONE, EXIT_FAILED
from cl_bench.harness.progress import make_progress
from cl_bench.harness.registry import Registry
from cl_bench.harness.spec import Execution

if TYPE_CHECKING:
    from cl_bench.harness.selfcheck.resume import Plan, ResumeCheck

DEFAULT_METHODS = ("sft",)


def resume_check_command(
    methods: Sequence[str],
    modifiers: Sequence[str],
    plan: Plan,
    execution: Execution,
    json: bool,
) -> int:
    """Check every method in turn, print what was found; returns the exit code: 1 where a run came out differently.

    Args:
        methods: Methods; ``all`` stands for every method there is.
        modifiers: Modifiers around each of them.
        plan: How often to kill.
        execution: Where and how.
        json: Print one line of JSON.

    Raises:
        UsageError: An unknown name.
    """
    # A step is short: without a checkpoint after each there would be nothing to go on from.
    execution = replace(execution, checkpoint_every_seconds=None, checkpoint_every_steps=1)
    prepare_libraries(execution)
    from cl_bench.harness.selfcheck.resume import check_resume
    from cl_bench.harness.selfcheck.short_run import short_run

    checks = []
    with talking_on_stderr(), make_progress(execution.progress) as progress:
        registry = Registry(execution.include_paths)
        names = list(registry.methods()) if "all" in methods else list(methods or DEFAULT_METHODS)
        specs = {name: short_run(name, modifiers, registry, execution) for name in names}
        for name, spec in specs.items():
            label = "+".join((name, *modifiers))
            with tempfile.TemporaryDirectory(prefix="cl-bench-selfcheck-") as folder:
                checks.append(check_resume(label, spec, execution, Path(folder), plan, progress))
            progress.close()
    passed = not any(check.problem for check in checks)
    if json:
        print_json({"passed": passed, "checks": [check.to_json() for check in checks]})
    else:
        for check in checks:
            _print(check)
    return EXIT_DONE if passed else EXIT_FAILED


def _print(check: ResumeCheck) -> None:
    kills = ", ".join(f"{count} in {activity}" for activity, count in sorted(check.by_activity().items()))
    print(f"{check.label}: {len(check.kills)} kills ({kills}), {check.files} files compared in {check.runs} runs")
    if check.problem:
        print(f"  FAILED: first difference: {check.problem}")
    else:
        print("  a killed and resumed run equals the uninterrupted one bit for bit")
