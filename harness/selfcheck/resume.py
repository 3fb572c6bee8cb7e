"""Whether a run that is killed again and again comes to what an uninterrupted one comes to, bit for bit."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cl_bench.harness.run_directory import run_path
from cl_bench.harness.selfcheck.results import compared
from cl_bench.harness.selfcheck.ticks import ACTIVITIES, Activity, random_point
from cl_bench.harness.spec import Execution, RunSpec
from cl_bench.methods.base import Progress

if TYPE_CHECKING:
    from cl_bench.harness.selfcheck.process import Ended

_IN_A_ROW = 40
"""Processes of one run at most: kills that come too early let it get nowhere."""
_WITHOUT_KILL = 5
"""Runs in a row that may come to their end before their kill: then the moments that are left to kill cannot be met."""


@dataclass(slots=True)
class ResumeCheck:
    """What was found of one run.

    Attributes:
        label: Method and modifiers.
        kills: What each kill found the run doing: ``activity, number, delay, stage, phase``.
        runs: Runs that were killed and brought to their end.
        files: Files compared, over all runs.
        problem: The first difference, or the error of a process that should have gone on; empty where there is none.
    """

    label: str
    kills: list[dict[str, Any]] = field(default_factory=list)
    runs: int = 0
    files: int = 0
    problem: str = ""

    def by_activity(self) -> dict[str, int]:
        """Kills by what the run was doing."""
        return dict(Counter(kill["activity"] for kill in self.kills))

    def in_later_steps(self) -> int:
        """Kills in the training of a stage after the first."""
        return sum(kill["activity"] == "training" and kill["stage"][:2] > "01" for kill in self.kills)

    def to_json(self) -> dict[str, Any]:
        """The check as JSON values."""
        return {
            "run": self.label,
            "passed": not self.problem,
            "kills": len(self.kills),
            "kills_by_activity": self.by_activity(),
            "kills_in_training_of_later_stages": self.in_later_steps(),
            "runs": self.runs,
            "files_compared": self.files,
            "first_difference": self.problem,
            "log": self.kills,
        }


@dataclass(frozen=True, slots=True)
class Plan:
    """How often a run is killed.

    Attributes:
        kills: Kills in all.
        each: Kills in each activity that the run has, at least.
        later: Kills in the training of stages after the first, at least.
        seed: Seed of the points.
    """

    kills: int = 5
    each: int = 1
    later: int = 0
    seed: int = 0


def check_resume(
    label: str,
    spec: RunSpec,
    execution: Execution,
    folder: Path,
    plan: Plan,
    progress: Progress,
    between: Callable[[Path], None] | None = None,
) -> ResumeCheck:
    """Run once without interruption, then with kills, and compare.

    Args:
        label: Method and modifiers, for people.
        spec: A short run.
        execution: Where and how; output and cache are put below ``folder``.
        folder: An empty folder.
        plan: How often to kill.
        progress: Advanced once a kill.
        between: Called with the run directory after each kill.
    """
    from cl_bench.harness.selfcheck.process import run_process

    check = ResumeCheck(label)
    whole = replace(execution, output=folder / "whole")
    progress.phase(f"{label}: without interruption")
    ended = run_process(spec, whole, folder / "cache-whole", folder / "unused.jsonl")
    if ended.error:
        check.problem = f"the uninterrupted run failed: {ended.error}"
        return check
    work = _Killing(check, spec, execution, folder, plan, ended, progress, between)
    progress.phase(f"{label}: killed", work.at_least())
    while not check.problem and work.wanted():
        work.one_run(run_path(whole.output, spec))
        if work.in_vain == _WITHOUT_KILL and not check.problem:
            missing = ", ".join(sorted({activity for activity, _ in work.wanted()}))
            check.problem = f"{_WITHOUT_KILL} runs in a row came to their end before a kill in {missing}"
    return check


class _Killing:
    """Runs killed until the plan is fulfilled."""

    def __init__(
        self,
        check: ResumeCheck,
        spec: RunSpec,
        execution: Execution,
        folder: Path,
        plan: Plan,
        whole: Ended,
        progress: Progress,
        between: Callable[[Path], None] | None,
    ) -> None:
        self._check, self._spec, self._execution, self._folder = check, spec, execution, folder
        self._plan, self._moments, self._progress, self._between = plan, whole.counts, progress, between
        self._generator = random.Random(plan.seed)
        self._log = folder / "kills.jsonl"
        self.in_vain = 0

    def at_least(self) -> int:
        """Kills that the plan comes to where each of them falls into what is still wanted."""
        each = {activity: self._plan.each for activity in self._there()}
        if "training" in each:
            each["training"] = max(each["training"], self._plan.later)
        return max(self._plan.kills, sum(each.values()))

    def _there(self) -> list[Activity]:
        return [activity for activity in ACTIVITIES if self._moments.get(activity)]

    def wanted(self) -> list[tuple[Activity, int]]:
        """Activities that still need kills, with the first stage that counts; all where only the sum is short."""
        done, found = self._check.by_activity(), list[tuple[Activity, int]]()
        there = self._there()
        if self._check.in_later_steps() < self._plan.later:
            found.append(("training", 2))
        found += [(activity, 0) for activity in there if done.get(activity, 0) < self._plan.each]
        if not found and len(self._check.kills) < self._plan.kills:
            found = [(activity, 0) for activity in there]
        return found

    def one_run(self, whole: Path) -> None:
        """Kill one run until the plan is fulfilled or it comes to its end; then finish and compare it."""
        from cl_bench.harness.selfcheck.process import run_process

        number, kills = self._check.runs + 1, len(self._check.kills)
        output, cache = self._folder / f"killed-{number}", self._folder / f"cache-{number}"
        execution, directory = replace(self._execution, output=output), run_path(output, self._spec)
        for _ in range(_IN_A_ROW):
            wanted = self.wanted()
            point = self._point(wanted) if wanted else None
            ended = run_process(self._spec, execution, cache, self._log, point)
            if ended.killed:
                self._count(directory)
            if ended.error:
                self._check.problem = f"the run could not go on: {ended.error}"
                return
            if not ended.killed:
                break
        else:
            run_process(self._spec, execution, cache, self._log)
        self._compare(directory, whole)
        self.in_vain = self.in_vain + 1 if len(self._check.kills) == kills else 0
        for place in (output, cache):
            shutil.rmtree(place, ignore_errors=True)

    def _point(self, wanted: Sequence[tuple[Activity, int]]) -> Any:
        activity, earliest = self._generator.choice(wanted)
        # Among the moments of about one stage: later ones may be behind, and nothing would be killed.
        most = self._moments[activity] // (len(self._spec.sequence.stages) + 1)
        return random_point(activity, most, self._generator, earliest)

    def _count(self, directory: Path) -> None:
        self._check.kills = [json.loads(line) for line in self._log.read_text(encoding="utf-8").splitlines()]
        self._progress.advance(1)
        if self._between is not None and directory.is_dir():
            self._between(directory)

    def _compare(self, directory: Path, whole: Path) -> None:
        self._check.runs += 1
        self._check.problem, files = compared(directory, whole)
        self._check.files += files
