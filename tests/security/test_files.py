"""Hostile files: archives, pickles, rows and plug-ins. Nothing of them runs, and nothing leaves its folder."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import shutil
import struct
import zipfile
from pathlib import Path
from typing import Any

import pytest

from cl_bench.harness.errors import ModelError
from cl_bench.harness.files import hash_tree
from cl_bench.harness.models.fetch import PackagedModel, extract_gguf
from cl_bench.harness.models.load import load_chat_model, resolve_model
from cl_bench.harness.registry import Registry
from cl_bench.harness.run_directory import load_run
from cl_bench.harness.selfcheck.process import run_process
from cl_bench.harness.selfcheck.short_run import short_run
from cl_bench.harness.selfcheck.ticks import KillPoint
from cl_bench.harness.spec import Execution
from tests.end_to_end.conftest import call
from tests.faults.stub import StubRun
from tests.support import tiny_model
from tests.tasks.sources.rows import science_row, write_jsonl


class Touch:
    """Unpickling it makes a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> Any:
        return os.mknod, (str(self._path),)


def listing(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


CONTENT = b"GGUF"
MODEL = PackagedModel("some==1", "some/model.gguf", hashlib.sha256(CONTENT).hexdigest(), len(CONTENT), "MIT", "some/M")


def test_a_zip_bomb_is_let_go_at_the_size_that_the_file_should_have(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "bomb.whl", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("some/model.gguf", bytes(300 << 20))
    assert (tmp_path / "bomb.whl").stat().st_size < 2**20
    (tmp_path / "out").mkdir()
    with pytest.raises(ModelError, match="not the file it should be") as refused:
        extract_gguf(tmp_path / "bomb.whl", MODEL, tmp_path / "out")
    assert "more than 4 bytes" in refused.value.why
    assert listing(tmp_path / "out") == set()


@pytest.mark.parametrize("other", ["../escaped", "/tmp/cl-bench-escaped", "some/../../escaped", "..\\escaped"])
def test_what_else_an_archive_holds_is_not_unpacked(other: str, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "out"
    out.mkdir(parents=True)
    link = zipfile.ZipInfo("some/link")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "some.whl", "w") as archive:
        archive.writestr(other, "escaped")
        archive.writestr(link, "/etc/passwd")
        archive.writestr("some/model.gguf", CONTENT)
    before = listing(tmp_path)
    assert extract_gguf(tmp_path / "some.whl", MODEL, out).read_bytes() == CONTENT
    assert listing(tmp_path) - before == {"deep/out/model.gguf"}
    assert not Path("/tmp/cl-bench-escaped").exists()


@pytest.fixture()
def model_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    chat = tiny_model(0)
    chat.model.save_pretrained(folder)
    chat.tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("name", ["pytorch_model.bin", "training_args.bin", "optimizer.pt", "adapter_model.bin"])
def test_a_pickle_beside_weights_is_never_opened(name: str, model_folder: Path, tmp_path: Path) -> None:
    (model_folder / name).write_bytes(pickle.dumps(Touch(tmp_path / "ran")))
    load_chat_model(resolve_model(str(model_folder)))
    assert not (tmp_path / "ran").exists()


def test_a_model_of_pickles_alone_is_refused(model_folder: Path, tmp_path: Path) -> None:
    for path in model_folder.glob("*.safetensors"):
        path.unlink()
    (model_folder / "pytorch_model.bin").write_bytes(pickle.dumps(Touch(tmp_path / "ran")))
    with pytest.raises(ModelError, match="holds no safetensors"):
        resolve_model(str(model_folder))
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("header", [struct.pack("<Q", 2**62), struct.pack("<Q", 10) + b'{"a": 1', b"", b"PK\x03\x04"])
def test_broken_safetensors_are_an_error_for_people(header: bytes, model_folder: Path) -> None:
    for path in model_folder.glob("*.safetensors"):
        path.write_bytes(header)
    with pytest.raises(ModelError):
        load_chat_model(resolve_model(str(model_folder)))


def test_code_beside_a_model_is_not_run(model_folder: Path, tmp_path: Path) -> None:
    config = json.loads((model_folder / "config.json").read_text())
    config["auto_map"] = {"AutoModelForCausalLM": "evil.Evil", "AutoConfig": "evil.EvilConfig"}
    (model_folder / "config.json").write_text(json.dumps(config))
    (model_folder / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    load_chat_model(resolve_model(str(model_folder)))
    assert not (tmp_path / "ran").exists()


@pytest.mark.end_to_end
def test_a_pickle_in_a_checkpoint_within_a_stage_is_not_run(tmp_path: Path) -> None:
    execution = Execution(output=tmp_path / "runs", threads=1, checkpoint_every_seconds=None, checkpoint_every_steps=1)
    spec = short_run("sft", (), Registry(), execution)
    at = KillPoint("training", 4, earliest=1)
    assert run_process(spec, execution, tmp_path / "cache", tmp_path / "log", at).killed
    (hashes,) = tmp_path.glob("runs/*/*/*/stages/01-chemistry/mid/step-*/hashes.json")
    sound = hashes.read_text()
    for file in ("optimizer.pt", "scheduler.pt", "rng_state.pth"):
        path = hashes.parent / file
        before = path.read_bytes()
        path.write_bytes(pickle.dumps({"state": Touch(tmp_path / "ran")}))
        if file == "optimizer.pt":
            ended = run_process(spec, execution, tmp_path / "cache", tmp_path / "log")
            assert "damaged" in ended.error and file in ended.error, "a hash that does not fit"
        files = hash_tree(hashes.parent, skip=["hashes.json"])
        hashes.write_text(json.dumps({**json.loads(sound), "files": files}))
        ended = run_process(spec, execution, tmp_path / "cache", tmp_path / "log")
        assert ended.error and not ended.killed
        assert not (tmp_path / "ran").exists()
        path.write_bytes(before)
        hashes.write_text(sound)


HOSTILE = "../../../escaped\x1b[2J<script>alert(1)</script>|\u202e\x00`x`[a](javascript:1)"


def test_hostile_rows_stay_in_their_folder_and_are_shown_harmless(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CL_BENCH_CACHE", str(tmp_path / "cache"))
    data = tmp_path / "data"
    data.mkdir()
    rows = [science_row(n, id=f"{HOSTILE}{n}", question=f"{HOSTILE} {n}?") for n in range(12)]
    write_jsonl(data / "science_chemistry.jsonl", rows)
    StubRun(tmp_path, tiny_model(context_length=4_000, ends=30.0))
    (tmp_path / "own" / "sequences").mkdir()
    (tmp_path / "own" / "sequences" / "one.yaml").write_text("name: one\nstages: [chemistry]\n")
    before = listing(tmp_path)
    command = ["run", "--method", "stub", "--sequence", "one", "--profile", "lab"]
    command += ["--model", str(tmp_path / "tiny"), "--include-path", str(tmp_path / "own"), "--suite", "none"]
    command += ["--set", "data.source=hub", "--data-root", str(data), "--output", str(tmp_path / "runs")]
    command += ["--set", "evaluation.ood_rows=0", "--set", "evaluation.rows=3", "--limit", "4", "--threads", "1"]
    done = call(*command, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    new = listing(tmp_path) - before
    assert all(name.startswith(("runs", "cache")) for name in new)
    assert not [name for name in new if "escaped" in name]
    (spec,) = tmp_path.glob("runs/*/*/*/spec.yaml")
    shown = call(
        "show",
        str(spec.parent),
        "--items",
        "--task",
        "chemistry",
        *("--kept", "--forgotten", "--gained", "--never"),
        cwd=tmp_path,
    )
    listed = call("data", "rows", "chemistry", "--data-root", str(data), "--split", "test", cwd=tmp_path)
    assert shown.returncode == 0 and "escaped" in shown.stdout
    pages = (spec.parent / "report.md").read_text()
    for text in (done.stdout + done.stderr, shown.stdout, listed.stdout, pages):
        assert not {"\x1b", "\x00", "\u202e"} & set(text)
    assert "<script" not in pages


def test_a_run_holds_none_of_the_secrets_around_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted = {
        "HF_TOKEN": "hf_PLANTEDplantedPLANTEDplanted",
        "OPENAI_API_KEY": "sk-PLANTEDplantedPLANTEDplanted",
        "AWS_SECRET_ACCESS_KEY": "PLANTED/planted/PLANTED/planted",
    }
    for name, value in planted.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("CL_BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("sys.argv", ["cl-bench", "run", "--set", f"data.api_key={planted['OPENAI_API_KEY']}"])
    stub = StubRun(tmp_path)
    directory = stub.run(tmp_path / "runs").directory
    assert "data.api_key=[hidden]" in json.loads((directory / "manifest.json").read_text())["sessions"][0]["command"]
    for path in (path for path in directory.rglob("*") if path.is_file()):
        content = path.read_bytes()
        assert b"PLANTED" not in content, path
    assert load_run(directory).status["state"] == "done"


@pytest.mark.parametrize(
    "body", ["raise RuntimeError('boom')", "import sys; sys.exit(3)", "raise BaseException('boom')", "1 / 0"]
)
def test_a_plug_in_that_fails_at_import_is_named_and_takes_nothing_down(body: str, tmp_path: Path) -> None:
    own = tmp_path / "own"
    (own / "methods").mkdir(parents=True)
    (own / "methods" / "broken.py").write_text(f"{body}\n")
    listed = call("list", "methods", "--include-path", str(own), cwd=tmp_path)
    assert listed.returncode == 0 and "sft" in listed.stdout and "broken" in listed.stdout
    shown = call("show", "method", "sft", "--include-path", str(own), cwd=tmp_path)
    assert shown.returncode == 0
    asked = call("show", "method", "broken", "--include-path", str(own), cwd=tmp_path)
    assert asked.returncode in (2, 130) and "Traceback" not in asked.stderr
    shutil.rmtree(own)


def test_names_never_leave_their_folder(tmp_path: Path) -> None:
    from cl_bench.harness.run_directory import run_path
    from tests.compare.small_runs import spec_of

    for name in ("../../x", "/etc/x", "a/b", "..", "\x1b[2J", "con\x00"):
        spec = spec_of(model__name=name, sequence__name=name)
        assert run_path(tmp_path, spec).resolve().is_relative_to(tmp_path.resolve())
        assert run_path(tmp_path, spec).name.isprintable()
