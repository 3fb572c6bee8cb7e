from __future__ import annotations

from collections import Counter
from pathlib import Path

from cl_bench.tasks.base import Example, SplitName
from cl_bench.tasks.sources.base import DataOptions
from cl_bench.tasks.sources.editions import Edition
from cl_bench.tasks.sources.hub import HubTask
from cl_bench.tasks.sources.locate import DatasetSpec
from cl_bench.tasks.sources.mixture import MixtureTask
from cl_bench.tasks.sources.task_rows import HubSource
from tests.tasks.sources.rows import Row, math_row, program_row, science_row, write_jsonl


def part(root: Path, name: str, kind: str, rows: list[Row]) -> HubTask:
    write_jsonl(root / f"{name}.jsonl", rows)
    edition = Edition((DatasetSpec(f"o/{name}", {"test": f"{name}.jsonl"}),))
    return HubTask(name, HubSource(kind, (edition,), chance=0.25), DataOptions("hub", root))


def sciences(root: Path, sizes: dict[str, int]) -> list[HubTask]:
    return [
        part(
            root, name, "sciknoweval", [science_row(n, id=f"{name}-{n}", question=f"{name} {n}?") for n in range(size)]
        )
        for name, size in sizes.items()
    ]


def counts(mixture: MixtureTask, *splits: SplitName) -> dict[str, int]:
    return Counter(example.meta["part"] for split in splits for example in mixture.split(split))


def test_the_numbers_of_the_sources_table_4(tmp_path: Path) -> None:
    # Gold rows of the four sciences: 2,674 / 356 / 969 / 1,114.
    sizes = {"chemistry": 2674, "biology": 356, "materials": 969, "physics": 1114}
    mixture = MixtureTask("mixture", sciences(tmp_path, sizes))
    assert counts(mixture, "train", "dev") == {"chemistry": 668, "biology": 285, "materials": 668, "physics": 668}
    assert counts(mixture, "test") == {"chemistry": 133, "biology": 71, "materials": 133, "physics": 133}
    assert (len(mixture.train()) + len(mixture.dev()), len(mixture.test())) == (2289, 470)
    assert counts(mixture, "dev") == {"chemistry": 67, "biology": 29, "materials": 67, "physics": 67}


def test_rows_of_a_mixture_stay_on_their_side(tmp_path: Path) -> None:
    parts = sciences(tmp_path, {"one": 160, "two": 120, "three": 100, "four": 20})
    mixture = MixtureTask("mixture", parts)
    for split in ("train", "dev", "test"):
        own = {f"{one.name}/{example.id}" for one in parts for example in one.split(split)}
        rows = mixture.split(split)
        assert rows and {example.id for example in rows} <= own
        assert all(example.task == "mixture" and mixture.score(example, example.demonstration or "").correct
                   for example in rows)  # fmt: skip
    assert len(mixture.identity()["parts"]) == 4 and mixture.chance == 0.25 and not mixture.executes_code


def test_parts_of_several_kinds_keep_their_scorers(tmp_path: Path) -> None:
    parts = [
        part(tmp_path, "letters", "sciknoweval", [science_row(n) for n in range(20)]),
        part(tmp_path, "numbers", "gsm8k", [math_row(n) for n in range(1, 41)]),
    ]
    mixture = MixtureTask("mixture", parts)
    assert counts(mixture, "train", "dev") == {"letters": 16, "numbers": 20}
    for example in mixture.test():
        assert mixture.score(example, example.demonstration or "").correct
        other: Example = next(e for e in mixture.test() if e.meta["part"] != example.meta["part"])
        assert not mixture.score(example, other.demonstration or "").correct
    programs = part(tmp_path, "programs", "mbpp", [program_row(n) for n in range(20)])
    assert MixtureTask("mixture", [*parts, programs]).executes_code
