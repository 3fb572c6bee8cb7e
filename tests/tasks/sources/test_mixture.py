from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from cl_bench.harness.errors import DataError, UsageError
from cl_bench.tasks.base import Example, SplitName
from cl_bench.tasks.sources.base import DataOptions
from cl_bench.tasks.sources.editions import Edition
from cl_bench.tasks.sources.hub import HubTask
from cl_bench.tasks.sources.locate import DatasetSpec
from cl_bench.tasks.sources.mixture import MixtureTask
from cl_bench.tasks.sources.task_rows import HubSource
from tests.tasks.sources.rows import Row, math_row, program_row, science_row, tool_row, write_jsonl


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


def test_chance_is_weighted_by_test_rows(tmp_path: Path) -> None:
    letters = part(tmp_path, "letters", "sciknoweval", [science_row(n) for n in range(20)])
    numbers = part(tmp_path, "numbers", "gsm8k", [math_row(n) for n in range(1, 81)])
    numbers.chance = 0.0
    mixture = MixtureTask("mixture", [letters, numbers])
    taken = counts(mixture, "test")
    assert taken["letters"] == 4 and taken["numbers"] == 8
    assert mixture.chance == pytest.approx(0.25 * 4 / 12)
    absent = HubTask("absent", letters.source, replace(letters.options, data_root=tmp_path / "nowhere"))
    assert MixtureTask("mixture", [absent, absent]).chance == 0.25, "no rows are needed where the parts agree"


def test_parts_that_end_a_response_differently_are_refused(tmp_path: Path) -> None:
    letters = part(tmp_path, "letters", "sciknoweval", [science_row(n) for n in range(20)])
    tools = part(tmp_path, "tools", "toolalpaca", [tool_row(n) for n in range(20)])
    with pytest.raises(UsageError, match=r"letters: none; tools: 'Observation:'"):
        MixtureTask("mixture", [letters, tools])
    assert MixtureTask("mixture", [tools, tools]).stop == tools.stop


def test_identity_is_of_the_rows_that_are_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = sciences(tmp_path, {"one": 40, "two": 30})
    before = MixtureTask("mixture", parts).identity()
    assert before["version"] == "3" and before == MixtureTask("mixture", parts).identity()
    monkeypatch.setattr("cl_bench.tasks.sources.mixture._first_by_hash", lambda rows, count: list(rows)[:count])
    after = MixtureTask("mixture", parts).identity()
    assert after["parts"] == before["parts"] and after["rows"] == before["rows"] and after["data"] != before["data"]


def restricted(root: Path, *ids: str) -> MixtureTask:
    listed = root / "gold.txt"
    listed.write_text("\n".join(ids), encoding="utf-8")
    parts = sciences(root, {"one": 40, "two": 30})
    return MixtureTask(
        "mixture",
        [HubTask(p.name, replace(p.source, gold_filter=True), replace(p.options, gold_ids=listed)) for p in parts],
    )


def test_listed_ids_are_rows_of_some_part(tmp_path: Path) -> None:
    both = [f"{name}-{n}" for name in ("one", "two") for n in range(20)]
    assert restricted(tmp_path, *both).remarks == ()
    mixture = restricted(tmp_path, *both, "nobody", "one-99")
    assert mixture.remarks == ("2 listed ids are in none of one, two",)
    assert mixture.parts[0].remarks == ("22 listed ids are no row of this task",)
    with pytest.raises(DataError, match="no listed id is a row of the task two") as caught:
        restricted(tmp_path, *(f"one-{n}" for n in range(20))).train()
    assert "ids of each" in caught.value.hint and "SHA-256" in caught.value.hint
