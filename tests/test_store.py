"""The run directory: whole files, finished stages verified by hash, one process at a time."""

from __future__ import annotations

import errno
import fcntl
import json
import multiprocessing
import os
import threading
from pathlib import Path

import pytest

from cl_bench.harness.errors import StoreError
from cl_bench.harness.files import read_jsonl, temporary_name, write_text
from cl_bench.harness.manifest import ManifestRecorder
from cl_bench.harness.measure.matrix import Cell, Column, Matrix
from cl_bench.harness.run_directory import load_run, method_label, run_path
from cl_bench.harness.run_lock import is_held
from cl_bench.harness.spec import (
    ComponentSpec,
    DataSpec,
    Execution,
    ModelSpec,
    RunSpec,
    SequenceSpec,
    StageSpec,
    TaskSpec,
)
from cl_bench.harness.store import Store


def make_spec(seed: int = 0, model: str = "lab-m", modifiers: tuple[str, ...] = ()) -> RunSpec:
    return RunSpec(
        profile="lab",
        recipe="lab",
        method=ComponentSpec(name="sft"),
        modifiers=tuple(ComponentSpec(name=name) for name in modifiers),
        sequence=SequenceSpec(name="science", stages=(StageSpec(task="chemistry", name="chemistry"),)),
        data=DataSpec(source="lab"),
        tasks=(TaskSpec(name="chemistry"),),
        model=ModelSpec(name=model, fingerprint="ab"),
        seed=seed,
    )


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path, make_spec())


def test_directory_says_what_was_run(tmp_path: Path) -> None:
    spec = make_spec(seed=3, modifiers=("replay",))
    store = Store.open(tmp_path, spec)
    assert store.directory == tmp_path / "science" / "sft+replay" / f"lab-m-default-s3-{spec.digest()[:8]}"
    assert RunSpec.from_yaml((store.directory / "spec.yaml").read_text()) == spec


def test_names_with_slashes_stay_inside_the_output(tmp_path: Path) -> None:
    path = run_path(tmp_path, make_spec(model="../../Qwen/Qwen2.5-0.5B"))
    assert path.parent == tmp_path / "science" / "sft"
    assert method_label(make_spec()) == "sft"


def test_same_spec_is_same_directory(tmp_path: Path, store: Store) -> None:
    assert Store.open(tmp_path, make_spec()).directory == store.directory
    assert Store.open(tmp_path, make_spec(seed=1)).directory != store.directory


def test_entering_again_takes_the_places_of_model_files_from_the_new_spec(tmp_path: Path, store: Store) -> None:
    moved = make_spec()
    moved = moved.model_copy(update={"model": moved.model.model_copy(update={"source": "/elsewhere"})})
    entered = Store.open(tmp_path, moved)
    assert entered.directory == store.directory
    assert entered.spec.model.source == "/elsewhere"


def test_changed_spec_is_refused(store: Store) -> None:
    path = store.directory / "spec.yaml"
    path.write_text(path.read_text().replace("seed: 0", "seed: 1"))
    with pytest.raises(StoreError, match="does not belong"):
        Store.reopen(store.directory)


def test_renamed_directory_is_refused(store: Store) -> None:
    moved = store.directory.rename(store.directory.with_name("lab-m-default-s0-00000000"))
    with pytest.raises(StoreError, match="does not belong"):
        load_run(moved)


def test_folder_of_strangers_is_refused(tmp_path: Path) -> None:
    directory = run_path(tmp_path, make_spec())
    directory.mkdir(parents=True)
    (directory / "thesis.tex").write_text("")
    with pytest.raises(StoreError, match="not a run directory"):
        Store.open(tmp_path, make_spec())
    assert (directory / "thesis.tex").exists()


def test_directory_of_a_run_killed_at_its_first_write_is_entered(tmp_path: Path) -> None:
    directory = run_path(tmp_path, make_spec())
    directory.mkdir(parents=True)
    temporary_name(directory / "spec.yaml").write_text("half a sp")
    assert [path.name for path in Store.open(tmp_path, make_spec()).directory.iterdir()] == ["spec.yaml"]


def test_failed_write_leaves_old_content(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.write_text("report.md", "old")

    def fail(descriptor: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        store.write_text("report.md", "new")
    assert (store.directory / "report.md").read_text() == "old"
    assert not list(store.directory.glob("*.tmp-*"))


def test_numbers_that_do_not_exist_become_null(store: Store) -> None:
    store.write_json("x.json", {"loss": float("nan"), "norm": float("inf"), "ok": 0.5})
    assert json.loads((store.directory / "x.json").read_text()) == {"loss": None, "norm": None, "ok": 0.5}


def test_places_outside_the_run_are_refused(store: Store) -> None:
    with pytest.raises(StoreError, match="outside"):
        store.write_text("../x", "")


def test_document_that_does_not_fit_its_schema_is_refused(store: Store) -> None:
    with pytest.raises(StoreError, match="document of kind status"):
        store.write_json("status.json", {"schema_version": 1, "state": "fine", "updated": ""}, schema="status")
    assert not store.exists("status.json")


def test_stage_counts_only_when_done(store: Store) -> None:
    store.write_jsonl("stages/00-base/eval/chemistry/samples.jsonl", [{"id": 1}, {"id": 2}])
    assert not store.stage_done(0, "base")
    store.finish_stage(0, "base")
    assert store.stage_done(0, "base")
    assert [row["id"] for row in load_run(store.directory).samples("base", "chemistry")] == [1, 2]


@pytest.mark.parametrize("damage", ["change", "remove"])
def test_damaged_file_of_finished_stage_is_named(store: Store, damage: str) -> None:
    store.write_text("stages/01-chemistry/checkpoint/model.safetensors", "weights")
    store.write_text("stages/01-chemistry/adaptation.json", "{}")
    store.finish_stage(1, "chemistry")
    file = store.stage_dir(1, "chemistry") / "checkpoint" / "model.safetensors"
    if damage == "change":
        file.write_text("wEights")
    else:
        file.unlink()
    with pytest.raises(StoreError, match="model.safetensors"):
        store.stage_done(1, "chemistry")
    with pytest.raises(StoreError, match="model.safetensors"):
        load_run(store.directory, weights=True)
    assert load_run(store.directory).stages.keys() == {"chemistry"}  # reports do not read weights


def test_dropped_checkpoint_leaves_a_verified_stage(store: Store) -> None:
    store.write_text("stages/01-chemistry/checkpoint/model.safetensors", "weights")
    store.write_text("stages/01-chemistry/adaptation.json", "{}")
    store.finish_stage(1, "chemistry")
    store.drop_checkpoint(1, "chemistry")
    assert not store.exists("stages/01-chemistry/checkpoint")
    assert store.stage_done(1, "chemistry")
    (store.directory / "stages/01-chemistry/adaptation.json").write_text("{ }")
    with pytest.raises(StoreError, match="adaptation.json"):
        store.stage_done(1, "chemistry")


def test_reset_keeps_checkpoints_and_refuses_finished_stages(store: Store) -> None:
    store.write_text("stages/01-chemistry/data/rows.jsonl", "")
    store.write_text("stages/01-chemistry/mid/step-000004/state", "x")
    store.reset_stage(1, "chemistry")
    assert [path.name for path in store.stage_dir(1, "chemistry").iterdir()] == ["mid"]
    store.finish_stage(1, "chemistry")
    with pytest.raises(StoreError, match="finished"):
        store.reset_stage(1, "chemistry")


def test_checkpoint_within_a_stage(store: Store, tmp_path: Path) -> None:
    checkpoints = store.mid_checkpoints(1, "chemistry", every_seconds=None, every_steps=4)
    assert [step for step in range(1, 9) if checkpoints.due(step)] == [4, 8]
    assert checkpoints.latest() is None
    for step in (4, 8):
        source = tmp_path / "source"
        source.mkdir()
        (source / "training_args.bin").write_text("pickle")
        (source / "model.safetensors").write_text(str(step))
        checkpoints.save(step, source)
        assert not source.exists()
    latest = checkpoints.latest()
    assert latest is not None and latest.name == "step-000008"
    assert sorted(path.name for path in latest.iterdir()) == ["hashes.json", "model.safetensors"]
    assert [path.name for path in latest.parent.iterdir()] == ["step-000008"]
    (latest / "model.safetensors").write_text("9")
    with pytest.raises(StoreError, match="model.safetensors"):
        checkpoints.latest()
    store.finish_stage(1, "chemistry")
    assert checkpoints.latest() is None


def test_checkpoint_without_hashes_does_not_count(store: Store) -> None:
    write_text(store.directory / "stages/01-chemistry/mid/step-000008/model.safetensors", "half")
    assert store.mid_checkpoints(1, "chemistry", None, 4).latest() is None


def test_checkpoint_by_the_clock(store: Store) -> None:
    assert store.mid_checkpoints(1, "chemistry", every_seconds=0.0, every_steps=None).due(1)
    assert not store.mid_checkpoints(1, "chemistry", every_seconds=60.0, every_steps=None).due(1)


def _hold(directory: Path, ready: multiprocessing.synchronize.Event, end: multiprocessing.synchronize.Event) -> None:
    with Store.reopen(directory).lock():
        ready.set()
        end.wait(20)


def test_second_process_is_refused(store: Store) -> None:
    context = multiprocessing.get_context("fork")
    ready, end = context.Event(), context.Event()
    holder = context.Process(target=_hold, args=(store.directory, ready, end))
    holder.start()
    try:
        assert ready.wait(20)
        with pytest.raises(StoreError, match="another process") as refused, store.lock():
            pass
        assert str(holder.pid) in refused.value.why
    finally:
        end.set()
        holder.join(20)
    with store.lock():
        pass


def test_who_only_looks_does_not_keep_a_run_from_starting(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cl_bench.harness.run_lock._TRIES", 1000)  # however busy this machine is
    with store.lock():
        pass
    lock = store.directory / ".lock"
    with lock.open("rb") as looking:
        fcntl.flock(looking, fcntl.LOCK_SH)
        timer = threading.Timer(0.05, fcntl.flock, (looking, fcntl.LOCK_UN))
        timer.start()
        with store.lock():
            assert is_held(lock)
        timer.join()
    assert not is_held(lock)


def test_a_file_system_without_locks_is_named(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", none)
    with pytest.raises(StoreError, match="cannot be locked") as refused, store.lock():
        pass
    assert "No locks available" in refused.value.why


def test_other_ranks_write_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    before = sorted(store.directory.rglob("*"))
    monkeypatch.setenv("RANK", "1")
    store.write_json("x.json", {})
    store.status("running")
    store.event("start")
    store.finish_stage(1, "chemistry")
    assert sorted(store.directory.rglob("*")) == before


def test_status_and_events(store: Store) -> None:
    assert store.state() is None
    store.status("running", stage="chemistry", phase="train")
    store.event("stage", name="chemistry")
    store.event("stage", name="biology")
    assert store.state() == "running"
    events = list(read_jsonl(store.directory / "events.jsonl"))
    assert [event["name"] for event in events] == ["chemistry", "biology"]


def test_manifest_has_a_session_per_process(store: Store) -> None:
    for state in ("interrupted", "done"):
        manifest = ManifestRecorder(store, Execution(device="cpu"))
        with manifest.phase("train"):
            pass
        manifest.end("done" if state == "done" else "interrupted")
    sessions = store.read_json("manifest.json")["sessions"]
    assert [session["state"] for session in sessions] == ["interrupted", "done"]
    assert sessions[0]["environment"]["packages"]["torch"]
    assert sessions[1]["execution"]["device"] == "cpu"
    assert sessions[1]["peak_memory_bytes"] > 1_000_000
    assert sessions[1]["phase_seconds"].keys() == {"train"}


def test_a_killed_process_leaves_the_time_of_its_phases(store: Store) -> None:
    manifest = ManifestRecorder(store, Execution(device="cpu"))
    with manifest.phase("train"):
        pass  # and no end: a report within the run reads the same file
    session = store.read_json("manifest.json")["sessions"][0]
    assert (session["state"], list(session["phase_seconds"])) == ("running", ["train"])


def test_what_stops_a_phase_is_told_where_its_time_cannot_be_written(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = ManifestRecorder(store, Execution(device="cpu"))

    def full(document: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "manifest.json")

    monkeypatch.setattr(store, "write_manifest", full)
    with pytest.raises(OSError, match="weights"), manifest.phase("train"):
        raise OSError(errno.ENOSPC, "No space left on device", "weights")
    with pytest.raises(OSError, match=r"manifest\.json"), manifest.phase("evaluate"):
        pass


def test_matrix_survives_the_disk(store: Store) -> None:
    matrix = Matrix([Column("chemistry", "sequence", 0.25, 10, "accuracy"), Column("gsm8k", "retention", 0, 5, "acc")])
    matrix.add_row("base")
    matrix.set("base", "chemistry", Cell(0.0, counts={"n": 10, "correct": 0}))
    matrix.set("base", "gsm8k", Cell(None, "data absent"))
    store.write_json("matrix.json", matrix.to_json(), schema="matrix")
    read = load_run(store.directory).matrix
    assert read.to_json() == matrix.to_json()
    assert read.value("base", "chemistry") == 0.0
    assert read.value("base", "gsm8k") is None
    assert read.cell("base", "gsm8k").reason == "data absent"


def test_null_needs_a_reason_and_names_are_unique() -> None:
    column = Column("chemistry", "sequence", 0, 10, "accuracy")
    matrix = Matrix([column])
    matrix.add_row("base")
    with pytest.raises(ValueError, match="without a reason"):
        matrix.set("base", "chemistry", Cell(None))
    with pytest.raises(ValueError, match="exists"):
        matrix.add_row("base")
    with pytest.raises(ValueError, match="unique"):
        Matrix([column, column])
    assert matrix.cell("base", "chemistry").reason == "not evaluated"


def test_matrix_of_another_version_is_refused() -> None:
    with pytest.raises(StoreError, match="version 99"):
        Matrix.from_json({"schema_version": 99})


def test_stage_is_flushed_before_it_counts(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    flush, replace = os.fsync, Path.replace

    def note_flush(descriptor: int) -> None:
        order.append("flush")
        flush(descriptor)

    def note_replace(path: Path, target: Path) -> Path:
        order.append(Path(target).name)
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", note_flush)
    monkeypatch.setattr(Path, "replace", note_replace)
    store.write_json("stages/00-base/eval/chemistry/results.json", {})
    assert order == ["results.json"]
    store.finish_stage(0, "base")
    before = order[: order.index("done.json")]
    assert before.count("flush") == 5  # three folders, the file, and done.json itself
    store.write_json("matrix.json", {})
    assert order[-3:] == ["flush", "matrix.json", "flush"]
