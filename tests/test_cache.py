"""The cache: any difference in what decides a result is a miss, and damage is a miss."""

from __future__ import annotations

import dataclasses
import multiprocessing
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from cl_bench.harness import cache as cache_module
from cl_bench.harness.cache import Cache, CacheKey, EvaluationKey, RewriteKey, cache_root, key_fields, rows_hash
from cl_bench.harness.cache_contents import entries, prunable, remove
from cl_bench.harness.measure.shift.answers import AnswersKey
from cl_bench.tasks.base import Example

EVALUATION = EvaluationKey(
    weights="w",
    tokenizer="t",
    task="chemistry/test",
    task_version="1",
    rows_hash="r",
    template="chat",
    system_prompt=None,
    shots=0,
    generation={"max_new_tokens": 32, "temperature": 0.0},
    dtype="fp32",
    backend="local",
    backend_version="torch 2",
    batch_plan={"batch_size": 128},
)
REWRITE = RewriteKey(
    aligner="a",
    template="rewrite",
    rows_hash="r",
    scorer="s",
    acceptance={"candidates": 4, "leak_phrases": ["reference"]},
    generation={"max_new_tokens": 32, "temperature": 1.0},
    dtype="fp32",
    backend="local",
    backend_version="torch 2",
    batch_plan={"batch_size": 128},
    seed=0,
    stage="chemistry",
)


ANSWERS = AnswersKey(
    weights="w",
    tokenizer="t",
    prompts="p",
    generation={"temperature": 1.0, "top_p": None},
    dtype="fp32",
    backend="local",
    backend_version="torch 2",
    batch_plan={"batch_size": 16, "order": "length"},
)
KEYS: tuple[CacheKey, ...] = (EVALUATION, REWRITE, ANSWERS)


def flips(value: Any) -> list[Any]:
    """Values that differ in the smallest ways: each part of it flipped, one taken out and one more."""
    if value is None:
        return [""]
    if isinstance(value, dict):
        changed = [{**value, name: other} for name, part in value.items() for other in flips(part)]
        less = [{name: part for name, part in value.items() if name != left_out} for left_out in value]
        return [*changed, *less, {**value, "more": None}]
    if isinstance(value, list):
        return [[*value, "more"], value[:-1], [*value[:-1], *flips(value[-1])]]
    return [value + 1] if isinstance(value, int | float) else [f"{value}x"]


FLIPS = [
    (key, field, number)
    for key in KEYS
    for field in key_fields(type(key))
    for number in range(len(flips(getattr(key, field))))
]


@pytest.mark.parametrize(("key", "field", "number"), FLIPS)
def test_flipping_any_field_is_a_miss(tmp_path: Path, key: CacheKey, field: str, number: int) -> None:
    cache = Cache(tmp_path)
    cache.put_json("cells", key, {"accuracy": 0.5})
    assert cache.get_json("cells", key) == {"accuracy": 0.5}
    other = dataclasses.replace(key, **{field: flips(getattr(key, field))[number]})
    assert cache.get_json("cells", other) is None


def test_every_kind_of_key_is_among_those_flipped() -> None:
    root = Path(cache_module.__file__).parents[1]
    sources = [path for folder in ("harness", "methods", "tasks") for path in (root / folder).rglob("*.py")]
    declared = {name for path in sources for name in re.findall(r"^class (\w+)\(CacheKey\)", path.read_text(), re.M)}
    assert declared == {type(key).__name__ for key in KEYS}


@pytest.mark.parametrize("key", KEYS)
def test_another_version_of_the_cache_is_a_miss(tmp_path: Path, key: CacheKey, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Cache(tmp_path)
    cache.put_json("cells", key, 1)
    monkeypatch.setattr(cache_module, "CACHE_VERSION", cache_module.CACHE_VERSION + 1)
    assert cache.get_json("cells", key) is None


def test_an_entry_under_another_keys_name_is_a_miss(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    other = dataclasses.replace(EVALUATION, weights="other")
    cache.put_json("cells", EVALUATION, 1)
    cache.path("cells", other).parent.mkdir(parents=True, exist_ok=True)
    cache.path("cells", EVALUATION).rename(cache.path("cells", other))
    assert cache.get_json("cells", other) is None


def test_keys_of_equal_content_are_equal_and_kinds_are_apart(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.put_json("cells", EVALUATION, 1)
    again = dataclasses.replace(EVALUATION, generation={"temperature": 0.0, "max_new_tokens": 32})
    assert cache.get_json("cells", again) == 1
    assert cache.get_json("rewrites", EVALUATION) is None


@pytest.mark.parametrize(("key", "field"), [(EVALUATION, "weights"), (EVALUATION, "rows_hash"), (REWRITE, "aligner")])
def test_empty_identity_is_refused(key: CacheKey, field: str) -> None:
    with pytest.raises(ValueError, match=field):
        dataclasses.replace(key, **{field: ""})


def test_rows_come_back_in_order(tmp_path: Path) -> None:
    rows = [{"id": i, "text": "line\u2028break\nß", "score": 0.1 * i} for i in range(5)]
    cache = Cache(tmp_path)
    cache.put_jsonl("rewrites", REWRITE, rows)
    assert cache.get_jsonl("rewrites", REWRITE) == rows
    cache.put_jsonl("rewrites", REWRITE, [])
    assert cache.get_jsonl("rewrites", REWRITE) == []


@pytest.mark.parametrize("position", [10, -3])
def test_changed_byte_is_a_miss(tmp_path: Path, position: int) -> None:
    cache = Cache(tmp_path)
    cache.put_json("cells", EVALUATION, {"accuracy": 0.5})
    path = cache.path("cells", EVALUATION)
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(bytes(data))
    assert cache.get_json("cells", EVALUATION) is None


def test_an_entry_of_endless_depth_is_a_miss(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.put_json("cells", EVALUATION, 1)
    for text in ("[" * 200_000, "{}", "[]\n" * 3):
        cache.path("cells", EVALUATION).write_text(text)
        assert cache.get_json("cells", EVALUATION) is None


def test_cut_file_is_a_miss_and_can_be_written_again(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.put_jsonl("cells", EVALUATION, [1, 2, 3])
    path = cache.path("cells", EVALUATION)
    path.write_bytes(path.read_bytes()[:-2])
    assert cache.get_jsonl("cells", EVALUATION) is None
    cache.put_jsonl("cells", EVALUATION, [1, 2, 3])
    assert cache.get_jsonl("cells", EVALUATION) == [1, 2, 3]


def test_none_is_not_stored(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="miss"):
        Cache(tmp_path).put_json("cells", EVALUATION, None)


def _write_often(root: Path) -> None:
    for _ in range(30):
        Cache(root).put_jsonl("cells", EVALUATION, [{"x": i} for i in range(200)])


def test_writers_at_the_same_time(tmp_path: Path) -> None:
    expected = [{"x": i} for i in range(200)]
    cache = Cache(tmp_path)
    cache.put_jsonl("cells", EVALUATION, expected)
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_write_often, args=(tmp_path,)) for _ in range(3)]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        assert cache.get_jsonl("cells", EVALUATION) == expected
    for writer in writers:
        writer.join(20)
        assert writer.exitcode == 0
    assert [path.name for path in cache.path("cells", EVALUATION).parent.iterdir()] == [
        cache.path("cells", EVALUATION).name
    ]


def _entry(number: int) -> EvaluationKey:
    return dataclasses.replace(EVALUATION, task=f"task {number}")


def _write_some(root: Path, numbers: Sequence[int]) -> None:
    for number in numbers:
        if Cache(root).get_json("cells", _entry(number)) is None:
            Cache(root).put_json("cells", _entry(number), {"number": number})


def test_two_processes_on_one_cache_lose_and_duplicate_nothing(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    shares = (range(60), range(59, -1, -1), range(30, 90))
    writers = [context.Process(target=_write_some, args=(tmp_path, numbers)) for numbers in shares]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
        assert writer.exitcode == 0
    assert [Cache(tmp_path).get_json("cells", _entry(number)) for number in range(90)] == [
        {"number": number} for number in range(90)
    ]
    files = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    assert files == sorted(Cache(tmp_path).path("cells", _entry(number)) for number in range(90))


def _prune_often(root: Path) -> None:
    for _ in range(60):
        remove(prunable(entries(root), max_size=0))


def test_a_reader_has_an_entry_whole_or_a_miss_while_another_process_prunes(tmp_path: Path) -> None:
    rows = [{"x": number} for number in range(500)]
    cache = Cache(tmp_path)
    pruner = multiprocessing.get_context("fork").Process(target=_prune_often, args=(tmp_path,))
    pruner.start()
    found = []
    while pruner.is_alive():
        found.append(cache.get_jsonl("cells", EVALUATION))
        if found[-1] is None:
            cache.put_jsonl("cells", EVALUATION, rows)
    pruner.join(60)
    assert pruner.exitcode == 0 and all(one is None or one == rows for one in found)
    cache.put_jsonl("cells", EVALUATION, rows)
    assert cache.get_jsonl("cells", EVALUATION) == rows


def test_place_of_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CL_BENCH_CACHE", str(tmp_path / "own"))
    assert cache_root() == tmp_path / "own"
    monkeypatch.delenv("CL_BENCH_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_root() == tmp_path / "xdg" / "cl-bench"


def test_rows_hash_sees_order_and_content() -> None:
    one = Example("t", "1", ({"role": "user", "content": "a"},), answer="x")
    two = Example("t", "2", ({"role": "user", "content": "b"},), answer="y")
    hashes = {
        rows_hash([one, two]),
        rows_hash([two, one]),
        rows_hash([one]),
        rows_hash([one, dataclasses.replace(two, answer="z")]),
        rows_hash([one, dataclasses.replace(two, demonstration="z")]),
        rows_hash([one, dataclasses.replace(two, meta={"k": 1})]),
    }
    assert len(hashes) == 6
    assert rows_hash([one, two]) == rows_hash(iter([one, two]))
