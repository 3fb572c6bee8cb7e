"""Commands that look and write small things: help, list, show, env, models, new, validate."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cl_bench.harness.registry import Registry
from cl_bench.tasks.sources.locate import DatasetSpec
from cl_bench.tasks.sources.prepare import prepare
from cl_bench.tasks.sources.wanted import Need, wanted_sets
from tests.cli.conftest import Cli
from tests.tasks.sources.fake_hub import FakeHub, repository
from tests.tasks.sources.rows import math_row, science_row, write_jsonl

HEAVY = ("torch", "transformers", "rich", "yaml", "cl_bench.harness.registry", "cl_bench.methods")
KINDS = ["methods", "modifiers", "tasks", "sequences", "suites", "models", "profiles", "recipes"]


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom cl_bench.harness.cli import exit_code_of\n"
        "assert exit_code_of(['--help']) == 0\nassert exit_code_of(['run', '--help']) == 0\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    assert "--method" in done.stdout


@pytest.mark.parametrize("kind", KINDS)
def test_list(cli: Cli, kind: str) -> None:
    done = cli("list", kind, "--json")
    assert done.code == 0
    (line,) = done.out.splitlines()
    names = [row["name"] for row in json.loads(line)]
    assert len(names) == len(set(names))
    plain = cli("list", kind)
    assert [line.split()[0] for line in plain.out.splitlines()] == names


def test_list_of_methods_says_what_they_need(cli: Cli) -> None:
    rows = {row["name"]: row for row in json.loads(cli("list", "methods", "--json").out)}
    assert {"base", "joint", "sft", "synthself", "sdft"} <= set(rows)
    assert "aligner" in rows["synthself"]["needs"]
    assert rows["synthself"]["fidelity"] == "reconstructed"


def test_list_of_methods_holds_bounds_and_modifiers_and_what_each_was_checked_against(cli: Cli) -> None:
    rows = json.loads(cli("list", "methods", "--json").out)
    registry = Registry()
    assert {row["name"]: row["kind"] for row in rows} == {
        **{name: "bound" for name in ("base", "joint")},
        **{name: "method" for name in registry.methods()},
        **{name: "modifier" for name in registry.modifiers()},
    }
    keys = {"name", "kind", "family", "needs", "paper", "fidelity", "checked"}
    assert all(keys <= set(row) for row in rows)
    assert [row["name"] for row in rows if row["kind"] != "bound" and not (row["checked"] and row["fidelity"])] == []


@pytest.mark.parametrize(("kind", "name"), [("method", "sft"), ("modifier", "ewc")])
def test_show_says_what_it_was_checked_against(cli: Cli, kind: str, name: str) -> None:
    content = json.loads(cli("show", kind, name, "--json").out)
    assert content["checked"] and content["checked"] in cli("show", kind, name).out
    assert all(row["unit"] and row["source"] and isinstance(row["inferred"], bool) for row in content["settings"])


def test_a_method_that_cannot_be_imported_is_listed_with_its_fault(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "methods").mkdir()
    (tmp_path / "methods" / "broken.py").write_text("raise RuntimeError('on import')\n")
    done = cli("list", "methods", "--include-path", str(tmp_path))
    assert done.code == 0
    assert "cannot be loaded" in next(line for line in done.out.splitlines() if line.startswith("broken"))


def test_a_broken_plugin_is_listed_with_the_folder_it_lies_in(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(
        "from cl_bench import Method\n\nclass Broken(Method):\n    name = 'broken'\n    paper = 1 / 0\n"
    )
    rows = json.loads(cli("list", "methods", "--include-path", str(tmp_path), "--json").out)
    assert next(row["from"] for row in rows if row["name"] == "broken") == str(tmp_path)


def test_a_folder_named_twice_in_different_words_is_one_folder(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "broken.py").write_text(
        "from cl_bench import Method\n\nclass Broken(Method):\n    name = 'broken'\n    paper = 1 / 0\n"
    )
    paths = [str(tmp_path), str(tmp_path / "below" / "..")]
    done = cli("list", "methods", *(part for path in paths for part in ("--include-path", path)))
    assert done.code == 0 and done.out.count("broken ") == 1


@pytest.mark.parametrize("name", ["base", "joint"])
def test_show_tells_a_bound(cli: Cli, name: str) -> None:
    assert cli("show", "method", name).out.startswith(f"{name}: ")
    assert json.loads(cli("show", "method", name, "--json").out)["kind"] == "bound"


def test_show_says_what_a_setting_may_be(cli: Cli) -> None:
    rows = {row["name"]: row for row in json.loads(cli("show", "method", "sdft", "--json").out)["settings"]}
    assert rows["teacher"]["choices"] == ["ema", "task_start", "original"]
    assert (rows["ema_rate"]["above"], rows["ema_rate"]["maximum"]) == (0, 1)
    assert rows["ema_rate"]["choices"] is None and rows["teacher"]["minimum"] is None
    plain = cli("show", "method", "sdft").out
    assert "[choice: ema | task_start | original]" in plain and "[fraction per step, > 0, <= 1]" in plain
    rows = {row["name"]: row for row in json.loads(cli("show", "method", "opsd", "--json").out)["settings"]}
    assert (rows["top_k"]["default"], rows["top_k"]["minimum"]) == (None, 1)


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["show", "method", "ewc"], "ewc is a modifier: --with ewc"),
        (["run", "--sequence", "science", "--method", "ewc"], "ewc is a modifier: --with ewc"),
        (["show", "modifier", "sdft"], "sdft is a method: --method sdft"),
        (["run", "--sequence", "science", "--method", "sft", "--with", "sdft"], "sdft is a method: --method sdft"),
        (["run", "--sequence", "chemistry", "--method", "sft"], "chemistry is a task"),
        (["run", "--sequence", "science", "--method", "my-method"], "needs --include-path"),
        (["show", "sequence", "my-sequence"], "needs --include-path"),
    ],
)
def test_a_name_of_another_kind_or_of_ones_own_is_told_where_it_belongs(
    cli: Cli, arguments: list[str], hint: str
) -> None:
    done = cli(*arguments)
    assert done.code == 2 and hint in done.err


def test_show_method_names_every_setting(cli: Cli) -> None:
    content = json.loads(cli("show", "method", "sdft", "--json").out)
    assert {row["name"] for row in content["settings"]} == set(Registry().method_class("sdft").Settings.model_fields)
    assert all(row["unit"] and row["source"] and row["description"] for row in content["settings"])
    plain = cli("show", "method", "sdft").out
    for row in content["settings"]:
        assert f"  {row['name']} = " in plain


@pytest.mark.parametrize(
    ("kind", "name"),
    [("task", "chemistry"), ("sequence", "full"), ("suite", "lab"), ("profile", "lab"), ("recipe", "lab")],
)
def test_show_prints_the_file(cli: Cli, kind: str, name: str) -> None:
    done = cli("show", kind, name)
    assert done.code == 0
    assert f"name: {name}" in done.out
    assert json.loads(cli("show", kind, name, "--json").out)["name"] == name


def test_show_model(cli: Cli, tiny: Path) -> None:
    content = json.loads(cli("show", "model", str(tiny), "--json").out)
    assert content["architecture"] == "Qwen2ForCausalLM"
    assert content["context"] == 1024
    assert content["parameters"] > 1000


def test_version(cli: Cli) -> None:
    from cl_bench import __version__

    assert cli("--version").out == f"cl-bench {__version__}\n"


def test_env(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_TOKEN", "secret-value")
    content = json.loads(cli("env", "--json").out)
    assert content["packages"]["torch"]
    assert content["cache"]
    assert "secret-value" not in cli("env").out


def test_path_of_a_model(cli: Cli, tiny: Path) -> None:
    assert cli("models", "path", str(tiny)).out.strip() == str(tiny)


def test_build_refuses_a_folder_with_files(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "lab-s").mkdir()
    (tmp_path / "lab-s" / "mine.txt").write_text("mine")
    done = cli("models", "build", "lab-s", "--out", str(tmp_path))
    assert done.code == 2
    assert "not empty" in done.err


ON_PUBLIC_DATA_ALONE = {"gsm8k", "svamp"}


def test_tasks_without_lab_rows_say_so(cli: Cli) -> None:
    for name in ON_PUBLIC_DATA_ALONE:
        done = cli("validate", "task", name, "--source", "lab")
        assert done.code == 2 and "no rows on the source 'lab'" in done.err


@pytest.mark.parametrize("name", sorted(set(Registry().tasks()) - ON_PUBLIC_DATA_ALONE))
def test_every_lab_task_is_valid(cli: Cli, name: str) -> None:
    done = cli("validate", "task", name, "--source", "lab")
    assert done.code == 0, done.out


def test_validate_task_without_rows_on_the_source(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    assert cli("validate", "task", "chemistry", "--data-root", "data", "--offline").code == 2


def test_list_of_tasks_says_chance_data_rows_and_licence(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CL_BENCH_CACHE", str(tmp_path / "cache"))
    rows = {row["name"]: row for row in json.loads(cli("list", "tasks", "--json").out)}
    assert {name: row["chance"] for name, row in rows.items() if row["chance"]} == {
        **dict.fromkeys(("chemistry", "biology", "materials", "physics", "science-mixture"), 0.25)
    }
    assert rows["gsm8k"]["data"] == ["openai/gsm8k"] and rows["gsm8k"]["sources"] == ["hub"]
    assert all(row["rows"] == {} and row["licence"] is None for row in rows.values())
    spec = DatasetSpec("openai/gsm8k", {"train": "a", "test": "b"}, "main", "cc7b047b6e5bb11b4f1af84efc572db110a51b3c")
    hub = FakeHub()
    hub.publish(spec.path, repository({"main": {"train": [math_row(1), math_row(2)], "test": [math_row(3)]}}))
    hub.repositories[spec.path] = {str(spec.revision): next(iter(hub.repositories[spec.path].values()))}
    prepare(wanted_sets([Need("gsm8k", spec)]), tmp_path / "cache" / "data", hub=hub)
    found = next(row for row in json.loads(cli("list", "tasks", "--json").out) if row["name"] == "gsm8k")
    assert (found["rows"], found["licence"]) == ({"train": 2, "test": 1}, "mit")
    line = next(line for line in cli("list", "tasks").out.splitlines() if line.startswith("gsm8k"))
    assert "rows: train 2, test 1" in line and "licence: mit" in line


@pytest.mark.parametrize("kind", ["suites", "sequences", "tasks"])
def test_a_broken_file_is_listed_with_its_fault(cli: Cli, tmp_path: Path, kind: str) -> None:
    (tmp_path / kind).mkdir()
    for name, text in (("empty", ""), ("half", "name: half\n"), ("odd", "{tiers: 3, stages: 4, sources: 5}")):
        (tmp_path / kind / f"{name}.yaml").write_text(text)
    done = cli("list", kind, "--include-path", ".")
    assert done.code == 0, done.err
    assert "cannot be read" in next(line for line in done.out.splitlines() if line.startswith("empty"))


def test_validate_task_says_what_its_rows_are(cli: Cli, tmp_path: Path) -> None:
    write_jsonl(tmp_path / "science_chemistry.jsonl", [science_row(number) for number in range(30)])
    done = cli("validate", "task", "chemistry", "--data-root", ".")
    assert done.code == 0 and "remarks: 30 of the 3,542 rows of its kind are there" in done.out
    assert "remarks" in json.loads(cli("validate", "task", "chemistry", "--data-root", ".", "--json").out)


def test_validate_spec_prints_directories(cli: Cli, tiny: Path, tmp_path: Path) -> None:
    text = f"method: sft\nsequence: science\nprofile: lab\nsuite: none\nmodel: {tiny}\nseeds: 0-1\n"
    (tmp_path / "request.yaml").write_text(text)
    done = cli("validate", "spec", "request.yaml")
    assert done.code == 0
    assert [line.rpartition("-")[0] for line in done.out.splitlines()] == [
        f"runs/science/sft/tiny-default-s{seed}" for seed in (0, 1)
    ]
    assert not (tmp_path / "runs").exists()


def test_a_terminal_that_lacks_characters_gets_others(tmp_path: Path) -> None:
    (tmp_path / "sequences").mkdir()
    text = "name: mine\ndescription: Ünïcode ░▒▓\nstages: [chemistry]\n"
    (tmp_path / "sequences" / "mine.yaml").write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "cl_bench.harness.cli", "show", "sequence", "mine", "--include-path", "."]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, env=environment)
    assert done.returncode == 0, done.stderr
    assert "?n?code" in done.stdout
