"""``cl-bench show RUN --items`` and ``cl-bench recover``, on planted runs and on a small run of the lab."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cl_bench.harness.commands.items import answer_of
from cl_bench.harness.documents import validate_document
from cl_bench.harness.escaping import visible
from cl_bench.harness.files import read_json
from cl_bench.harness.run_directory import load_run
from cl_bench.reports.items import items_grid, recovery_grids
from tests.cli.conftest import Cli, call
from tests.measure.items_run import column, run_spec, sample, samples, write_run

SEED = 0


@pytest.fixture()
def run(tmp_path: Path) -> Path:
    before = [sample("a", True, response="it is \x1b[31mred\x1b[0m\nso"), *samples("0110", ended="eos")]
    after = [sample("a", False, response="\u202egreen", parsed=None), *samples("1100")]
    options = [sample(f"o{number}", True, response=None, loglikelihoods=[-1.0, -2.5]) for number in range(2)]
    rows = {
        "base": {"one": before, "old": options},
        "one": {"one": after, "old": [row | {"correct": False, "parsed": "1"} for row in options]},
    }
    columns = [column("one"), column("old", "retention", 0.5)]
    return write_run(tmp_path / "runs", columns, rows, run_spec([("one", "one")], SEED))


def test_counts_of_all_columns(cli: Cli, run: Path) -> None:
    done = cli("show", str(run), "--items")
    assert done.code == 0 and done.err == ""
    lines = [line.split() for line in done.out.splitlines()]
    assert ["one", "base", "one", "5", "1", "2", "1", "1", "1", "40.0", "+40.0"] in lines
    assert ["old", "base", "one", "2", "0", "2", "0", "0", "0", "100.0", "+100.0"] in lines
    assert cli("show", "run", str(run), "--items").out == done.out


def test_forgotten_items_are_listed_with_their_answers(cli: Cli, run: Path) -> None:
    done = cli("show", str(run), "--items", "--task", "one", "--forgotten")
    assert done.code == 0
    assert "a: forgotten, format failure: nothing parsed" in done.out
    assert r"  base (right, read as 'x'): it is \x1b[31mred\x1b[0m\nso" in done.out
    assert r"  one (wrong, nothing read): \u202egreen" in done.out
    assert done.out.count(": forgotten") == 2 and "2: forgotten, wrong answer" in done.out
    assert "\x1b" not in done.out and "\u202e" not in done.out
    gained = cli("show", str(run), "--items", "--task", "one", "--gained").out
    assert "0: gained" in gained and "a: " not in gained
    every = cli("show", str(run), "--items", "--task", "one").out
    assert [every.count(f": {name}") for name in ("kept", "forgotten", "gained", "never")] == [1, 2, 1, 1]
    scored = cli("show", str(run), "--items", "--task", "old", "--forgotten").out
    assert "option 1 of log-likelihoods -1.00, -2.50" in scored


def test_one_line_of_json(cli: Cli, run: Path) -> None:
    done = cli("show", str(run), "--items", "--task", "one", "--forgotten", "--never", "--json")
    assert done.code == 0 and len(done.out.splitlines()) == 1
    document = json.loads(done.out)
    (found,) = document["columns"]
    assert (document["from"], document["to"], found["n"]) == ("base", "one", 5)
    assert [(item["id"], item["transition"], item["cause"]) for item in found["items"]] == [
        ("a", "forgotten", "format failure"),
        ("2", "forgotten", "wrong answer"),
        ("3", "never", "wrong answer"),
    ]
    assert found["items"][0]["before"]["response"] == "it is \x1b[31mred\x1b[0m\nso"
    assert found["model_based"]["forgotten"] == pytest.approx(0.4)


def test_rows_can_be_turned_round(cli: Cli, run: Path) -> None:
    found = json.loads(cli("show", str(run), "--items", "--from", "one", "--to", "base", "--json").out)
    assert found["columns"][0]["counts"] == {"kept": 1, "forgotten": 1, "gained": 2, "never": 1}


def test_another_seed_is_the_noise_floor(cli: Cli, run: Path, tmp_path: Path) -> None:
    rows = {row: {name: list(load_run(run).samples(row, name)) for name in ("one", "old")} for row in ("base", "one")}
    rows["one"]["one"][1]["correct"] = False
    columns = [column("one"), column("old", "retention", 0.5)]
    other = write_run(tmp_path / "runs", columns, rows, run_spec([("one", "one")], seed=1))
    done = cli("show", str(run), "--items", "--task", "one", "--other-seed", str(other))
    assert ["one", "5", "1", "0", "20.0", "10.0"] in [line.split() for line in done.out.splitlines()]
    refused = cli("show", str(run), "--items", "--other-seed", str(run))
    assert refused.code == 3 and "no other seed" in refused.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--items", "--task", "on"], "did you mean one"),
        (["--items", "--to", "two"], "unknown row: 'two'"),
        (["--items", "--to", "base"], "both are base"),
        (["--items", "--forgotten"], "--task"),
        (["--forgotten"], "go with --items"),
    ],
)
def test_requests_that_are_wrong(cli: Cli, run: Path, options: list[str], said: str) -> None:
    done = cli("show", str(run), *options)
    assert done.code == 2 and done.out == "" and said in done.err


def test_show_still_shows_and_says_what_it_misses(cli: Cli, run: Path) -> None:
    assert cli("show", "method", "sft").out.startswith("name:")
    assert cli("show", "method").code == 2
    assert cli("show", "method", "sft", "--items").code == 2
    assert "one" in cli("show", str(run), "--json").out
    nowhere = cli("show", str(run.parent), "--items")
    assert nowhere.code == 2 and "not a run directory" in nowhere.err


def test_edited_samples_are_refused_by_name(cli: Cli, run: Path) -> None:
    path = run / "stages/00-base/eval/one/samples.jsonl"
    path.write_text(path.read_text().replace("false", "true", 1))
    for command in (["show", str(run), "--items"], ["recover", str(run)]):
        done = cli(*command)
        assert done.code == 1 and str(path) in done.err and "resume" in done.err


def test_answers_are_one_line_and_not_endless() -> None:
    assert visible("a\tb\r\x00\ud800é") == r"a\tb\r\x00\ud800é"
    assert answer_of(sample("a", False, response="y" * 700)).endswith("… (100 more characters)")
    assert "skipped" in answer_of(sample("a", None, response=None, ended="skipped"))


SUITE = """name: two
tiers: {fast: 24}
defaults: {source: lab-skill, metric: acc, shots: 0}
tasks:
  - {task: facts}
  - {task: home}
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A run of one stage that forgets much: two skills, few rows, a high learning rate."""
    folder = tmp_path_factory.mktemp("lab")
    for kind, text in (("suites", SUITE), ("sequences", "name: one\nstages: [biology]\n")):
        (folder / "own" / kind).mkdir(parents=True)
        (folder / "own" / kind / f"{'two' if kind == 'suites' else 'one'}.yaml").write_text(text)
    arguments = ["--method", "sft", "--sequence", "one", "--suite", "two", "--tier", "fast", "--model", "lab-s"]
    arguments += [
        "--include-path",
        str(folder / "own"),
        "--output",
        str(folder / "runs"),
        "--threads",
        "1",
        "--limit",
        "24",
    ]
    done = call(
        "run", *arguments, "--set", "method.learning_rate=1e-2", "--set", "evaluation.ood_rows=0", "--json", "-q"
    )
    assert done.code == 0, done.err
    (spec,) = (folder / "runs").glob("*/*/*/spec.yaml")
    yield spec.parent


def test_recovery_of_a_lab_run(lab: Path) -> None:
    facts = {
        item["id"]
        for item in json.loads(call("show", str(lab), "--items", "--task", "lab-facts", "--json").out)["columns"][0][
            "items"
        ]
        if item["transition"] == "forgotten"
    }
    assert facts, "the run forgets something"
    before = {path: path.read_bytes() for path in lab.rglob("*") if path.is_file() and path.name != ".lock"}
    done = call("recover", str(lab), "--column", "lab-facts", "--column", "lab-home", "--json", "-q")
    assert done.code == 0, done.err
    assert len(done.out.splitlines()) == 1
    document = read_json(lab / "recovery.json")
    validate_document(document, "recovery")
    found: dict[str, Any] = document["rows"]["biology"]["columns"]
    assert list(found) == ["lab-facts", "lab-home"]
    assert {item["id"] for item in found["lab-facts"]["items"] if item["group"] == "forgotten"} == facts
    assert found["lab-facts"]["forgotten"]["probes"]["forced_opening"]["tried"] == len(facts)
    assert found["lab-home"]["probes"]["option_likelihood"]["reason"] is not None
    changed = [path for path, content in before.items() if path.read_bytes() != content]
    assert changed == [], "nothing else in the run directory is touched"
    # A second call says the same and keeps the columns of the first.
    again = call("recover", str(lab), "--row", "biology", "--column", "lab-facts", "-q")
    assert again.code == 0 and read_json(lab / "recovery.json") == document
    assert "lab-home" in again.out
    (grid,) = recovery_grids(load_run(lab))
    assert {row[0] for row in grid.rows} >= {"lab-facts"}
    shown = items_grid(load_run(lab))
    assert shown is not None and {row[0] for row in shown.rows} >= {
        "biology",
        "lab-facts",
        "lab-home",
        "mean of retention",
    }


def test_recovery_asks_for_what_it_needs(lab: Path, tmp_path: Path) -> None:
    assert call("recover", str(lab), "--column", "lab-fact").code == 2
    assert call("recover", str(lab), "--row", "base").code == 2
    copied = tmp_path / lab.name
    shutil.copytree(lab, copied)
    weights = next((copied / "stages/01-biology/checkpoint").glob("*.safetensors"))
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    done = call("recover", str(copied))
    assert done.code == 1 and str(weights) in done.err
    shutil.rmtree(weights.parent)
    done_file = copied / "stages/01-biology/done.json"
    document = read_json(done_file)
    document["files"] = {name: value for name, value in document["files"].items() if not name.startswith("checkpoint/")}
    done_file.write_text(json.dumps(document))
    done = call("recover", str(copied))
    assert done.code == 1 and "weights after stage biology are gone" in done.err
