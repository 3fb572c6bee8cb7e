"""The cache: any difference in what decides a result is a miss, and damage is a miss."""

from __future__ import annotations

import dataclasses
import multiprocessing
from pathlib import Path
from typing import Any

import pytest

from cl_bench.harness.cache import Cache, CacheKey, EvaluationKey, RewriteKey, cache_root, key_fields, rows_hash
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


def flipped(value: Any) -> Any:
    """A value that differs in the smallest way."""
    if value is None:
        return ""
    if isinstance(value, dict):
        name = next(iter(value))
        return {**value, name: flipped(value[name])}
    return value + 1 if isinstance(value, int | float) else f"{value}x"


@pytest.mark.parametrize(
    ("key", "field"), [(key, field) for key in (EVALUATION, REWRITE) for field in key_fields(type(key))]
)
def test_flipping_any_field_is_a_miss(tmp_path: Path, key: CacheKey, field: str) -> None:
    cache = Cache(tmp_path)
    cache.put_json("cells", key, {"accuracy": 0.5})
    assert cache.get_json("cells", key) == {"accuracy": 0.5}
    other = dataclasses.replace(key, **{field: flipped(getattr(key, field))})
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
