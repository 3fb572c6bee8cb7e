"""``cl-bench data`` against a hub in memory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cl_bench.harness.profile_files import load_profile
from tests.cli.conftest import Cli, Done
from tests.tasks.sources.fake_hub import FakeHub, repository
from tests.tasks.sources.rows import math_row, tool_row, write_jsonl

TRAIN, TEST = [math_row(number) for number in range(30)], [math_row(number) for number in range(40, 50)]
TASK = """
name: {name}
title: {name}
sources:
  hub:
    kind: gsm8k
    data:
      path: owner/{name}
      config: main
      files: {{train: {name}_train.jsonl, test: {name}_test.jsonl}}
"""
TOOLS = """
name: tools
title: tools
sources:
  hub:
    kind: toolalpaca
    editions:
      - {path: owner/tools, on_hub: false, files: {train: t.jsonl, test: first.jsonl}}
      - {path: owner/tools, on_hub: false, files: {train: t.jsonl, test: second.jsonl}}
"""
SUITE = """
name: quick
tiers: {small: 2, whole: null}
defaults: {source: lm-eval, chat_template: false}
tasks:
  - name: piqa
    task: piqa
    metric: acc
    chance: 0.5
    data: {path: owner/choices, files: {validation: piqa.jsonl}}
"""
SEQUENCE = "name: pair\nstages: [boxes, tools]\nsuites: [quick]\n"
CHOICE = {"goal": "To dry a cup", "sol1": "wipe it", "sol2": "fill it", "label": 0}


@pytest.fixture()
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeHub:
    """A hub in the place of the real one, an empty cache, and plug-in files that read from it."""
    import huggingface_hub

    hub = FakeHub()
    hub.publish("owner/boxes", repository({"main": {"train": TRAIN, "test": TEST}}))
    hub.publish("owner/choices", repository({"default": {"validation": [CHOICE]}}))
    monkeypatch.setattr(huggingface_hub, "HfApi", lambda: hub)
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.setenv("CL_BENCH_CACHE", str(tmp_path / "cache"))
    own = {"tasks/boxes": TASK.format(name="boxes"), "tasks/tools": TOOLS, "suites/quick": SUITE}
    for name, text in (own | {"sequences/pair": SEQUENCE}).items():
        file = tmp_path / "own" / f"{name}.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return hub


@pytest.fixture()
def data(cli: Cli, hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """``cl-bench data`` with the plug-in files, each time as in a process of its own."""

    def call(command: str, *arguments: str) -> Done:
        monkeypatch.setenv("HF_HUB_OFFLINE", "0")  # --offline sets it for the whole process
        return cli("data", command, *arguments, "--include-path", "own")

    return call


def rows_of(done: Done) -> dict[str, dict[str, Any]]:
    (line,) = done.out.splitlines()
    return {row["path"]: row for row in json.loads(line)["data_sets"]}


def write_tools(folder: Path, *names: str) -> Path:
    for place, name in enumerate(names):
        write_jsonl(folder / name, [tool_row(10 * place + number) for number in range(10)])
    return folder


def test_a_sequence_brings_its_tasks_and_suites_and_says_what_is_missing(data: Cli, tmp_path: Path) -> None:
    done = data("prepare", "pair", "--json")
    assert done.code == 1
    rows = rows_of(done)
    assert {path: row["state"] for path, row in rows.items()} == {
        "owner/boxes": "downloaded", "owner/tools": "absent", "owner/choices": "downloaded"
    }  # fmt: skip
    boxes = rows["owner/boxes"]
    assert (boxes["for"], boxes["rows"], boxes["licence"]) == (["boxes"], {"train": 30, "test": 10}, "mit")
    assert len(boxes["commit"]) == 40 and boxes["bytes"] == sum(file["size"] for file in boxes["files"].values())
    detail = rows["owner/tools"]["detail"]
    assert "--data-root DIR with first.jsonl and t.jsonl, or second.jsonl and t.jsonl" in detail
    assert json.loads(done.out)["folder"] == str(tmp_path / "cache" / "data")
    assert "downloading owner/boxes (main)" in done.err


def test_everything_there_is_exit_code_0_and_the_second_time_asks_nobody(
    data: Cli, hub: FakeHub, tmp_path: Path
) -> None:
    root = str(write_tools(tmp_path / "files", "t.jsonl", "second.jsonl"))
    assert data("prepare", "pair", "--data-root", root).code == 0
    hub.calls.clear()
    done = data("prepare", "pair")
    assert (done.code, hub.calls) == (0, [])
    table = [line for line in done.out.splitlines() if not line.startswith("    copied from")]
    assert [line.split()[0] for line in table[1:]] == [
        "owner/boxes", "owner/tools", "owner/choices", str(tmp_path / "cache" / "data")
    ]  # fmt: skip
    assert all(line.endswith("present") for line in table[1:4])
    assert "train 30" in table[1] and "mit" in table[1] and "local files" in table[2]
    assert data("prepare", "pair", "--offline").code == 0


def test_prepared_data_is_what_runs_read_offline(data: Cli, cli: Cli, tmp_path: Path) -> None:
    root = str(write_tools(tmp_path / "files", "t.jsonl", "second.jsonl"))
    data("prepare", "pair", "--data-root", root)
    for task in ("boxes", "tools"):
        done = cli("validate", "task", task, "--source", "hub", "--offline", "--include-path", "own", "--json")
        assert done.code == 0, done.out + done.err
    done = cli("validate", "task", "boxes", "--source", "hub", "--include-path", "own", "--data-root", "cache/data")
    assert done.code == 0, done.out + done.err


def test_a_damaged_file_stops_a_run_and_is_mended_by_the_command_that_it_names(
    data: Cli, cli: Cli, tmp_path: Path
) -> None:
    data("prepare", "boxes")
    file = tmp_path / "cache" / "data" / "owner" / "boxes" / "main" / "test.jsonl"
    file.write_bytes(file.read_bytes()[:-20])
    options = ("validate", "task", "boxes", "--source", "hub", "--include-path", "own")
    done = cli(*options)
    assert done.code == 2 and "test.jsonl" in done.err and "cl-bench data prepare owner/boxes" in done.err
    done = data("prepare", "owner/boxes", "--offline")
    assert done.code == 1 and "test.jsonl" in done.out
    done = data("prepare", "owner/boxes")
    assert done.code == 0 and "fetched again" in done.out
    assert cli(*options).code == 0


def test_unknown_names_do_nothing(data: Cli, hub: FakeHub, tmp_path: Path) -> None:
    done = data("prepare", "boxes", "piar", "--json")
    assert done.code == 2 and "did you mean pair" in done.err
    assert hub.calls == [] and not (tmp_path / "cache").exists()
    assert "owner/boxes" in data("prepare", "owner/boxs").err
    done = data("prepare", "pair", "--tier", "smal")
    assert done.code == 2 and "did you mean small" in done.err


def test_interrupted(data: Cli, hub: FakeHub) -> None:
    hub.cut = {"main/train.jsonl"}
    done = data("prepare", "boxes", "--json")
    assert done.code == 130 and "the same command goes on" in done.err and "resume" not in done.err
    assert json.loads(done.out)["exit_code"] == 130
    assert data("prepare", "boxes").code == 0


def test_no_network_and_full_disk(data: Cli, hub: FakeHub) -> None:
    hub.network = False
    done = data("prepare", "boxes", "quick")
    assert done.code == 1 and done.out.count("the hub cannot be reached") == 2
    hub.network, hub.disk = True, 500
    done = data("prepare", "boxes")
    assert done.code == 1 and "No space left on device" in done.out
    hub.disk = None
    assert data("prepare", "boxes", "--to", "elsewhere").code == 0


def test_to_is_a_folder_that_data_root_takes(data: Cli, cli: Cli, tmp_path: Path) -> None:
    done = data("prepare", "boxes", "--to", "there")
    assert done.code == 0 and done.out.splitlines()[-1] == "there"
    assert not (tmp_path / "cache" / "data").exists()
    done = cli("validate", "task", "boxes", "--include-path", "own", "--data-root", "there", "--offline")
    assert done.code == 0, done.out + done.err
    (tmp_path / "file").touch()
    assert data("prepare", "boxes", "--to", "file").code == 2


def test_a_sequence_without_suites_takes_those_of_the_profiles(data: Cli) -> None:
    rows = json.loads(data("prepare", "science", "--offline", "--json").out)["data_sets"]
    suites = {load_profile(name).suite for name in ("laptop", "paper")}
    assert {user for row in rows for user in row["for"]} == {
        "chemistry", "biology", "materials", "physics", *suites
    }  # fmt: skip
    rows = rows_of(data("prepare", "science", "--offline", "--json", "--profile", "lab"))
    assert set(rows) == {"hicai-zju/SciKnowEval"}


def test_the_suites_that_a_sequence_brings_are_named_and_can_be_left_out(data: Cli, tmp_path: Path) -> None:
    for command in (("prepare", "science", "--offline"), ("list", "science")):
        said = data(*command)
        assert "science: with the suite retention-14 of profiles laptop and paper" in said.err
        assert "--profile NAME or --no-suites" in said.err and "piqa" in said.out
        narrowed = data(*command, "--no-suites")
        assert "retention-14" not in narrowed.err + narrowed.out and "SciKnowEval" in narrowed.out
    assert "pair: with its suites quick; --no-suites" in data("list", "pair").err
    assert not (tmp_path / "cache").exists()


def test_what_is_generated_needs_nothing(data: Cli) -> None:
    done = data("prepare", "lab")
    assert done.code == 0 and "reads no public data" in done.err


def test_list(data: Cli, hub: FakeHub, tmp_path: Path) -> None:
    data("prepare", "boxes")
    hub.calls.clear()

    def states(*options: str) -> dict[str, str]:
        return {row["path"]: row["state"] for row in json.loads(data("list", "--json", *options).out)}

    found = states()
    assert found["owner/boxes"] == "prepared" and found["owner/tools"] == found["owner/choices"] == "absent"
    done = data("list")
    assert "on the hub: cl-bench data prepare owner/choices" in done.out
    write_jsonl(tmp_path / "files" / "piqa.jsonl", [CHOICE])
    found = states("--data-root", "files")
    assert found["owner/boxes"] == "absent" and found["owner/choices"] == "local"
    (tmp_path / "cache" / "data" / "owner" / "boxes" / "main" / "test.jsonl").write_text("", encoding="utf-8")
    assert states()["owner/boxes"] == "damaged"
    assert hub.calls == []


def test_list_of_what_some_names_read_with_licences(data: Cli) -> None:
    data("prepare", "boxes")
    rows = json.loads(data("list", "pair", "owner/choices", "--json").out)
    assert [row["path"] for row in rows] == ["owner/boxes", "owner/tools", "owner/choices"]
    assert [row["licence"] for row in rows] == ["mit", None, None]
    assert [row["splits"] for row in rows] == [["train", "test"], ["train", "test"], ["validation"]]
    assert [line.split()[:4] for line in data("list", "boxes").out.splitlines()[1:]] == [
        ["owner/boxes", "(main)", "prepared", "mit"]
    ]
    done = data("list", "boxs")
    assert done.code == 2 and "did you mean boxes" in done.err


def test_what_is_optional_has_one_label_whatever_kept_it_away(data: Cli, hub: FakeHub, tmp_path: Path) -> None:
    suite = SUITE + "    worked_examples: {path: owner/nowhere, files: {train: w.jsonl}}\n"
    (tmp_path / "own" / "suites" / "quick.yaml").write_text(suite, encoding="utf-8")
    data("prepare", "owner/choices")
    labels = []
    for network, options in ((True, ()), (False, ()), (True, ("--offline",))):
        hub.network = network
        done = data("prepare", "quick", *options)
        assert done.code == 0
        line = next(line for line in done.out.splitlines() if line.startswith("owner/nowhere"))
        labels.append(line.split("  ")[-1])
    assert labels == ["absent (optional)"] * 3


def test_layout(cli: Cli, tmp_path: Path) -> None:
    write_jsonl(tmp_path / "flat" / "gsm8k_train.jsonl", TRAIN)
    write_jsonl(tmp_path / "flat" / "gsm8k_test.jsonl", TEST)
    done = cli("data", "layout", "flat", "root", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["folders"] == [str(Path("root") / "openai" / "gsm8k")]
    assert cli("data", "layout", "absent", "root").code == 2


def test_corpora(cli: Cli) -> None:
    content = json.loads(cli("data", "corpora", "--json").out)
    groups = {row["path"]: row["group"] for row in content["corpora"]}
    assert len(groups) == 23 and groups["AI-MO/NuminaMath-1.5"] == "post-cutoff" and groups["GAIR/LIMO"] == "unknown"
    later = json.loads(cli("data", "corpora", "--json", "--cutoff", "2026-01-01").out)["corpora"]
    assert {row["group"] for row in later} == {"pre-cutoff", "unknown"}
    plain = cli("data", "corpora").out.splitlines()
    assert len(plain) == 24 and plain[0].split()[:2] == ["path", "config"]
    assert cli("data", "corpora", "--cutoff", "soon").code == 2
