"""What a task's rows and scorer must be like; used by ``validate task``."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence

from cl_bench.harness.conformance.check import Check
from cl_bench.tasks.base import SPLITS, Example, Task

_OVERLAPS = (("train", "test"), ("train", "dev"), ("dev", "test"), ("train", "ood"))


def task_checks(task: Task) -> tuple[dict[str, int], list[Check]]:
    """Rows by split, and the checks.

    Raises:
        DataError: Data are absent or broken.
    """
    rows: dict[str, list[Example]] = {split: list(task.split(split)) for split in SPLITS}
    return {split: len(examples) for split, examples in rows.items()}, list(_checks(task, rows))


def _checks(task: Task, rows: dict[str, list[Example]]) -> Iterator[Check]:
    empty = [split for split in ("train", "dev", "test") if not rows[split]]
    yield Check("train, dev and test have rows", f"empty: {', '.join(empty)}" if empty else "")
    yield Check("chance is a fraction", "" if 0 <= task.chance < 1 else f"it is {task.chance}")
    counts = Counter(example.id for example in itertools.chain(*rows.values()))
    repeated = sorted(key for key, count in counts.items() if count > 1)
    yield Check("identifiers are unique over all splits", f"repeated: {', '.join(repeated[:5])}" if repeated else "")
    for one, other in _OVERLAPS:
        shared = {example.messages[-1]["content"] for example in rows[one]} & {
            example.messages[-1]["content"] for example in rows[other]
        }
        problem = f"{len(shared)} prompts are in both, for example {sorted(shared)[0][:60]!r}" if shared else ""
        yield Check(f"{one} and {other} share no prompt", problem)
    yield Check("every demonstration is scored correct", _wrong_demonstrations(task, rows))
    yield Check("an empty answer is scored wrong", _empty_accepted(task, [e for split in rows.values() for e in split]))
    again = [example.id for example in task.split("train")]
    same = again == [example.id for example in rows["train"]]
    yield Check("a split is the same when asked for again", "" if same else "the order or the rows changed")


def _wrong_demonstrations(task: Task, rows: dict[str, list[Example]]) -> str:
    wrong = [
        example.id
        for examples in rows.values()
        for example in examples
        if example.demonstration and not task.score(example, example.demonstration).correct
    ]
    return f"{len(wrong)} are not, for example {wrong[0]}" if wrong else ""


def _empty_accepted(task: Task, examples: Sequence[Example]) -> str:
    accepted = [example.id for example in examples if task.score(example, "").correct]
    return f"{len(accepted)} are accepted, for example {accepted[0]}" if accepted else ""
