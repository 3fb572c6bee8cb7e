"""``cl-bench validate suite``: a retention suite's file, and each benchmark as a run would build it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from cl_bench.harness.commands.execution import prepare_libraries, talking_on_stderr
from cl_bench.harness.commands.validate import report
from cl_bench.harness.conformance.check import Check
from cl_bench.harness.errors import DataError, UsageError
from cl_bench.harness.registry import Registry
from cl_bench.harness.spec import DataSpec, Execution, data_options

if TYPE_CHECKING:
    from cl_bench.tasks.retention.suites import SuiteEntry
    from cl_bench.tasks.sources.base import DataOptions


def validate_suite_command(name: str, tier: str | None, execution: Execution, json: bool) -> int:
    """Check a suite and print a row for each benchmark.

    Args:
        name: Registered name, or the path of a YAML file.
        tier: A tier that it must have, or None.
        execution: Where data are, and whether programs may be run.
        json: Print one line of JSON.

    Raises:
        UnknownNameError: No such suite, or no such tier of it.
        UsageError: The file is no suite.
    """
    prepare_libraries(execution)
    from cl_bench.tasks.retention.suites import load_suite, suite_tiers

    own = name.endswith((".yaml", ".yml"))
    path = Path(name) if own else Registry(execution.include_paths).suite_path(name)
    entries = load_suite(path, tier)
    options = data_options(DataSpec(source="hub"), execution)
    with talking_on_stderr(), _without_log_lines():
        checks = [_check(entry, options) for entry in entries]
    return report(f"suite {path.stem if own else name}", checks, {"tiers": suite_tiers(path)}, json)


@contextmanager
def _without_log_lines() -> Iterator[None]:
    """Without what lm-eval logs of every task that it makes."""
    logger = logging.getLogger("lm_eval")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def _check(entry: SuiteEntry, options: DataOptions) -> Check:
    from cl_bench.tasks.retention.benchmarks import build_benchmark
    from cl_bench.tasks.sources.locate import AbsentDataError

    shown = f"{entry.name}: {entry.metric}, chance {entry.chance:.3g}, {entry.shots} shots"
    try:
        benchmark = build_benchmark(entry, options)
        for index in range(len(benchmark.ids)):
            benchmark.check(index)
    except AbsentDataError as error:
        return Check(shown, skipped=_words(error))
    except UsageError as error:
        return Check(shown, problem=_words(error))
    lacking = f" ({benchmark.shots_reason})" if benchmark.shots_reason else ""
    return Check(f"{shown}, {len(benchmark.ids)} rows{lacking}")


def _words(error: DataError | UsageError) -> str:
    return "; ".join(filter(None, (error.what, error.why, error.hint)))
