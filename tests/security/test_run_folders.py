"""A run directory, suite or model folder of somebody else: nothing in it runs, and nothing beside it is touched."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from jinja2.exceptions import SecurityError

from cl_bench.harness.commands.run import report, run_all
from cl_bench.harness.errors import DataError, ModelError, StoreError, UnknownNameError, UsageError
from cl_bench.harness.models.load import load_chat_model, load_folder, resolve_model
from cl_bench.harness.progress import SilentProgress
from cl_bench.harness.registry import Registry
from cl_bench.harness.spec import Execution
from cl_bench.harness.store import Store
from cl_bench.tasks.retention.benchmarks import build_benchmark
from cl_bench.tasks.retention.suites import SuiteEntry, load_suite
from cl_bench.tasks.sources.base import DataOptions
from tests.compare.small_runs import RETENTION, TASKS, make_run, spec_of
from tests.end_to_end.conftest import call
from tests.support import tiny_model
from tests.tasks.sources.rows import write_jsonl


@pytest.fixture()
def run(tmp_path: Path) -> Path:
    return make_run(tmp_path / "runs", samples=2)


def tree(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", [".lock", "events.jsonl", "stages/00-base", "stages/02-biology/batches.jsonl", "mid"])
def test_links_in_a_run_directory_are_refused_before_anything_is_touched(name: str, run: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "thesis").mkdir(parents=True)
    (home / "thesis" / "chapter").write_text("years of work\nunfinished")
    link = run / ("stages/02-biology/mid" if name == "mid" else name)
    if link.is_dir():
        shutil.rmtree(link)
    link.unlink(missing_ok=True)
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(home if name in ("stages/00-base", "mid") else home / "thesis" / "chapter")
    before = tree(home)
    done = call("report", str(run), cwd=tmp_path)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert tree(home) == before
    store = Store.reopen(run)
    with pytest.raises(StoreError, match="is a symbolic link") as refused, store.lock():
        pass
    assert str(link) in refused.value.what


def test_a_link_put_in_place_of_the_lock_is_not_followed(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "profile").write_text("mine")
    monkeypatch.setattr("cl_bench.harness.run_directory.refuse_links", lambda _: None)
    (run / ".lock").unlink(missing_ok=True)
    (run / ".lock").symlink_to(tmp_path / "profile")
    with pytest.raises(OSError, match="symbolic links"), Store.reopen(run).lock():
        pass
    assert (tmp_path / "profile").read_text() == "mine"


@pytest.mark.parametrize("changes", [{}, {"stages": ["evil"]}], ids=["nothing needed", "a task"])
@pytest.mark.parametrize("command", ["resume", "reproduce", "score", "recover"])
def test_plug_ins_that_a_manifest_names_are_not_imported(command: str, changes: dict[str, Any], tmp_path: Path) -> None:
    stages = changes.get("stages", TASKS)
    values = {row: (0.5,) * (len(stages) + len(RETENTION)) for row in ("base", *stages)}
    run = make_run(tmp_path / "runs", samples=2, values=values, **changes)
    own = tmp_path / "own"
    for kind in ("methods", "tasks"):
        (own / kind).mkdir(parents=True)
        (own / kind / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["sessions"][-1]["execution"] = {"include_paths": [str(own)]}
    (run / "manifest.json").write_text(json.dumps(manifest))
    done = call(command, str(run), cwd=tmp_path)
    assert done.returncode != 0 and "Traceback" not in done.stderr
    assert ("--include-path" in done.stderr) == bool(changes)
    assert not (tmp_path / "ran").exists()


ENTRY = SuiteEntry(
    "piqa", "lm-eval", "piqa", "acc", 0.5, data={"path": "o/n", "files": {"validation": "p.jsonl"}}, chat_template=False
)


def build(entry: SuiteEntry, folder: Path) -> Any:
    write_jsonl(folder / "p.jsonl", [{"goal": "To dry a cup", "sol1": "wipe it", "sol2": "fill it", "label": 0}])
    return build_benchmark(entry, DataOptions("hub", folder))


def test_a_suite_takes_definitions_of_lm_eval_alone(tmp_path: Path) -> None:
    (tmp_path / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\ndef docs(rows): return rows\n")
    (tmp_path / "own.yaml").write_text("task: own\nprocess_docs: !function evil.docs\n")
    for task in (str(tmp_path / "own.yaml"), str(tmp_path / "own"), "../" * 12 + str(tmp_path / "own")[1:]):
        with pytest.raises(UsageError, match="outside lm-eval"):
            build(replace(ENTRY, task=task), tmp_path)
    assert not (tmp_path / "ran").exists()


def test_templates_of_a_suite_reach_no_code(tmp_path: Path) -> None:
    template = "{{ cycler.__init__.__globals__.os.mknod('" + str(tmp_path / "ran") + "') }}"
    for key in ("description", "doc_to_text", "doc_to_choice"):
        with pytest.raises((DataError, SecurityError), match="unsafe"):
            build(replace(ENTRY, config={key: template}), tmp_path).task.fewshot_context({"goal": "g"}, 0)
        assert not (tmp_path / "ran").exists()
    built = build(replace(ENTRY, config={"doc_to_text": "Q: {{goal | upper}}"}), tmp_path)
    assert built.task.doc_to_text({"goal": "dry"}) == "Q: DRY"


@pytest.mark.parametrize("key", ["process_docs", "metric_list", "dataset_path", "custom_dataset", "filter_list"])
def test_a_suite_replaces_no_key_that_names_code(key: str, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="key of `config`"):
        build(replace(ENTRY, config={key: "!function evil.docs"}), tmp_path)
    suite = tmp_path / "suite.yaml"
    entry = {"name": "piqa", "source": "lm-eval", "task": "piqa", "metric": "acc", "chance": 0.5}
    entry |= {"data": dict(ENTRY.data), "config": {key: "evil"}}
    suite.write_text(json.dumps({"tiers": {"tiny": 2}, "tasks": [entry]}))
    with pytest.raises(UnknownNameError, match="key of `config`"):
        load_suite(suite, "tiny")


@pytest.fixture()
def model(tmp_path: Path) -> Path:
    chat = tiny_model(0)
    chat.model.save_pretrained(tmp_path / "model")
    chat.tokenizer.save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def _decoy(folder: Path) -> None:
    weights = load_folder(folder, "tiny").model.state_dict()
    (folder / "model.safetensors").rename(folder / "decoy.safetensors")
    torch.save(weights, folder / "pytorch_model.bin")


def _outside(folder: Path) -> None:
    names = list(load_folder(folder, "tiny").model.state_dict())
    (folder / "model.safetensors").rename(folder.parent / "outside.safetensors")
    weights = dict.fromkeys(names, "../outside.safetensors")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weights}))


def _adapter(folder: Path) -> None:
    (folder / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": str(folder.parent)}))


def _deep(folder: Path) -> None:
    (folder / "config.json").write_text("[" * 200_000)


@pytest.mark.parametrize("change", [_decoy, _outside, _adapter, _deep])
def test_weights_that_no_fingerprint_covers_are_refused(change: Callable[[Path], None], model: Path) -> None:
    change(model)
    with pytest.raises(ModelError):
        resolve_model(str(model))


def test_a_pickle_is_not_loaded_in_the_place_of_safetensors(model: Path) -> None:
    _decoy(model)
    with pytest.raises(ModelError):
        load_folder(model, "tiny")


def test_the_map_of_weights_in_several_files_is_part_of_the_model(model: Path) -> None:
    chat = load_chat_model(resolve_model(str(model)))
    (model / "model.safetensors").unlink()
    chat.model.save_pretrained(model, max_shard_size="20KB")
    first = resolve_model(str(model))
    assert torch.equal(next(load_chat_model(first).model.parameters()).cpu(), next(chat.model.parameters()).cpu())
    index = model / "model.safetensors.index.json"
    index.write_text(index.read_text() + " ")
    assert resolve_model(str(model)).fingerprint != first.fingerprint


def test_secrets_of_one_seed_among_several_are_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SOME_TOKEN", "abcdefgh12345")

    def fail(*_: object) -> None:
        raise RuntimeError("401 for https://user:pa55word@host with abcdefgh12345")

    monkeypatch.setattr("cl_bench.harness.runner.run_one", fail)
    specs = [spec_of(seed=0), spec_of(seed=1)]
    progress = SilentProgress()
    outcomes = run_all(specs, Execution(output=tmp_path), Registry(), progress)
    assert report(outcomes, json=True) == 1
    written = capsys.readouterr()
    assert "401 for" in written.err and "401 for" in written.out
    for text in (written.out, written.err):
        assert "pa55word" not in text and "abcdefgh12345" not in text
